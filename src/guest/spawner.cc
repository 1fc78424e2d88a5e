#include "guest/spawner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "base/error.h"
#include "guest/confine.h"
#include "linux/clone.h"

namespace hearth::guest {

// What the newborn reads and writes. It runs in our memory while the thread stands still
// (CLONE_VFORK), so plain pointers do, and its failure is left here too.
//
// Made by who asks for it: the spawner's thread allocates nothing. Its first piece of memory would
// come with an arena of its own, three system calls and as many page faults before the first
// command of a sandbox.
struct Birth {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<std::string> candidates;  // paths to try, in order
  const SpawnPlan* plan = nullptr;
  std::array<int, 3> stdio{};
  SpawnStep failed = SpawnStep::none;
  int error = 0;
};

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 2);  // one more for a shell, see execute()
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Where execvp(3) would look, with the PATH of the command's own environment.
std::vector<std::string> candidates_for(const SpawnPlan& plan) {
  const std::string& program = plan.command.front();
  if (program.find('/') != std::string::npos) return {program};
  constexpr std::string_view kName = "PATH=";
  const auto path = std::ranges::find_if(
      plan.environment, [&](const std::string& entry) { return entry.starts_with(kName); });
  if (path == plan.environment.end()) return {"/usr/bin/" + program, "/bin/" + program};

  std::vector<std::string> candidates;
  std::string_view rest = std::string_view(*path).substr(kName.size());
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string_view folder = rest.substr(0, end);
    candidates.push_back(fmt::format("{}/{}", folder.empty() ? "." : folder, program));
    if (end == std::string_view::npos) return candidates;
    rest.remove_prefix(end + 1);
  }
}

std::unique_ptr<Birth> make_birth(SpawnPlan& plan, const std::vector<linux::Fd>& stdio) {
  auto birth = std::make_unique<Birth>();
  birth->arguments = pointers_to(plan.command);
  birth->environment = pointers_to(plan.environment);
  birth->candidates = candidates_for(plan);
  birth->plan = &plan;
  for (std::size_t i = 0; i < birth->stdio.size(); ++i) birth->stdio[i] = stdio[i].get();
  return birth;
}

bool move_stdio(Birth& birth) {
  for (int target = 0; target < 3; ++target) {
    const int source = birth.stdio[static_cast<std::size_t>(target)];
    // The sources were received above 2, so none is overwritten before it is used.
    if (::dup2(source, target) < 0) return false;
  }
  return ::syscall(SYS_close_range, 3U, ~0U, 0U) == 0;
}

bool become_user(const SpawnPlan& plan) {
  // The raw calls: glibc's would try to do the same in "all threads" of memory that is not ours.
  return ::syscall(SYS_setgroups, plan.groups.size(), plan.groups.data()) == 0 &&
         ::syscall(SYS_setresgid, plan.gid, plan.gid, plan.gid) == 0 &&
         ::syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) == 0;
}

bool set_limits(const SpawnPlan& plan) {
  for (const linux::ResourceLimit& limit : plan.limits) {
    const rlimit64 wanted{.rlim_cur = limit.soft, .rlim_max = limit.hard};
    if (::syscall(SYS_prlimit64, 0, limit.resource, &wanted, nullptr) != 0) return false;
  }
  return true;
}

bool is_current_user(const SpawnPlan& plan) {
  return ::geteuid() == plan.uid && ::getegid() == plan.gid;
}

// A user that this process is already, without the rights to become anybody (root in somebody
// else's container), needs nothing. Root of a sandbox of ours has them, and differs from its guest
// (confine.h).
bool be_user(const SpawnPlan& plan) {
  if (is_current_user(plan) && ::geteuid() != 0) return true;
  return become_user(plan) || (errno == EPERM && is_current_user(plan));
}

void execute(Birth& birth) {
  int worst = ENOENT;
  for (std::string& path : birth.candidates) {
    ::execve(path.c_str(), birth.arguments.data(), birth.environment.data());
    if (errno == ENOEXEC) {  // a script without an interpreter line is the shell's
      std::vector<char*>& arguments = birth.arguments;
      arguments.front() = path.data();
      arguments.insert(arguments.begin(), const_cast<char*>("/bin/sh"));
      ::execve("/bin/sh", arguments.data(), birth.environment.data());
    }
    if (errno != ENOENT && errno != ENOTDIR) worst = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  errno = worst;
}

// From birth to execve. Runs in our memory.
void be_born(void* argument) {
  Birth& birth = *static_cast<Birth*>(argument);
  const SpawnPlan& plan = *birth.plan;
  const auto fail_at = [&](SpawnStep step) {
    birth.failed = step;
    birth.error = errno;
    ::_exit(127);
  };

  sigset_t none;
  sigemptyset(&none);
  if (::setsid() < 0 || !move_stdio(birth)) fail_at(SpawnStep::set_up);
  if (plan.terminal && ::ioctl(*plan.terminal, TIOCSCTTY, 0) != 0) fail_at(SpawnStep::set_up);
  if (plan.as_root && ::chdir(plan.directory.c_str()) != 0) fail_at(SpawnStep::directory);
  if (!be_user(plan)) fail_at(SpawnStep::user);
  if (!plan.as_root && ::chdir(plan.directory.c_str()) != 0 &&
      !(plan.or_root && ::chdir("/") == 0)) {
    fail_at(SpawnStep::directory);
  }
  // With no_new_privs, executing a program as root gives back nothing that was given up
  // (Linux 6.18, security/commoncap.c, cap_bprm_creds_from_file).
  if (plan.dropped_capabilities != 0) {
    errno =
        linux::give_up_capabilities(linux::CapabilitySet::from_bits(~plan.dropped_capabilities));
    if (errno != 0) fail_at(SpawnStep::set_up);
  }
  // Last: they are the program's, not for what comes before it.
  if (!set_limits(plan)) fail_at(SpawnStep::set_up);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(birth);
  fail_at(SpawnStep::program);
}

}  // namespace

Spawner::Spawner(SpawnPlace place, std::optional<linux::CapabilitySet> keep)
    : place_(std::move(place)), done_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!done_) throw_errno("make an eventfd");
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the serving thread's
  thread_ = std::thread([this, keep] { serve(keep); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  phase_.wait(Phase::starting);
  if (!not_started_) return;
  thread_.join();
  std::rethrow_exception(not_started_);
}

Spawner::~Spawner() {
  if (!thread_.joinable()) return;
  if (phase_.load() == Phase::asked) phase_.wait(Phase::asked);
  set_phase(Phase::ending);
  thread_.join();
}

void Spawner::set_phase(Phase phase) {
  phase_.store(phase);
  phase_.notify_all();
}

void Spawner::enter_limits(std::optional<linux::CapabilitySet> keep) {
  for (const linux::Fd& file : place_.join_files) {
    if (::write(file.get(), "0", 1) != 1) throw_errno("join a cgroup");
  }
  // Only now: its root is where we are.
  if (!place_.join_files.empty() && keep && ::unshare(CLONE_NEWCGROUP) != 0)
    throw_errno("make a cgroup namespace");
  place_.join_files.clear();
  if (!keep) return;
  differ_from_root();
  // For the cgroup namespace of every newborn, who loses it again with execve: it is outside the
  // bounding set.
  if (place_.cgroup) keep->add(CAP_SYS_ADMIN);
  if (const int error = linux::give_up_capabilities(*keep); error != 0)
    throw_errno_text(error, "give up capabilities");
}

void Spawner::serve(std::optional<linux::CapabilitySet> keep) {
  thread_id_ = static_cast<pid_t>(::syscall(SYS_gettid));
  try {
    enter_limits(keep);
  } catch (...) {
    not_started_ = std::current_exception();
    return set_phase(Phase::ending);
  }
  set_phase(Phase::idle);
  while (true) {
    const Phase phase = phase_.load();
    if (phase == Phase::ending) return;
    if (phase != Phase::asked) {
      phase_.wait(phase);
      continue;
    }
    result_ = spawn();
    stdio_.clear();
    const bool nothing_born = result_.pid == 0;
    phase_.store(Phase::done);
    phase_.notify_all();
    // In this order, as tell_after_all() and take_result() are: one of us sees the other.
    if (!tell_ && !nothing_born) continue;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(done_.get(), &one, sizeof one);
  }
}

void Spawner::begin(SpawnPlan plan, std::vector<linux::Fd> stdio, bool tell) {
  HEARTH_ASSERT(!busy_ && stdio.size() == 3);
  newborn_ = 0;
  tell_ = tell;
  busy_ = true;
  plan_ = std::move(plan);
  stdio_ = std::move(stdio);
  birth_ = make_birth(plan_, stdio_);
  set_phase(Phase::asked);
}

std::optional<SpawnResult> Spawner::take_result() {
  // Whether or not there is one: who takes a result before the thread has told of it would find
  // the descriptor readable ever after.
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(done_.get(), &count, sizeof count);
  if (!busy_ || phase_.load() != Phase::done) return std::nullopt;
  busy_ = false;
  return result_;
}

void Spawner::kill_newborn() const {
  // Its pid is not reused before it is reaped, which is up to our caller.
  if (busy_ && phase_.load() == Phase::asked && newborn_ > 0) ::kill(newborn_, SIGKILL);
}

void Spawner::set_cpus(const std::vector<std::uint32_t>& cpus) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) CPU_SET(cpu, &set);
  if (cpus.empty()) return;
  if (::sched_setaffinity(thread_id_, sizeof set, &set) != 0) throw_errno("choose processors");
}

SpawnResult Spawner::spawn() {
  alignas(16) static std::array<std::byte, std::size_t{64} << 10> stack;
  static_assert(sizeof(newborn_) == sizeof(pid_t) && std::atomic<pid_t>::is_always_lock_free);
  const long pid = linux::clone_and_stand_still({.namespaces = place_.cgroup ? CLONE_NEWCGROUP : 0U,
                                                 .cgroup_fd = place_.cgroup.get(),
                                                 .run = be_born,
                                                 .argument = birth_.get(),
                                                 .newborn = reinterpret_cast<pid_t*>(&newborn_)},
                                                stack);
  if (pid < 0) return {.pid = 0, .failed = SpawnStep::process, .error = static_cast<int>(-pid)};
  // A newborn that failed is reaped with all the others.
  return {.pid = static_cast<pid_t>(pid), .failed = birth_->failed, .error = birth_->error};
}

}  // namespace hearth::guest
