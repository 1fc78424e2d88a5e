#include "guest/confine.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "linux/capabilities.h"
#include "linux/fd.h"
#include "linux/seccomp_policy.h"

namespace hearth::guest {
namespace {

void bring_up_loopback() {
  const linux::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) throw_errno("make a socket");
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) throw_errno("bring up the loopback link");
}

void install_seccomp(const std::string& filter) {
  if (filter.empty()) return;
  if (filter.size() % sizeof(sock_filter) != 0)
    fail(Code::internal, "the seccomp filter is cut off");
  std::vector<sock_filter> program(filter.size() / sizeof(sock_filter));
  std::memcpy(program.data(), filter.data(), filter.size());
  if (const int error = linux::install_filter(program); error != 0) {
    throw_errno_text(error, "install the seccomp filter");
  }
}

}  // namespace

void confine(const BootConfig& config) {
  // Executed from a memfd we would be called after that.
  ::prctl(PR_SET_NAME, "hearth-guest", 0, 0, 0);
  ::umask(022);
  if (::sethostname(config.hostname.c_str(), config.hostname.size()) != 0)
    throw_errno("set the host name");
  bring_up_loopback();
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) throw_errno("forbid core dumps");

  // Undumpable: not even root inside may trace us or look into our memory and descriptors, for
  // which it would need SYS_PTRACE.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) throw_errno("make the guest undumpable");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("set no_new_privs");
  if (const int error =
          linux::limit_capabilities(linux::CapabilitySet::from_bits(config.capabilities));
      error != 0) {
    throw_errno_text(error, "give up capabilities");
  }
  install_seccomp(config.seccomp_filter);
}

}  // namespace hearth::guest
