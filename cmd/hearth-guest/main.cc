// hearth-guest: PID 1 of every sandbox. Started by hearth-runtime with the descriptors of
// guest/boot.h; not meant to be run by hand.
//
// One thread. Its one child, the spawner, starts every command.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "base/error.h"
#include "guest/boot.h"
#include "guest/confine.h"
#include "guest/server.h"
#include "linux/sealed_memfd.h"

namespace {

using namespace hearth;

constexpr std::size_t kMaxConfig = std::size_t{1} << 20;

guest::ServerOptions take_options(const guest::BootConfig& config, linux::Channel boot) {
  guest::ServerOptions options;
  options.listen = linux::Fd(guest::kListenFd);
  options.boot = std::move(boot);
  options.environment = config.environment;
  options.user = config.user;
  for (std::uint32_t i = 0; i < config.join_count; ++i) {
    options.join_fds.emplace_back(guest::kFirstJoinFd + static_cast<int>(i));
    ::fcntl(options.join_fds.back().get(), F_SETFD, FD_CLOEXEC);
  }
  options.join_at_start = config.join_at_start;
  ::fcntl(guest::kListenFd, F_SETFD, FD_CLOEXEC);
  ::fcntl(guest::kBootFd, F_SETFD, FD_CLOEXEC);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    std::puts("hearth-guest " HEARTH_VERSION);
    return 0;
  }
  if (::getpid() != 1) {
    std::fputs(
        "hearth-guest: is PID 1 of a sandbox and started by hearth-runtime; there is nothing to "
        "run by hand\n",
        stderr);
    return 2;
  }
  linux::Channel boot{linux::Fd(guest::kBootFd)};
  try {
    guest::BootConfig config;
    {
      const linux::Fd file(guest::kConfigFd);
      config = guest::parse_boot_config(linux::read_sealed_memfd(file.get(), kMaxConfig));
    }
    guest::confine(config);
    guest::Server server(take_options(config, std::move(boot)));
    server.run();
    return 0;
  } catch (const std::exception& error) {
    // The runtime reports it to whoever asked for the sandbox.
    try {
      if (boot) boot.send(error.what());
    } catch (const Error&) {
    }
    return 1;
  }
}
