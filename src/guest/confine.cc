#include "guest/confine.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "linux/fd.h"
#include "linux/seccomp_policy.h"

namespace hearth::guest {
namespace {

// The image may have a link there, to somewhere that does not exist: what we write is a file.
void write_etc(const char* name, const std::string& text) {
  if (text.empty()) return;
  const std::string path = fmt::format("/etc/{}", name);
  ::unlink(path.c_str());
  const linux::Fd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  // An image without /etc does not want any.
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return;
  if (!file) throw_errno("write '{}'", path);
  linux::write_all(file.get(), text);
}

}  // namespace

void bring_up_loopback() {
  const linux::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) throw_errno("make a socket");
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) throw_errno("bring up the loopback link");
}

void name_host(const HostNames& names) {
  const std::string& name = names.hostname;
  if (!name.empty() && ::sethostname(name.c_str(), name.size()) != 0)
    throw_errno("set the host name");
  write_etc("hosts", names.hosts);
  write_etc("resolv.conf", names.resolv_conf);
}

void install_filter(const std::string& filter) {
  if (filter.empty()) return;
  if (filter.size() % sizeof(sock_filter) != 0)
    fail(Code::internal, "the seccomp filter is cut off");
  std::vector<sock_filter> program(filter.size() / sizeof(sock_filter));
  std::memcpy(program.data(), filter.data(), filter.size());
  if (const int error = linux::install_filter(program, linux::FilterReach::all_threads);
      error != 0) {
    throw_errno_text(error, "install the seccomp filter");
  }
}

void differ_from_root() {
  // Of nobody, who is in every sandbox's range. The raw call: glibc's speaks for all threads.
  constexpr gid_t kNobody = 65534;
  if (::syscall(SYS_setresgid, 0, 0, kNobody) != 0)
    throw_errno("differ from root's other processes");
}

void confine(const linux::CapabilitySet& keep, const std::string& closing_filter) {
  ::umask(022);
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) throw_errno("forbid core dumps");
  // Undumpable: not even root inside may trace us or look into our memory and descriptors, for
  // which it would need SYS_PTRACE.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) throw_errno("make the guest undumpable");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("set no_new_privs");
  differ_from_root();
  if (const int error = linux::give_up_capabilities(keep); error != 0)
    throw_errno_text(error, "give up capabilities");
  install_filter(closing_filter);
}

}  // namespace hearth::guest
