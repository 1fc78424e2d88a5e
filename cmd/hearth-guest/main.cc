// hearth-guest: PID 1 of every sandbox. hearth-runtime starts a few of them as nurseries, which
// copy themselves for each sandbox. In containers of others, pods of a cluster say, it is their
// first process (guest/contained.h).
//
// A nursery has one thread; a guest has two: one serves, one starts commands. More come when
// somebody speaks to one of its surfaces.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "doors.h"
#include "guest/contained.h"
#include "guest/nursery.h"
#include "sudo/sudo.h"

namespace {

// Where a nursery finds the channel to its runtime, and the program that it is executed from.
constexpr int kChannelFd = 3;
constexpr int kProgramFd = 4;

bool is_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

// In a container of others.
int run_verb(std::string_view verb, std::span<const std::string_view> words) {
  using namespace hearth;
  try {
    if (verb == "serve") return guest::serve_contained(guest::parse_contained(words), open_doors);
    if (words.size() != 1) fail(Code::invalid, "install needs one folder");
    guest::install_self(std::string(words.front()));
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "hearth-guest: %s\n", error.what());
    return error.code() == Code::invalid ? 2 : 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hearth;
  const std::string_view name = argc > 0 ? argv[0] : "";
  // Inside it has a second name (guest/sudo_door.h).
  if (name.substr(name.rfind('/') + 1) == "sudo")
    return sudo::run({argv + 1, static_cast<std::size_t>(argc - 1)});
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const std::string_view verb = words.empty() ? std::string_view() : words.front();
  if (words.size() == 1 && verb == "--version") {
    std::puts("hearth-guest " HEARTH_VERSION);
    return 0;
  }
  // Not through exit(3): threads of surfaces still run.
  if (verb == "serve" || verb == "install") ::_exit(run_verb(verb, std::span(words).subspan(1)));
  if (words.size() != 1 || verb != "--nursery" || !is_socket(kChannelFd)) {
    std::fputs(
        "hearth-guest: is PID 1 of a sandbox and started by hearth-runtime; in a container of "
        "others: hearth-guest serve [--surfaces=LIST] [--taken-ports=LIST] [-- COMMAND...], or "
        "install FOLDER\n",
        stderr);
    return 2;
  }
  // Not for the eyes of those inside: there it is no nursery.
  std::memset(argv[1], 0, std::strlen(argv[1]));
  ::close(kProgramFd);
  try {
    prepare_doors();
    guest::run_nursery(linux::Channel(linux::Fd(kChannelFd)), open_doors);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth-guest: nursery: %s\n", error.what());
    return 1;
  }
}
