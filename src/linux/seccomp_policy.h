// System call filters: a policy as data, compiled once, installed many times.
//
// A compiled policy lets pass what it names and answers everything else with an errno. Calls made
// through another architecture's entry (i386 on x86-64, the x32 numbers) kill the process: their
// numbers mean something else. See seccomp(2).
#pragma once

#include <linux/filter.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::linux {

enum class Comparison {
  masked_equal,  // (argument & mask) == value
  less,          // argument < value, all 64 bits
  greater,       // argument > value, all 64 bits
};
// There is no "not equal", on purpose. The kernel looks at the low 32 bits of most arguments, a
// filter at all 64: whatever is refused by "not equal" gets through with a high bit set
// (CVE-2019-10063). Use SeccompRefusal.

struct SeccompTest {
  unsigned argument = 0;  // 0 to 5
  Comparison comparison = Comparison::masked_equal;
  std::uint64_t value = 0;
  std::uint64_t mask = 0xffff'ffff;  // what an int is to the kernel
};

// Applies when all tests hold. Rules of one system call that overlap must agree, or either may win.
struct SeccompRule {
  std::string syscall;
  std::vector<SeccompTest> tests;
  int error = 0;  // 0: allowed
};

// Looked at before everything else: `syscall` is refused when the low 32 bits of `argument` are
// `value`, whatever the rest of the policy says.
struct SeccompRefusal {
  std::string syscall;
  unsigned argument = 0;
  std::uint32_t value = 0;
  int error = EPERM;
};

struct SeccompPolicy {
  int default_error = EPERM;
  // The highest system call number that whoever wrote this had heard of; those above are answered
  // with ENOSYS, because programs fall back to older calls on that and on nothing else. 0: no such
  // rule.
  unsigned newest_syscall = 0;
  std::vector<std::string> allowed;
  std::vector<SeccompRule> rules;
  std::vector<SeccompRefusal> refusals;
};

// The policy as a filter program, searched as a binary tree (a fifth of the time to install, and
// the same few steps for every call). Names that this architecture or libseccomp does not know are
// left out, thus refused, and appended to `unknown` if given. Takes a millisecond: do it once.
// Throws Error(invalid) for a policy that decides twice on a call.
std::vector<sock_filter> compile(const SeccompPolicy& policy,
                                 std::vector<std::string>* unknown = nullptr);

enum class FilterReach { calling_thread, all_threads };

// Puts the calling thread (or all threads of the process, which must have the same filters so far),
// and all it will ever start, under the filter. Needs no_new_privs or SYS_ADMIN. Returns 0 or an
// errno; allocates nothing, takes no lock: for between clone and exec.
int install_filter(std::span<const sock_filter> filter,
                   FilterReach reach = FilterReach::calling_thread) noexcept;

// What programs in a container may ask of the kernel; see seccomp_default.cc for what and why.
const SeccompPolicy& default_seccomp_policy();

// What the process that makes containers may ask of the kernel: what they may, and what it takes to
// make them. No modules, no programs for the kernel, no clock, no keys, no reboot.
SeccompPolicy maker_seccomp_policy();

// The default policy in two halves, because installing it takes longer than everything else about
// a warm sandbox: `common` also allows what it takes to make one, is installed once and inherited
// by all; `closing` takes just that away again. Under both, a process is where the default policy
// would have it.
struct SplitPolicy {
  SeccompPolicy common;
  SeccompPolicy closing;
};
// `keep_clone3`: for a guest that starts its commands with it. What namespaces it could make is
// then for others to prevent.
SplitPolicy split_default_policy(bool keep_clone3);

}  // namespace hearth::linux
