#include "linux/seccomp_policy.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kNative = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kForeign = AUDIT_ARCH_I386;
#else
constexpr std::uint32_t kNative = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kForeign = AUDIT_ARCH_ARM;
#endif

struct Call {
  int number = 0;
  std::uint64_t arguments[6] = {};
  std::uint32_t architecture = kNative;
};

// Runs the filter as the kernel would, see bpf(4); the instructions that filters consist of only.
std::uint32_t verdict(const std::vector<sock_filter>& program, const Call& call) {
  seccomp_data data{.nr = call.number, .arch = call.architecture};
  std::copy(std::begin(call.arguments), std::end(call.arguments), data.args);
  std::uint32_t a = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& op = program[at];
    const auto jump = [&](bool taken) { at += taken ? op.jt : op.jf; };
    switch (op.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + op.k, sizeof a);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= op.k;
        break;
      case BPF_JMP | BPF_JA:
        at += op.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        jump(a == op.k);
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        jump(a > op.k);
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        jump(a >= op.k);
        break;
      case BPF_RET | BPF_K:
        return op.k;
      default:
        ADD_FAILURE() << "instruction " << op.code;
        return 0;
    }
  }
  ADD_FAILURE() << "the program does not return";
  return 0;
}

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
std::uint32_t refused(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

TEST(SeccompPolicy, AllowsWhatItNamesAndRefusesTheRest) {
  const auto filter = compile({.default_error = EACCES, .allowed = {"read", "write"}});

  EXPECT_EQ(verdict(filter, {.number = SYS_read}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_write}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_openat}), refused(EACCES));
  EXPECT_EQ(verdict(filter, {.number = 9999}), refused(EACCES));
}

TEST(SeccompPolicy, KillsOtherArchitectures) {
  const auto filter = compile({.newest_syscall = 469, .allowed = {"read"}});

  EXPECT_EQ(verdict(filter, {.number = SYS_read, .architecture = kForeign}), kKill);
#if defined(__x86_64__)
  EXPECT_EQ(verdict(filter, {.number = SYS_read | 0x40000000}), kKill);
#endif
}

TEST(SeccompPolicy, SaysOfCallsFromTheFutureThatTheyDoNotExist) {
  const auto filter = compile({.newest_syscall = 469, .allowed = {"read"}});

  EXPECT_EQ(verdict(filter, {.number = 470}), refused(ENOSYS));
  EXPECT_EQ(verdict(filter, {.number = 469}), refused(EPERM));
  EXPECT_EQ(verdict(filter, {.number = SYS_read}), kAllow);
}

TEST(SeccompPolicy, ComparesArguments) {
  const auto filter =
      compile({.rules = {{.syscall = "lseek", .tests = {{.argument = 2, .value = 1}}},
                         {.syscall = "lseek",
                          .tests = {{.argument = 0, .comparison = Comparison::less, .value = 3},
                                    {.argument = 2, .value = 2}},
                          .error = EBADF},
                         {.syscall = "close", .error = ENOSYS}}});

  EXPECT_EQ(verdict(filter, {.number = SYS_lseek, .arguments = {9, 9, 1}}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_lseek, .arguments = {9, 9, 0xffff'ffff'0000'0001}}),
            kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_lseek, .arguments = {2, 9, 2}}), refused(EBADF));
  EXPECT_EQ(verdict(filter, {.number = SYS_lseek, .arguments = {3, 9, 2}}), refused(EPERM));
  EXPECT_EQ(verdict(filter, {.number = SYS_close}), refused(ENOSYS));
}

TEST(SeccompPolicy, ARefusalWinsAndCannotBeHiddenByHighBits) {
  const auto filter =
      compile({.allowed = {"ioctl", "read"},
               .refusals = {{.syscall = "ioctl", .argument = 1, .value = 0x5412, .error = EPERM}}});

  EXPECT_EQ(verdict(filter, {.number = SYS_ioctl, .arguments = {0, 0x5413}}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_ioctl, .arguments = {0, 0x5412}}), refused(EPERM));
  EXPECT_EQ(verdict(filter, {.number = SYS_ioctl, .arguments = {0, 0x1'0000'5412}}),
            refused(EPERM));
  EXPECT_EQ(verdict(filter, {.number = SYS_read, .arguments = {0, 0x5412}}), kAllow);
}

TEST(SeccompPolicy, ReportsNamesItDoesNotKnow) {
  std::vector<std::string> unknown;
  const auto filter = compile({.allowed = {"read", "teleport"}}, &unknown);

  EXPECT_EQ(unknown, std::vector<std::string>{"teleport"});
  EXPECT_EQ(verdict(filter, {.number = SYS_read}), kAllow);
}

TEST(SeccompPolicy, ARefusalHasItsOwnErrorEvenWhereAllElseIsRefused) {
  const auto filter =
      compile({.refusals = {{.syscall = "ioctl", .argument = 1, .value = 7, .error = EIO},
                            {.syscall = "ioctl", .argument = 1, .value = 8, .error = EBADF}}});

  EXPECT_EQ(verdict(filter, {.number = SYS_ioctl, .arguments = {0, 7}}), refused(EIO));
  EXPECT_EQ(verdict(filter, {.number = SYS_ioctl, .arguments = {0, 8}}), refused(EBADF));
  EXPECT_EQ(verdict(filter, {.number = SYS_ioctl, .arguments = {0, 9}}), refused(EPERM));
}

TEST(SeccompPolicy, CanAllowAllButSome) {
  const auto filter = compile({.default_error = 0, .rules = {{.syscall = "bpf", .error = EPERM}}});

  EXPECT_EQ(verdict(filter, {.number = SYS_read}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_bpf}), refused(EPERM));
}

TEST(SeccompPolicy, RefusesToDecideTwice) {
  EXPECT_THROW(compile({.allowed = {"read", "read"}}), Error);
  EXPECT_THROW(compile({.allowed = {"read"}, .rules = {{.syscall = "read", .error = EIO}}}), Error);
  EXPECT_THROW(compile({.newest_syscall = 3, .allowed = {"ioctl"}}), Error);
}

// Asks libseccomp for the name of every number, and the policy for every name.
TEST(DefaultSeccompPolicy, AnswersEveryNumberAsTheListsSay) {
  const SeccompPolicy& policy = default_seccomp_policy();
  const auto filter = compile(policy);

  int known = 0;
  for (int number = 0; number < 2000; ++number) {
    const std::unique_ptr<char, void (*)(void*)> name(
        ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number), std::free);
    const bool has_rules = name && std::ranges::find(policy.rules, name.get(),
                                                     &SeccompRule::syscall) != policy.rules.end();
    const bool is_new = !name && number <= static_cast<int>(policy.newest_syscall);
    if (has_rules || is_new) continue;
    const bool allowed =
        name && std::ranges::find(policy.allowed, name.get()) != policy.allowed.end();
    const int error = number > static_cast<int>(policy.newest_syscall) ? ENOSYS : EPERM;
    EXPECT_EQ(verdict(filter, {.number = number}), allowed ? kAllow : refused(error)) << number;
    known += allowed ? 1 : 0;
  }
  EXPECT_GT(known, 200);
  // A tracer that calls a call off leaves -1.
  EXPECT_EQ(verdict(filter, {.number = -1}), refused(EPERM));
}

TEST(DefaultSeccompPolicy, KnowsEveryNameItUses) {
  std::vector<std::string> unknown;
  const auto filter = compile(default_seccomp_policy(), &unknown);

#if defined(__x86_64__)
  EXPECT_TRUE(unknown.empty()) << unknown.front();
#endif
  EXPECT_LT(filter.size(), 300U);  // installing takes time by length
}

TEST(DefaultSeccompPolicy, NamesNothingTwice) {
  std::vector<std::string> names = default_seccomp_policy().allowed;
  for (const SeccompRule& rule : default_seccomp_policy().rules) {
    EXPECT_EQ(std::ranges::count(names, rule.syscall), 0) << rule.syscall;
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(DefaultSeccompPolicy, RefusesTheRoadsOut) {
  const auto filter = compile(default_seccomp_policy());

  for (const int number : {SYS_io_uring_setup,
                           SYS_io_uring_enter,
                           SYS_io_uring_register,
                           SYS_userfaultfd,
                           SYS_bpf,
                           SYS_keyctl,
                           SYS_add_key,
                           SYS_request_key,
                           SYS_perf_event_open,
                           SYS_mount,
                           SYS_umount2,
                           SYS_pivot_root,
                           SYS_fsopen,
                           SYS_fsconfig,
                           SYS_fsmount,
                           SYS_fspick,
                           SYS_move_mount,
                           SYS_open_tree,
                           SYS_mount_setattr,
                           SYS_unshare,
                           SYS_setns,
                           SYS_kexec_load,
                           SYS_init_module,
                           SYS_finit_module,
                           SYS_delete_module,
                           SYS_open_by_handle_at,
                           SYS_reboot,
                           SYS_swapon,
                           SYS_settimeofday,
                           SYS_clock_settime,
                           SYS_syslog,
                           SYS_pidfd_getfd,
                           SYS_kcmp,
                           SYS_acct,
                           SYS_sethostname,
                           SYS_quotactl,
                           SYS_fanotify_init,
                           SYS_process_madvise,
                           SYS_mbind,
                           467}) {
    EXPECT_EQ(verdict(filter, {.number = number}), refused(EPERM)) << number;
  }
  EXPECT_EQ(verdict(filter, {.number = SYS_clone3}), refused(ENOSYS));
  EXPECT_EQ(verdict(filter, {.number = 457}), refused(ENOSYS));
}

TEST(DefaultSeccompPolicy, ClonesWithoutNamespacesOnly) {
  const auto filter = compile(default_seccomp_policy());

  EXPECT_EQ(verdict(filter, {.number = SYS_clone, .arguments = {17}}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_clone, .arguments = {0x3d0f00}}), kAllow);  // a thread
  for (const std::uint64_t flag : {0x20000ULL, 0x2000000ULL, 0x4000000ULL, 0x8000000ULL,
                                   0x10000000ULL, 0x20000000ULL, 0x40000000ULL}) {
    EXPECT_EQ(verdict(filter, {.number = SYS_clone, .arguments = {flag | 17}}), refused(EPERM));
    EXPECT_EQ(verdict(filter, {.number = SYS_clone, .arguments = {flag | 17 | 1ULL << 40}}),
              refused(EPERM));
  }
}

TEST(DefaultSeccompPolicy, KnowsFourFamiliesOfSockets) {
  const auto filter = compile(default_seccomp_policy());

  for (std::uint64_t family = 0; family < 64; ++family) {
    const bool known =
        family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    const std::uint32_t answer = refused(family > AF_NETLINK ? EAFNOSUPPORT : EPERM);
    EXPECT_EQ(verdict(filter, {.number = SYS_socket, .arguments = {family}}),
              known ? kAllow : answer)
        << family;
    EXPECT_EQ(verdict(filter, {.number = SYS_socketpair, .arguments = {family}}),
              family == AF_UNIX ? kAllow : answer)
        << family;
    // Stray high bits hide nothing.
    const Call disguised{.number = SYS_socket, .arguments = {family | 1ULL << 32}};
    if (!known) EXPECT_EQ(verdict(filter, disguised), refused(EAFNOSUPPORT)) << family;
  }
}

TEST(DefaultSeccompPolicy, KnowsFivePersonalities) {
  const auto filter = compile(default_seccomp_policy());
  constexpr std::uint64_t kNoRandomization = 0x40000;

  EXPECT_EQ(verdict(filter, {.number = SYS_personality, .arguments = {0}}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_personality, .arguments = {0xffffffff}}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_personality, .arguments = {~0ULL}}), kAllow);
  EXPECT_EQ(verdict(filter, {.number = SYS_personality, .arguments = {kNoRandomization}}),
            refused(EPERM));
}

// The kernel takes the stricter verdict of two filters, which has the smaller action number; of two
// errors that of the filter installed last.
std::uint32_t verdict_of_both(const std::vector<sock_filter>& first,
                              const std::vector<sock_filter>& last, const Call& call) {
  const std::uint32_t one = verdict(first, call);
  const std::uint32_t other = verdict(last, call);
  const auto action = [](std::uint32_t value) {
    return static_cast<std::int32_t>(value & SECCOMP_RET_ACTION_FULL);
  };
  return action(one) < action(other) ? one : other;
}

TEST(SplitPolicy, IsTheDefaultPolicyInTwoHalves) {
  const auto whole = compile(default_seccomp_policy());
  const SplitPolicy split = split_default_policy(/*keep_clone3=*/false);
  const auto common = compile(split.common);
  const auto closing = compile(split.closing);

  for (int number = 0; number < 520; ++number) {
    for (const std::uint64_t argument :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{AF_PACKET}, std::uint64_t{AF_VSOCK},
          std::uint64_t{CLONE_NEWUSER}, std::uint64_t{TIOCSTI}, ~std::uint64_t{0}}) {
      Call call{.number = number};
      std::fill(std::begin(call.arguments), std::end(call.arguments), argument);
      EXPECT_EQ(verdict_of_both(common, closing, call), verdict(whole, call))
          << number << " with " << argument;
    }
  }
}

TEST(SplitPolicy, KeepsCloneThreeForThoseWhoNeedIt) {
  const auto closing = compile(split_default_policy(/*keep_clone3=*/true).closing);
  EXPECT_EQ(verdict(closing, {.number = SYS_clone3}), kAllow);
  EXPECT_EQ(verdict(closing, {.number = SYS_mount}), refused(EPERM));
}

// Who builds a root covers what was there; taking it away is for the nursery's maker.
TEST(SplitPolicy, TakesNoMountAway) {
  const auto common = compile(split_default_policy(/*keep_clone3=*/false).common);
  EXPECT_EQ(verdict(common, {.number = SYS_move_mount}), kAllow);
  EXPECT_EQ(verdict(common, {.number = SYS_umount2}), refused(EPERM));
  EXPECT_EQ(verdict(common, {.number = SYS_pivot_root}), refused(EPERM));
}

TEST(MakerPolicy, AllowsMountsAndNoModules) {
  const auto program = compile(maker_seccomp_policy());
  EXPECT_EQ(verdict(program, {.number = SYS_mount_setattr}), kAllow);
  EXPECT_EQ(verdict(program, {.number = SYS_setns}), kAllow);
  EXPECT_EQ(verdict(program, {.number = SYS_umount2}), kAllow);
  EXPECT_EQ(verdict(program, {.number = SYS_pivot_root}), kAllow);
  EXPECT_EQ(verdict(program, {.number = SYS_init_module}), refused(EPERM));
  EXPECT_EQ(verdict(program, {.number = SYS_bpf}), refused(EPERM));
  EXPECT_EQ(verdict(program, {.number = SYS_reboot}), refused(EPERM));
}

}  // namespace
}  // namespace hearth::linux
