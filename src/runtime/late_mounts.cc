#include "runtime/late_mounts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "linux/clone.h"

namespace hearth::runtime {
namespace {

using linux::raw_syscall;

long number_of(const void* pointer) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(pointer));
}

// What the child is to do, and what came of it. It shares our memory and may not allocate
// (linux/clone.h): whatever it needs is here when it is born.
struct Errand {
  struct One {
    int fd = -1;
    std::vector<std::string> path;  // folder by folder
  };
  std::vector<One> mounts;
  int process_fd = -1;
  bool attach = true;

  long error = 0;         // negative
  bool entered = false;   // else it is about the namespaces
  std::size_t which = 0;  // of the mounts
};

// All rights in the sandbox's namespaces, none elsewhere; and its root, so that what is made has an
// owner there.
long enter(const Errand& errand) {
  long error = raw_syscall(SYS_setns, errand.process_fd, CLONE_NEWUSER | CLONE_NEWNS);
  if (error == 0) error = raw_syscall(SYS_setresgid, 0, 0, 0);
  if (error == 0) error = raw_syscall(SYS_setgroups, 0, 0);
  if (error == 0) error = raw_syscall(SYS_setresuid, 0, 0, 0);
  if (error == 0) error = raw_syscall(SYS_umask, 022) < 0 ? -EPERM : 0;
  return error;
}

long open_folder(long above, const char* name) {
  const open_how how{.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                     .mode = 0,
                     .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  return raw_syscall(SYS_openat2, above, number_of(name), number_of(&how), sizeof how);
}

long open_or_make_folder(long above, const char* name) {
  const long found = open_folder(above, name);
  if (found != -ENOENT) return found;
  const long made = raw_syscall(SYS_mkdirat, above, number_of(name), 0755);
  if (made != 0 && made != -EEXIST) return made;
  return open_folder(above, name);
}

// A descriptor, or the error.
long walk_to(const Errand::One& one) {
  long folder = raw_syscall(SYS_openat, AT_FDCWD, number_of("/"), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (const std::string& name : one.path) {
    if (folder < 0) return folder;
    const long next = open_or_make_folder(folder, name.c_str());
    raw_syscall(SYS_close, folder);
    folder = next;
  }
  if (folder < 0) return folder;
  struct statfs status{};
  const long looked = raw_syscall(SYS_fstatfs, folder, number_of(&status));
  const bool kernels = status.f_type == PROC_SUPER_MAGIC || status.f_type == SYSFS_MAGIC;
  if (looked == 0 && !kernels) return folder;
  raw_syscall(SYS_close, folder);
  return looked != 0 ? looked : -ELOOP;
}

long attach(const Errand::One& one) {
  const long place = walk_to(one);
  if (place < 0) return place;
  const long moved = raw_syscall(SYS_move_mount, one.fd, number_of(""), place, number_of(""),
                                 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  raw_syscall(SYS_close, place);
  return moved;
}

// By descriptor: nobody knows what its path is by now.
long detach(const Errand::One& one) {
  const long entered = raw_syscall(SYS_fchdir, one.fd);
  if (entered != 0) return entered;
  const long gone = raw_syscall(SYS_umount2, number_of("."), MNT_DETACH);
  raw_syscall(SYS_chdir, number_of("/"));
  return gone;
}

void attach_all(Errand& errand) {
  for (; errand.which < errand.mounts.size(); ++errand.which) {
    errand.error = attach(errand.mounts[errand.which]);
    if (errand.error != 0) break;
  }
  if (errand.error == 0) return;
  for (std::size_t i = errand.which; i-- > 0;) detach(errand.mounts[i]);
}

void detach_all(Errand& errand) {
  for (std::size_t i = errand.mounts.size(); i-- > 0;) {
    const long error = detach(errand.mounts[i]);
    if (error == 0 || errand.error != 0) continue;
    errand.error = error;
    errand.which = i;
  }
}

[[noreturn]] void run(void* argument) {
  Errand& errand = *static_cast<Errand*>(argument);
  errand.error = enter(errand);
  if (errand.error == 0) {
    errand.entered = true;
    errand.attach ? attach_all(errand) : detach_all(errand);
  }
  while (true) raw_syscall(SYS_exit_group, 0);
}

std::vector<std::string> folders_of(std::string_view target) {
  std::vector<std::string> folders;
  while (!target.empty()) {
    const std::size_t slash = target.find('/');
    if (slash != 0) folders.emplace_back(target.substr(0, slash));
    target.remove_prefix(slash == std::string_view::npos ? target.size() : slash + 1);
  }
  return folders;
}

Errand send(const linux::Pidfd& process, std::span<const LateMount> mounts, bool attaching) {
  Errand errand{.process_fd = process.fd(), .attach = attaching};
  for (const LateMount& mount : mounts)
    errand.mounts.push_back({.fd = mount.fd, .path = folders_of(mount.target)});
  const linux::ClonedChild child = linux::clone_child({.run = run, .argument = &errand});
  child.pidfd().reap();  // waits for its end
  return errand;
}

}  // namespace

void attach_late(const linux::Pidfd& process, std::span<const LateMount> mounts) {
  if (mounts.empty()) return;
  const Errand errand = send(process, mounts, /*attaching=*/true);
  if (errand.error == 0 && errand.entered) return;
  const int error = static_cast<int>(-errand.error);
  if (!errand.entered) throw_errno_text(error, "enter the sandbox to mount a volume");
  const std::string& target = mounts[errand.which].target;
  if (error == ELOOP || error == ENOTDIR || error == EXDEV)
    fail(Code::invalid, "mount target '{}' has a link or a file in it, not only folders", target);
  throw_errno_text(error, fmt::format("mount a volume on '{}'", target));
}

void detach_late(const linux::Pidfd& process, std::span<const LateMount> mounts) {
  if (mounts.empty()) return;
  const Errand errand = send(process, mounts, /*attaching=*/false);
  if (errand.error != 0)
    throw_errno_text(static_cast<int>(-errand.error), "take mounts away from a sandbox");
}

}  // namespace hearth::runtime
