#include "linux/seccomp_policy.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "linux/fd.h"

namespace hearth::linux {
namespace {

// Calls that Debian 12's libseccomp 2.5.4 has not heard of. New calls have had one number on all
// architectures since 424 (except alpha).
struct NewSyscall {
  std::string_view name;
  int number;
};
constexpr NewSyscall kNewSyscalls[] = {
    {"cachestat", 451},         {"fchmodat2", 452},        {"map_shadow_stack", 453},
    {"futex_wake", 454},        {"futex_wait", 455},       {"futex_requeue", 456},
    {"statmount", 457},         {"listmount", 458},        {"lsm_get_self_attr", 459},
    {"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
    {"setxattrat", 463},        {"getxattrat", 464},       {"listxattrat", 465},
    {"removexattrat", 466},     {"open_tree_attr", 467},   {"file_getattr", 468},
    {"file_setattr", 469},
#if defined(__x86_64__)
    {"uretprobe", 335},
#endif
};

// Where x32's numbers begin on x86-64 (__X32_SYSCALL_BIT).
constexpr std::uint32_t kX32Bit = 0x4000'0000;

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Context = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, Release>;

// libseccomp answers with a negative errno.
void check(int result, std::string_view what) {
  if (result < 0) throw_errno_text(-result, fmt::format("compile a seccomp policy: {}", what));
}

std::optional<int> number_of(const std::string& name) {
  const int number = ::seccomp_syscall_resolve_name(name.c_str());
  // Below -1: a call of other architectures.
  if (number >= 0) return number;
  for (const NewSyscall& known : kNewSyscalls) {
    if (known.name == name) return known.number;
  }
  return std::nullopt;
}

scmp_arg_cmp argument_of(const SeccompTest& test) {
  switch (test.comparison) {
    case Comparison::masked_equal:
      return {test.argument, SCMP_CMP_MASKED_EQ, test.mask, test.value};
    case Comparison::less:
      return {test.argument, SCMP_CMP_LT, test.value, 0};
    case Comparison::greater:
      return {test.argument, SCMP_CMP_GT, test.value, 0};
  }
  fail(Code::invalid, "a seccomp rule compares in an unknown way");
}

// libseccomp's numbers for these are the kernel's.
static_assert(SCMP_ACT_ALLOW == SECCOMP_RET_ALLOW && SCMP_ACT_ERRNO(1) == (SECCOMP_RET_ERRNO | 1));

std::uint32_t action_of(int error) {
  return error == 0 ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error));
}

// What becomes of every call whose number is `first` or more, up to the next run's first.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t action = 0;
};
// Stands for an action that depends on arguments, and for the distance to where they are looked at:
// a value that neither can have.
constexpr std::uint32_t kAsk = 0x0000'dead;

// The program is in two parts:
//
//   1. the architecture, then a search over runs of neighbouring numbers that share a fate, which
//      is known for all but a few of them: 72 runs where libseccomp tests 300 numbers one by one,
//      and half the time to install (80 against 165 us on Linux 6.18; the kernel runs the program
//      once for every number, to remember which are always allowed);
//   2. for those few the refusals, and after them what libseccomp makes of their rules.
class Compiler {
 public:
  Compiler(const SeccompPolicy& policy, std::vector<std::string>* unknown)
      : policy_(policy), unknown_(unknown) {}

  std::vector<sock_filter> compile() {
    decide();
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, ::seccomp_arch_native(), 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    std::vector<sock_filter> tree = search(runs());
    for (std::size_t at = 0; at < tree.size(); ++at) {
      const bool ask = tree[at].code == (BPF_JMP | BPF_JA) && tree[at].k == kAsk;
      if (ask) tree[at].k = static_cast<std::uint32_t>(tree.size() - at - 1);
    }
    append(tree);
    for (const SeccompRefusal& refusal : policy_.refusals) add_refusal(refusal);
    append(compile_asked());
    if (program_.size() > BPF_MAXINSNS) {
      fail(Code::invalid, "a seccomp policy of {} instructions is too long", program_.size());
    }
    return std::move(program_);
  }

 private:
  std::optional<std::uint32_t> find(const std::string& name) {
    const std::optional<int> number = number_of(name);
    if (number) return static_cast<std::uint32_t>(*number);
    if (unknown_ != nullptr && std::ranges::find(*unknown_, name) == unknown_->end()) {
      unknown_->push_back(name);
    }
    return std::nullopt;
  }

  void decide(const std::string& name, std::uint32_t action) {
    const auto number = find(name);
    if (!number) return;
    const auto [known, is_new] = actions_.emplace(*number, action);
    if (!is_new && (known->second != action || action != kAsk)) {
      fail(Code::invalid, "a seccomp policy decides twice on '{}'", name);
    }
  }

  void decide() {
    for (const std::string& name : policy_.allowed) decide(name, SECCOMP_RET_ALLOW);
    for (const SeccompRule& rule : policy_.rules) {
      decide(rule.syscall, rule.tests.empty() ? action_of(rule.error) : kAsk);
    }
    for (const SeccompRefusal& refusal : policy_.refusals) {
      const auto number = find(refusal.syscall);
      if (!number) continue;
      std::uint32_t& action =
          actions_.emplace(*number, action_of(policy_.default_error)).first->second;
      if (action != kAsk) fixed_otherwise_.emplace(*number, action);
      action = kAsk;
    }
  }

  std::vector<Run> runs() const {
    const std::uint32_t fallback = action_of(policy_.default_error);
    std::vector<Run> runs = {{.first = 0, .action = fallback}};
    const auto add = [&runs](std::uint32_t first, std::uint32_t action) {
      if (runs.back().first == first) runs.pop_back();
      if (runs.empty() || runs.back().action != action) runs.push_back({first, action});
    };
    for (const auto& [number, action] : actions_) {
      add(number, action);
      add(number + 1, fallback);
    }
    if (policy_.newest_syscall != 0) {
      const std::uint32_t future = policy_.newest_syscall + 1;
      if (runs.back().first > future) {
        fail(Code::invalid, "a seccomp policy knows calls newer than {}", policy_.newest_syscall);
      }
      add(future, action_of(ENOSYS));
    }
#if defined(__x86_64__)
    add(kX32Bit, SECCOMP_RET_KILL_PROCESS);
    // No number: a tracer has called the call off.
    add(0xffff'ffff, fallback);
#endif
    return runs;
  }

  // A binary search for the run that the number in the accumulator belongs to.
  static std::vector<sock_filter> search(std::span<const Run> runs) {
    if (runs.size() == 1) {
      const bool ask = runs[0].action == kAsk;
      return {ask ? sock_filter BPF_STMT(BPF_JMP | BPF_JA, kAsk)
                  : sock_filter BPF_STMT(BPF_RET | BPF_K, runs[0].action)};
    }
    const std::size_t middle = runs.size() / 2;
    std::vector<sock_filter> below = search(runs.first(middle));
    const std::vector<sock_filter> above = search(runs.subspan(middle));
    // A condition jumps over 255 instructions at most.
    std::vector<sock_filter> all;
    if (below.size() <= 255) {
      all.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, runs[middle].first,
                             static_cast<unsigned char>(below.size()), 0));
    } else {
      all.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, runs[middle].first, 0, 1));
      all.push_back(BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(below.size())));
    }
    all.insert(all.end(), below.begin(), below.end());
    all.insert(all.end(), above.begin(), above.end());
    return all;
  }

  void append(const std::vector<sock_filter>& part) {
    program_.insert(program_.end(), part.begin(), part.end());
  }
  void load(std::size_t offset) {
    program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  void jump(unsigned condition, std::uint32_t value, unsigned char then, unsigned char otherwise) {
    program_.push_back(
        BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | condition | BPF_K), value, then, otherwise));
  }
  void answer(std::uint32_t action) { program_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  void add_refusal(const SeccompRefusal& refusal) {
    const std::optional<int> number = number_of(refusal.syscall);
    if (!number) return;
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");
    load(offsetof(seccomp_data, nr));
    jump(BPF_JEQ, static_cast<std::uint32_t>(*number), 0, 3);
    load(offsetof(seccomp_data, args) + refusal.argument * sizeof(std::uint64_t));
    jump(BPF_JEQ, refusal.value, 0, 1);
    answer(action_of(refusal.error));
  }

  std::vector<sock_filter> compile_asked() const {
    const Context context(::seccomp_init(action_of(policy_.default_error)));
    if (!context) fail(Code::internal, "compile a seccomp policy: no memory");
    check(::seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
          "kill foreign architectures");
    constexpr std::uint32_t kBinaryTree = 2;
    check(::seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, kBinaryTree), "optimize");
    for (const auto& [number, action] : fixed_otherwise_) {
      if (action == action_of(policy_.default_error)) continue;
      check(::seccomp_rule_add_array(context.get(), action, static_cast<int>(number), 0, nullptr),
            "what is refused in part");
    }
    for (const SeccompRule& rule : policy_.rules) {
      const std::optional<int> number = number_of(rule.syscall);
      if (!number || rule.tests.empty()) continue;
      std::vector<scmp_arg_cmp> arguments;
      arguments.reserve(rule.tests.size());
      for (const SeccompTest& test : rule.tests) arguments.push_back(argument_of(test));
      check(::seccomp_rule_add_array(context.get(), action_of(rule.error), *number,
                                     static_cast<unsigned>(arguments.size()), arguments.data()),
            rule.syscall);
    }
    return export_program(context);
  }

  static std::vector<sock_filter> export_program(const Context& context) {
    const Fd file(::memfd_create("seccomp", MFD_CLOEXEC));
    if (!file) throw_errno("make a memfd");
    check(::seccomp_export_bpf(context.get(), file.get()), "export");
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    if (size < 0) throw_errno("read a seccomp program");
    std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
    if (::pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size) {
      throw_errno("read a seccomp program");
    }
    return program;
  }

  const SeccompPolicy& policy_;
  std::vector<std::string>* unknown_;
  std::map<std::uint32_t, std::uint32_t> actions_;          // by number
  std::map<std::uint32_t, std::uint32_t> fixed_otherwise_;  // of those with refusals
  std::vector<sock_filter> program_;
};

}  // namespace

std::vector<sock_filter> compile(const SeccompPolicy& policy, std::vector<std::string>* unknown) {
  return Compiler(policy, unknown).compile();
}

int install_filter(std::span<const sock_filter> filter, FilterReach reach) noexcept {
  // The kernel does not write to the program.
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()),
                           .filter = const_cast<sock_filter*>(filter.data())};
  const unsigned flags = reach == FilterReach::all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0;
  const long result = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (result > 0) return ESRCH;  // a thread that has other filters
  return result == 0 ? 0 : errno;
}

}  // namespace hearth::linux
