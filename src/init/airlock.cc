#include "init/airlock.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/error.h"
#include "linux/clone.h"

namespace hearth::init {
namespace {

using linux::raw_syscall;

// Standard streams, the guest's own, and a file for each cgroup hierarchy there could be.
constexpr std::size_t kMaxFds = 32;

template <typename T>
long address(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// nullptr where mount(2) wants none.
long text(const std::string& value) {
  return value.empty() ? 0 : address(value.c_str());
}

long make_file(const Step& step) {
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, text(step.target),
                              O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
  return fd < 0 ? fd : raw_syscall(SYS_close, fd);
}

long attach(long mount_fd, const char* target) {
  return raw_syscall(SYS_move_mount, mount_fd, address(""), AT_FDCWD, address(target),
                     MOVE_MOUNT_F_EMPTY_PATH);
}

// Hands "key=value,key=value" to a file system being configured. The text is cut up on the stack:
// the plan itself is not ours to write to.
long configure(long context, const std::string& options) {
  char copy[256];
  if (options.size() >= sizeof copy) return -ENAMETOOLONG;
  for (std::size_t i = 0; i <= options.size(); ++i) copy[i] = options.c_str()[i];
  char* key = copy;
  while (*key != '\0') {
    char* value = key;
    while (*value != '=' && *value != '\0') ++value;
    char* end = value;
    while (*end != ',' && *end != '\0') ++end;
    const bool last = *end == '\0';
    if (*value == '=') *value++ = '\0';
    *end = '\0';
    const long result =
        raw_syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, address(key), address(value), 0);
    if (result < 0) return result;
    key = last ? end : end + 1;
  }
  return raw_syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
}

// The working folder came with us into this mount namespace, while the way to it may be closed to
// the sandbox's root.
long enter_tmpfs(const Step& step) {
  const long context = raw_syscall(SYS_fsopen, address("tmpfs"), FSOPEN_CLOEXEC);
  if (context < 0) return context;
  long result = configure(context, step.options);
  if (result < 0) return result;
  const long mount =
      raw_syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
  if (mount < 0) return mount;
  result = attach(mount, ".");
  if (result < 0) return result;
  result = raw_syscall(SYS_fchdir, mount);
  raw_syscall(SYS_close, mount);
  raw_syscall(SYS_close, context);
  return result;
}

// pivot_root(2) with both arguments the same stacks the new root on the old one, which is then
// unmounted with all that lies below it.
long enter_root(const Step& step) {
  long result = raw_syscall(SYS_chdir, text(step.target));
  if (result < 0) return result;
  result = raw_syscall(SYS_pivot_root, address("."), address("."));
  if (result < 0) return result;
  result = raw_syscall(SYS_umount2, address("."), MNT_DETACH);
  return result < 0 ? result : raw_syscall(SYS_chdir, address("/"));
}

long take(const Step& step) {
  switch (step.kind) {
    case Step::Kind::folder:
      return raw_syscall(SYS_mkdirat, AT_FDCWD, text(step.target), static_cast<long>(step.flags));
    case Step::Kind::file:
      return make_file(step);
    case Step::Kind::symlink:
      return raw_syscall(SYS_symlinkat, text(step.source), AT_FDCWD, text(step.target));
    case Step::Kind::mount:
      return raw_syscall(SYS_mount, text(step.source), text(step.target), text(step.type),
                         static_cast<long>(step.flags), text(step.options));
    case Step::Kind::attach:
      return attach(step.fd, step.target.c_str());
    case Step::Kind::enter_tmpfs:
      return enter_tmpfs(step);
    case Step::Kind::enter_root:
      return enter_root(step);
  }
  return -EINVAL;
}

// Until now the child's ids are not mapped, it is nobody with all capabilities.
long take_identity() {
  long result = raw_syscall(SYS_setresgid, 0, 0, 0);
  if (result == 0) result = raw_syscall(SYS_setgroups, 0, 0);
  if (result == 0) result = raw_syscall(SYS_setresuid, 0, 0, 0);
  return result;
}

// Out of the way of the low numbers that others are about to get. Negative error.
long move_up(int fd) {
  return raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kMaxFds);
}

// `fds` become 0, 1, 2, ... and stay open across exec; everything else is closed then.
long place_descriptors(const std::vector<int>& fds) {
  long high[kMaxFds];
  for (std::size_t i = 0; i < fds.size(); ++i) {
    high[i] = move_up(fds[i]);
    if (high[i] < 0) return high[i];
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const long result = raw_syscall(SYS_dup3, high[i], static_cast<long>(i), 0);
    if (result < 0) return result;
  }
  return raw_syscall(SYS_close_range, static_cast<long>(fds.size()), ~0U, CLOSE_RANGE_CLOEXEC);
}

[[noreturn]] void give_up(long boot_fd, std::uint32_t step, long result) {
  const Failure failure{.step = step, .error = static_cast<std::int32_t>(-result)};
  raw_syscall(SYS_sendto, boot_fd, address(&failure), sizeof failure, MSG_NOSIGNAL, 0, 0);
  while (true) raw_syscall(SYS_exit_group, 1);
}

}  // namespace

Airlock::Airlock(Plan plan) : plan_(std::move(plan)) {
  HEARTH_ASSERT(plan_.fds.size() <= kMaxFds);
  for (std::string& argument : plan_.command) arguments_.push_back(argument.data());
  arguments_.push_back(nullptr);
}

void Airlock::enter(void* airlock) {
  const Airlock& self = *static_cast<const Airlock*>(airlock);
  const Plan& plan = self.plan_;
  raw_syscall(SYS_close, plan.parent_fd);
  char go = 0;
  // A parent that closes the socket instead has changed its mind, or died.
  if (raw_syscall(SYS_recvfrom, plan.boot_fd, address(&go), 1, 0, 0, 0) != 1) {
    while (true) raw_syscall(SYS_exit_group, 1);
  }

  long result = take_identity();
  if (result < 0) give_up(plan.boot_fd, Failure::kIdentity, result);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    result = take(plan.steps[i]);
    if (result < 0) give_up(plan.boot_fd, static_cast<std::uint32_t>(i), result);
  }
  const long boot_fd = move_up(plan.boot_fd);
  const long program_fd = move_up(plan.program_fd);
  if (boot_fd < 0 || program_fd < 0) give_up(plan.boot_fd, Failure::kDescriptors, -EMFILE);
  result = place_descriptors(plan.fds);
  if (result < 0) give_up(boot_fd, Failure::kDescriptors, result);

  char* const environment[] = {nullptr};
  result = raw_syscall(SYS_execveat, program_fd, address(""), address(self.arguments_.data()),
                       address(environment), AT_EMPTY_PATH);
  give_up(boot_fd, Failure::kExecute, result);
}

std::string Airlock::describe(const Failure& failure) const {
  std::string why = errno_text(failure.error);
  if (failure.step == Failure::kIdentity) return "become root of the user namespace: " + why;
  if (failure.step == Failure::kExecute) return "execute the first program: " + why;
  if (failure.step == Failure::kDescriptors) return "place the descriptors: " + why;
  if (failure.step >= plan_.steps.size()) return fmt::format("step {}: {}", failure.step, why);
  const Step& step = plan_.steps[failure.step];
  switch (step.kind) {
    case Step::Kind::folder:
      return fmt::format("make folder '{}': {}", step.target, why);
    case Step::Kind::file:
      return fmt::format("make file '{}': {}", step.target, why);
    case Step::Kind::symlink:
      return fmt::format("make link '{}': {}", step.target, why);
    case Step::Kind::mount:
      return fmt::format("mount {} '{}' on '{}' ({}): {}", step.type, step.source, step.target,
                         step.options, why);
    case Step::Kind::attach:
      return fmt::format("attach a layer at '{}': {}", step.target, why);
    case Step::Kind::enter_tmpfs:
      return fmt::format("mount the writable layer ({}): {}", step.options, why);
    case Step::Kind::enter_root:
      return fmt::format("make '{}' the root: {}", step.target, why);
  }
  return why;
}

}  // namespace hearth::init
