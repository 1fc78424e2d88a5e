// System calls that act on the whole machine, or have let people out before.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "escape/payload.h"

namespace hearth::escape {
namespace {

void try_keyrings(Findings& findings, const Arguments&) {
  constexpr long kSession = -3;
  constexpr long kUserSession = -5;
  for (const long ring : {kSession, kUserSession})
    findings.must_fail("add_key", ::syscall(SYS_add_key, "user", "escape", "x", 1, ring));
  findings.must_fail("request_key",
                     ::syscall(SYS_request_key, "user", "escape", nullptr, kSession));
  for (long operation = 0; operation <= 32; ++operation) {
    findings.must_fail("keyctl " + std::to_string(operation),
                       ::syscall(SYS_keyctl, operation, kSession, 0, 0, 0));
  }
  findings.must_hold("/proc/keys is empty", read_all("/proc/keys").empty());
}

// What a kernel gives to programs, and to those who break kernels.
void try_kernel_features(Findings& findings, const Arguments&) {
  std::array<std::uint32_t, 32> attributes{};
  attributes[1] = sizeof attributes;
  for (long command = 0; command < 8; ++command) {
    findings.must_fail("bpf " + std::to_string(command),
                       ::syscall(SYS_bpf, command, attributes.data(), sizeof attributes));
  }
  findings.must_fail("perf_event_open",
                     ::syscall(SYS_perf_event_open, attributes.data(), 0, -1, -1, 0));
  constexpr int kUserModeOnly = 1;
  for (const int flags : {0, kUserModeOnly})
    findings.must_fail("userfaultfd", ::syscall(SYS_userfaultfd, flags));
  std::array<char, 256> ring{};
  findings.must_fail("io_uring_setup", ::syscall(SYS_io_uring_setup, 4, ring.data()));
  findings.must_fail("io_uring_enter", ::syscall(SYS_io_uring_enter, 0, 0, 0, 0, nullptr, 0));
  findings.must_fail("io_uring_register", ::syscall(SYS_io_uring_register, 0, 0, nullptr, 0));
  constexpr int kContentClass = 4;
  findings.must_fail("fanotify_init", ::syscall(SYS_fanotify_init, kContentClass, O_RDONLY));
  findings.must_fail("lookup_dcookie", ::syscall(SYS_lookup_dcookie, 0, nullptr, 0));
  findings.must_fail("no address randomisation", ::syscall(SYS_personality, ADDR_NO_RANDOMIZE));
  findings.must_fail("readable is executable", ::syscall(SYS_personality, READ_IMPLIES_EXEC));
}

// Arguments that change nothing, should one of them work.
void try_machine_calls(Findings& findings, const Arguments&) {
  findings.must_fail("kexec_load", ::syscall(SYS_kexec_load, 0, 0, nullptr, 0));
  findings.must_fail("kexec_file_load", ::syscall(SYS_kexec_file_load, -1, -1, 0, "", 0));
  findings.must_fail("init_module", ::syscall(SYS_init_module, "", 0, ""));
  findings.must_fail("finit_module", ::syscall(SYS_finit_module, -1, "", 0));
  findings.must_fail("delete_module", ::syscall(SYS_delete_module, "no-such-module", O_NONBLOCK));
  constexpr unsigned kMagic = 0xfee1dead;
  constexpr unsigned kSecondMagic = 672274793;
  constexpr unsigned kCtrlAltDeleteOff = 0;
  findings.must_fail("reboot",
                     ::syscall(SYS_reboot, kMagic, kSecondMagic, kCtrlAltDeleteOff, nullptr));
  findings.must_fail("swapon", ::syscall(SYS_swapon, "/tmp/none", 0));
  findings.must_fail("swapoff", ::syscall(SYS_swapoff, "/tmp/none"));
  findings.must_fail("acct", ::syscall(SYS_acct, nullptr));
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  findings.must_fail("clock_settime", ::syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
  const struct timezone zone{};
  findings.must_fail("settimeofday", ::syscall(SYS_settimeofday, nullptr, &zone));
  constexpr int kReadAll = 3;
  std::array<char, 64> text{};
  findings.must_fail("syslog", ::syscall(SYS_syslog, kReadAll, text.data(), text.size()));
  findings.must_fail("quotactl", ::syscall(SYS_quotactl, 0x800001 << 8, nullptr, 0, nullptr));
  findings.must_fail("vhangup", ::syscall(SYS_vhangup));
  findings.must_fail("setdomainname", ::syscall(SYS_setdomainname, "x", 1));
  findings.must_fail("sethostname", ::syscall(SYS_sethostname, "x", 1));
#ifdef SYS_iopl
  findings.must_fail("iopl", ::syscall(SYS_iopl, 3));
  findings.must_fail("ioperm", ::syscall(SYS_ioperm, 0x80, 1, 1));
#endif
}

// Files by number, past every folder on the way (the "shocker" escape).
void try_file_handles(Findings& findings, const Arguments&) {
  struct {
    unsigned bytes = 64;
    int type = 0;
    unsigned char handle[64]{};
  } file;
  int mount_id = 0;
  for (const char* path : {"/", "/etc/hosts", "/proc", "/dev"}) {
    file.bytes = sizeof file.handle;
    const long named = ::syscall(SYS_name_to_handle_at, AT_FDCWD, path, &file, &mount_id, 0);
    if (named != 0) {  // an invented one: the second inode is most file systems' root
      file.bytes = 8;
      file.type = 1;
      file.handle[0] = 2;
    }
    const int at = ::open(path, O_RDONLY | O_CLOEXEC);
    findings.must_fail(std::string("open_by_handle_at ") + path,
                       ::syscall(SYS_open_by_handle_at, at, &file, O_RDONLY));
    ::close(at);
  }
}

#if defined(__x86_64__)
// The other two ways into the same kernel, with numbers of their own.
long call_32_bits(long number, long first) {
  long result = 0;
  // r8 to r11 are lost on the way.
  asm volatile("int $0x80"
               : "=a"(result)
               : "a"(number), "b"(first)
               : "memory", "r8", "r9", "r10", "r11");
  return result;
}

void try_other_call_tables(Findings& findings, const Arguments&) {
  constexpr long kUnshare32 = 310;
  constexpr long kGetPid32 = 20;
  constexpr long kNewUser = 0x10000000;
  const auto works = [](long number, long first) {
    return managed_in_child([=] { return call_32_bits(number, first) >= 0 ? 0 : 1; });
  };
  findings.must_hold("no 32-bit unshare", !works(kUnshare32, kNewUser));
  findings.must_hold("no 32-bit calls at all", !works(kGetPid32, 0));
  constexpr long kX32 = 0x40000000;
  const bool x32 =
      managed_in_child([] { return ::syscall(kX32 | SYS_unshare, 0x10000000) >= 0 ? 0 : 1; });
  findings.must_hold("no x32 unshare", !x32);
  findings.must_hold("no x32 calls at all",
                     !managed_in_child([] { return ::syscall(kX32 | SYS_getpid) >= 0 ? 0 : 1; }));
}
#else
void try_other_call_tables(Findings& findings, const Arguments&) {
  findings.lacks("other tables of system calls on this processor");
}
#endif

// Needs a terminal.
void try_typing(Findings& findings, const Arguments&) {
  char letter = 'x';
  findings.must_hold("this is a terminal", ::isatty(0) == 1);
  constexpr unsigned long kHigh = 1UL << 32;
  for (const unsigned long command : {TIOCSTI + 0UL, TIOCLINUX + 0UL})
    for (const unsigned long high : {0UL, kHigh})
      findings.must_fail("type " + std::to_string(command | high),
                         ::syscall(SYS_ioctl, 0, command | high, &letter));
  findings.must_fail("be the console", ::syscall(SYS_ioctl, 0, TIOCCONS, 0));
  findings.must_fail("/dev/console", ::open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC));
}

constexpr std::array kAttempts = {
    Attempt{"keyrings", try_keyrings},        Attempt{"features", try_kernel_features},
    Attempt{"machine", try_machine_calls},    Attempt{"handles", try_file_handles},
    Attempt{"tables", try_other_call_tables}, Attempt{"type", try_typing}};

}  // namespace

std::span<const Attempt> call_attempts() {
  return kAttempts;
}

}  // namespace hearth::escape
