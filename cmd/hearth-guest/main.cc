// hearth-guest: PID 1 of every sandbox. hearth-runtime starts a few of them as nurseries, which
// copy themselves for each sandbox; not meant to be run by hand.
//
// A nursery has one thread; a guest has two: one serves, one starts commands. More come when
// somebody speaks to one of its surfaces.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "doors.h"
#include "guest/nursery.h"

namespace {

// Where a nursery finds the channel to its runtime, and the program that it is executed from.
constexpr int kChannelFd = 3;
constexpr int kProgramFd = 4;

bool is_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hearth;
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts("hearth-guest " HEARTH_VERSION);
    return 0;
  }
  if (argc != 2 || std::string_view(argv[1]) != "--nursery" || !is_socket(kChannelFd)) {
    std::fputs(
        "hearth-guest: is PID 1 of a sandbox and started by hearth-runtime; there is nothing to "
        "run by hand\n",
        stderr);
    return 2;
  }
  // Not for the eyes of those inside: there it is no nursery.
  std::memset(argv[1], 0, std::strlen(argv[1]));
  ::close(kProgramFd);
  try {
    guest::run_nursery(linux::Channel(linux::Fd(kChannelFd)), open_doors);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hearth-guest: nursery: %s\n", error.what());
    return 1;
  }
}
