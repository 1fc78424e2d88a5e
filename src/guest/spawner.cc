#include "guest/spawner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "base/error.h"
#include "base/wire.h"

namespace hearth::guest {
namespace {

// What the newborn reads and writes. It runs in the spawner's memory while the spawner stands still
// (CLONE_VFORK), so plain pointers do, and its failure is left here too.
struct Birth {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<std::string> candidates;  // paths to try, in order
  const SpawnPlan* plan = nullptr;
  std::array<int, 3> stdio{};
  SpawnStep failed = SpawnStep::none;
  int error = 0;
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
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

bool is_current_user(const SpawnPlan& plan) {
  return ::geteuid() != 0 && ::geteuid() == plan.uid && ::getegid() == plan.gid;
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

// From birth to execve. Runs in the spawner's memory.
int be_born(void* argument) {
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
  if (plan.terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) fail_at(SpawnStep::set_up);
  if (!is_current_user(plan) && !become_user(plan)) fail_at(SpawnStep::user);
  if (::chdir(plan.directory.c_str()) != 0) fail_at(SpawnStep::directory);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(birth);
  fail_at(SpawnStep::program);
  return 0;
}

SpawnResult spawn(SpawnPlan plan, const std::array<int, 3>& stdio) {
  Birth birth;
  birth.arguments = pointers_to(plan.command);
  birth.environment = pointers_to(plan.environment);
  birth.candidates = candidates_for(plan);
  birth.plan = &plan;
  birth.stdio = stdio;

  alignas(16) static std::array<char, std::size_t{64} << 10> stack;
  const pid_t pid = ::clone(be_born, stack.data() + stack.size(),
                            CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, &birth);
  if (pid < 0) return {.pid = 0, .failed = SpawnStep::process, .error = errno};
  // A newborn that failed is reaped by the guest, whose child it was.
  return {.pid = pid, .failed = birth.failed, .error = birth.error};
}

}  // namespace

std::string encode(const SpawnPlan& plan) {
  wire::Writer out;
  out.texts(plan.command).texts(plan.environment).text(plan.directory).u32(plan.uid).u32(plan.gid);
  out.u32(static_cast<std::uint32_t>(plan.groups.size()));
  for (const std::uint32_t group : plan.groups) out.u32(group);
  out.boolean(plan.terminal);
  return std::move(out).take();
}

SpawnPlan parse_spawn_plan(std::string_view bytes) {
  wire::Reader in(bytes);
  SpawnPlan plan;
  plan.command = in.texts();
  plan.environment = in.texts();
  plan.directory = in.text();
  plan.uid = in.u32();
  plan.gid = in.u32();
  const std::uint32_t groups = in.u32();
  if (groups > NGROUPS_MAX) fail(Code::invalid, "{} groups", groups);
  for (std::uint32_t i = 0; i < groups; ++i) plan.groups.push_back(in.u32());
  plan.terminal = in.boolean();
  in.end();
  if (plan.command.empty()) fail(Code::invalid, "no command");
  return plan;
}

std::string encode(const SpawnResult& result) {
  wire::Writer out;
  out.u32(static_cast<std::uint32_t>(result.pid))
      .u8(static_cast<std::uint8_t>(result.failed))
      .u32(static_cast<std::uint32_t>(result.error));
  return std::move(out).take();
}

SpawnResult parse_spawn_result(std::string_view bytes) {
  wire::Reader in(bytes);
  SpawnResult result;
  result.pid = static_cast<pid_t>(in.u32());
  result.failed = static_cast<SpawnStep>(in.u8());
  result.error = static_cast<int>(in.u32());
  in.end();
  return result;
}

void run_spawner(linux::Channel channel, std::span<const int> join_fds) {
  for (const int fd : join_fds) {
    if (::write(fd, "0", 1) != 1) throw_errno("join a cgroup");
    ::close(fd);
  }
  while (auto request = channel.receive()) {
    if (request->fds.size() != 3)
      fail(Code::internal, "spawn request with {} fds", request->fds.size());
    const std::array stdio = {request->fds[0].get(), request->fds[1].get(), request->fds[2].get()};
    const SpawnResult result = spawn(parse_spawn_plan(request->bytes), stdio);
    // Closed before the answer: who hears of an end may expect the end of its output too.
    request->fds.clear();
    channel.send(encode(result));
  }
}

}  // namespace hearth::guest
