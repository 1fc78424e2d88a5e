#include "guest/stage.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "linux/clone.h"
#include "linux/fd.h"
#include "linux/mounts.h"

namespace hearth::guest {
namespace {

// Kernel memory outside the size limit of a tmpfs: about a kilobyte each.
constexpr unsigned kMaxInodes = 1'000'000;

constexpr unsigned long kInert = MS_NOSUID | MS_NODEV | MS_NOEXEC;

void mount(const char* type, const char* target, unsigned long flags, const char* options = "") {
  if (::mount(type, target, type, flags, options) != 0) {
    throw_errno("mount {} on '{}' ({})", type, target, options);
  }
}

void bind(const char* source, const char* target) {
  if (::mount(source, target, nullptr, MS_BIND, nullptr) != 0)
    throw_errno("mount '{}' on '{}'", source, target);
}

void make_folder(const char* path, unsigned mode = 0755) {
  if (::mkdir(path, mode) != 0 && errno != EEXIST) throw_errno("make folder '{}'", path);
}

void make_link(const char* path, const char* to) {
  if (::symlink(to, path) != 0) throw_errno("make link '{}'", path);
}

void write_new_file(const char* path, const std::string& text) {
  linux::write_all(linux::open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0444).get(), text);
}

bool exists(const char* path) {
  return ::access(path, F_OK) == 0;
}

void move_to(const char* source, int target_fd, const char* name) {
  if (::syscall(SYS_move_mount, AT_FDCWD, source, target_fd, "", MOVE_MOUNT_T_EMPTY_PATH) != 0)
    throw_errno("move '{}' into the sandbox's root", name);
}

void attach(int mount_fd, int target_fd, const std::string& target) {
  constexpr unsigned kEmptyPaths = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
  if (::syscall(SYS_move_mount, mount_fd, "", target_fd, "", kEmptyPaths) != 0)
    throw_errno("attach a mount at '{}'", target);
}

// The working folder becomes the root; what was it before is let go of with all below it.
// pivot_root(2) with both arguments the same stacks the new root on the old one.
void pivot_here() {
  if (::syscall(SYS_pivot_root, ".", ".") != 0) throw_errno("make the working folder the root");
  if (::umount2(".", MNT_DETACH) != 0) throw_errno("let go of the old root");
  if (::chdir("/") != 0) throw_errno("enter the new root");
}

// `new_root` becomes the root, on top of the one that was. pivot_root(2) would go through every
// thread of the machine. Nothing leads below: above the topmost of mounts on one folder is itself
// (path_resolution(7); Linux 5.15 and 6.18, fs/namei.c, choose_mountpoint), what is hidden is in no
// table of mounts, and whoever enters the namespace starts at the top.
void cover_root_with(const char* new_root) {
  if (::chdir(new_root) != 0) throw_errno("enter '{}'", new_root);
  if (::syscall(SYS_move_mount, AT_FDCWD, ".", AT_FDCWD, "/", 0) != 0)
    throw_errno("put '{}' on the root", new_root);
  if (::chroot(".") != 0) throw_errno("make '{}' the root", new_root);
  if (::chdir("/") != 0) throw_errno("enter the new root");
}

// --- the nursery's root

struct Device {
  const char* name;
  unsigned major, minor;
};
constexpr Device kNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                             {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

void make_device(const Device& device) {
  const std::string path = fmt::format("devices/{}", device.name);
  if (::mknod(path.c_str(), S_IFCHR, makedev(device.major, device.minor)) == 0) {
    if (::chmod(path.c_str(), 0666) != 0) throw_errno("open device '{}' to all", device.name);
    return;
  }
  if (errno != EPERM) throw_errno("make device '{}'", device.name);
  // Inside somebody else's container: its own device serves as well.
  if (::mknod(path.c_str(), S_IFREG | 0666, 0) != 0) throw_errno("make '{}'", path);
  bind(fmt::format("/dev/{}", device.name).c_str(), path.c_str());
}

void make_mount_read_only(const char* path, unsigned long flags) {
  if (::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, nullptr) != 0)
    throw_errno("make '{}' read-only", path);
}

void make_devices() {
  make_folder("devices");
  for (const Device& device : kNodes) make_device(device);
  for (const char* folder : {"devices/pts", "devices/shm", "devices/mqueue"}) make_folder(folder);
  make_link("devices/ptmx", "pts/ptmx");
  make_link("devices/fd", "/proc/self/fd");
  make_link("devices/stdin", "/proc/self/fd/0");
  make_link("devices/stdout", "/proc/self/fd/1");
  make_link("devices/stderr", "/proc/self/fd/2");
  // /dev is nobody's to write to, and this is where containers say why they end.
  make_link("devices/termination-log", "shm/termination-log");
  bind("devices", "devices");
  make_mount_read_only("devices", MS_NOSUID | MS_NOEXEC);
}

// The kernel lets those born here mount such trees of their own only where it sees one already.
// These stay below the root of every sandbox, so they show nothing: processes and links of
// namespaces that are gone.
void mount_empty_trees(bool joined) {
  for (const char* folder : {"proc", "sys"}) make_folder(folder);
  const linux::Forked mounter =
      linux::fork_into(CLONE_NEWPID | (joined ? 0 : CLONE_NEWNET), /*cgroup_fd=*/-1);
  if (mounter.pid == 0) {
    const bool done = ::mount("proc", "proc", "proc", kInert, nullptr) == 0 &&
                      ::mount("sysfs", "sys", "sysfs", MS_RDONLY | kInert, nullptr) == 0;
    ::_exit(done ? 0 : errno);
  }
  const auto status = mounter.pidfd.reap();
  if (!status) fail(Code::internal, "mount empty trees: nobody knows how it went");
  if (status->code != 0) throw_errno_text(status->code, "mount empty trees");
}

void make_nothing() {
  make_folder("nothing", 0555);
  bind("nothing", "nothing");
  make_mount_read_only("nothing", kInert);
  // These are root's of the host, whom nobody inside stands in for.
  make_folder("closed", 0);
  const linux::Fd file = linux::open_at(AT_FDCWD, "closed-file", O_WRONLY | O_CREAT | O_EXCL, 0);
}

// --- the stage

// Looked at once, by the nursery: all sandboxes have the same kernel.
struct KernelEntries {
  std::vector<std::string> masked_files;
  std::vector<std::string> masked_folders;
  std::vector<std::string> read_only;
  bool message_queues = false;
  bool joined = false;  // /sys and message queues are here already
};
KernelEntries kernel_entries;  // NOLINT: set before the first shell, never changed after

// Files of the kernel that tell of the whole machine or act on it. In a user namespace most of them
// are refused already, being root's, who is not in it: these are the rest, and what a mistake in
// the kernel would make worst.
void find_kernel_entries() {
  for (const char* path :
       {"proc/interrupts", "proc/kcore", "proc/keys", "proc/latency_stats", "proc/pressure",
        "proc/sched_debug", "proc/timer_list", "sys/firmware", "sys/devices/virtual/powercap"}) {
    struct stat status{};
    if (::stat(path, &status) != 0) continue;
    (S_ISDIR(status.st_mode) ? kernel_entries.masked_folders : kernel_entries.masked_files)
        .emplace_back(path);
  }
  for (const char* path : {"proc/sys", "proc/sysrq-trigger"}) {
    if (exists(path)) kernel_entries.read_only.emplace_back(path);
  }
  kernel_entries.message_queues = exists("proc/sys/fs/mqueue");
}

// Nothing to see here.
void mask_entries(std::string_view tree) {
  for (const std::string& path : kernel_entries.masked_files) {
    if (path.starts_with(tree)) bind("/devices/null", path.c_str());
  }
  for (const std::string& path : kernel_entries.masked_folders) {
    if (path.starts_with(tree)) bind(kNothing, path.c_str());
  }
}

// What a process may look at in itself is more than what others may, and PID 1's own threads serve
// files by any path that they are asked for: it has descriptors that lead out of the root, and its
// memory has tokens.
void mask_ourselves() {
  for (const char* folder : {"proc/1/fd", "proc/1/task"}) bind(kClosedFolder, folder);
  bind(kClosedFile, "proc/1/mem");
}

void build_proc(const std::string& boot_id) {
  make_folder("proc");
  mount("proc", "proc", kInert);
  mask_ourselves();
  // Namespaces bring capabilities, and with them most of the kernel's attack surface. The system
  // call filter refuses them too; this holds where it cannot look.
  linux::write_file_at(AT_FDCWD, "proc/sys/user/max_user_namespaces", "0");
  mask_entries("proc/");
  for (const std::string& path : kernel_entries.read_only) {
    bind(path.c_str(), path.c_str());
    make_mount_read_only(path.c_str(), kInert);
  }
  // The host's is the same in all sandboxes, and tells them that they share one.
  write_new_file("boot_id", boot_id + "\n");
  bind("boot_id", "proc/sys/kernel/random/boot_id");
  make_mount_read_only("proc/sys/kernel/random/boot_id", kInert);
}

void build_sys() {
  make_folder("sys");
  if (kernel_entries.joined)
    bind("/sys", "sys");
  else
    mount("sysfs", "sys", MS_RDONLY | kInert);
  mask_entries("sys/");
}

void build_dev() {
  make_folder("dev");
  make_folder("shm", 01777);
  // mkdir(2) minds the umask.
  if (::chmod("shm", 01777) != 0) throw_errno("open /dev/shm to everybody");
  bind(kDevices, "dev");
  mount("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5");
  bind("shm", "dev/shm");
  if (!kernel_entries.message_queues) return;
  if (kernel_entries.joined)
    bind(kQueues, "dev/mqueue");
  else
    mount("mqueue", "dev/mqueue", kInert);
}

// --- the root

// Where something is mounted: a place in `root_fd` that no link of the image leads away from. What
// is in the way, or missing, is replaced.
linux::Fd place_in_root(int root_fd, const char* name) {
  open_how how{.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
               .mode = 0,
               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  for (int tries = 0; tries < 2; ++tries) {
    const long fd = ::syscall(SYS_openat2, root_fd, name, &how, sizeof how);
    if (fd >= 0) return linux::Fd(static_cast<int>(fd));
    if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
      throw_errno("look for '/{}' in the image", name);
    ::unlinkat(root_fd, name, 0);
    if (::mkdirat(root_fd, name, 0755) != 0) throw_errno("make '/{}' in the image", name);
  }
  fail(Code::invalid, "'/{}' of the image is no folder", name);
}

// Follows links as a process inside would, and makes what is missing.
linux::Fd place_for(int root_fd, const Attachment& attachment) {
  std::string path;
  std::string_view rest = attachment.target;
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") fail(Code::invalid, "mount target '{}' has '..' in it", attachment.target);
    const bool last = rest.find_first_not_of('/') == std::string_view::npos;
    const bool file = last && !attachment.folder;

    open_how how{.flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_IN_ROOT};
    const std::string parent = path.empty() ? "." : path;
    path += path.empty() ? std::string(part) : "/" + std::string(part);
    linux::Fd found(
        static_cast<int>(::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how)));
    if (found && !last) continue;
    if (found) return found;
    if (errno != ENOENT) throw_errno("look for mount target '{}'", attachment.target);
    const linux::Fd above(
        static_cast<int>(::syscall(SYS_openat2, root_fd, parent.c_str(), &how, sizeof how)));
    if (!above) throw_errno("look for mount target '{}'", attachment.target);
    const std::string name(part);
    const int made = file ? ::mknodat(above.get(), name.c_str(), S_IFREG | 0644, 0)
                          : ::mkdirat(above.get(), name.c_str(), 0755);
    if (made != 0) throw_errno("make mount target '{}'", attachment.target);
    if (last) return linux::open_at(above.get(), name, O_PATH | O_NOFOLLOW);
  }
  fail(Code::invalid, "'{}' is no mount target", attachment.target);
}

// A sandbox that joins another has no rights over the network of both, being another's user: ports
// below 1024 and echo requests are for everybody there, as they were for the first one's root.
void open_network_to_all() {
  linux::write_file_at(AT_FDCWD, "proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  linux::write_file_at(AT_FDCWD, "proc/sys/net/ipv4/ping_group_range", "0 2147483647");
}

struct OverlayPlace {
  std::string prefix;           // before the names of all folders it needs
  std::span<const int> layers;  //
  std::string writable;         // the folder for what is written, with its slash; or empty
};

void mount_overlay(const OverlayPlace& place, const char* target) {
  const std::string& prefix = place.prefix;
  linux::OverlayLayers overlay{.upper = place.writable + prefix + "upper",
                               .work = place.writable + prefix + "work",
                               .userxattr = true};
  make_folder(overlay.upper.c_str());
  make_folder(overlay.work.c_str());
  for (const int layer : place.layers) {
    overlay.lowers.push_back(fmt::format("{}{}", prefix, overlay.lowers.size()));
    make_folder(overlay.lowers.back().c_str());
    linux::attach_mount(layer, overlay.lowers.back());
  }
  mount("overlay", target, MS_NODEV, linux::overlay_options(overlay).c_str());
}

}  // namespace

void make_nursery_root(bool joined) {
  if (::unshare(CLONE_NEWNS) != 0) throw_errno("make a mount namespace");
  // Any folder will do to mount on: it is in no other namespace, and gone with this one.
  mount("tmpfs", "/dev", MS_NOSUID, "mode=0755");
  if (::chdir("/dev") != 0) throw_errno("enter the nursery's root");
  make_folder("stage");
  mount_empty_trees(joined);
  make_devices();
  make_nothing();
  find_kernel_entries();
  kernel_entries.joined = joined;
  if (joined) open_network_to_all();
  if (joined && kernel_entries.message_queues) {
    make_folder("queues");
    mount("mqueue", "queues", kInert);
  }
  pivot_here();
}

void build_stage(const std::string& boot_id) {
  if (::chdir(kStage) != 0) throw_errno("enter the stage");
  const std::string options = fmt::format("nr_inodes={},mode=0755", kMaxInodes);
  mount("tmpfs", ".", MS_NOSUID | MS_NODEV, options.c_str());
  // The working folder is what lies below the mount.
  if (::chdir(kStage) != 0) throw_errno("enter the stage");
  make_folder("root");
  build_proc(boot_id);
  build_sys();
  build_dev();
}

linux::Fd enter_root(const RootMounts& mounts) {
  const bool on_disk = mounts.disk_fd >= 0;
  if (on_disk) {
    make_folder("disk");
    linux::attach_mount(mounts.disk_fd, "disk");
  }
  const std::string writable = on_disk ? "disk/" : "";
  linux::Fd stage = linux::open_at(AT_FDCWD, on_disk ? "disk" : ".", O_PATH | O_DIRECTORY);
  if (mounts.disk_bytes != 0) {
    const std::string size = fmt::format("size={},nr_inodes={}", mounts.disk_bytes, kMaxInodes);
    if (::mount(nullptr, ".", nullptr, MS_REMOUNT | MS_NOSUID | MS_NODEV, size.c_str()) != 0)
      throw_errno("limit the writable layer to {} bytes", mounts.disk_bytes);
  }
  // Hence kRootUpper.
  mount_overlay({.prefix = "l", .layers = mounts.layers, .writable = writable}, "root");
  linux::Fd root = linux::open_at(AT_FDCWD, "root", O_PATH | O_DIRECTORY);
  if (!mounts.usr_layers.empty())
    mount_overlay({.prefix = "u", .layers = mounts.usr_layers, .writable = writable}, "root/usr");
  for (const char* tree : {"proc", "sys", "dev"}) {
    move_to(tree, place_in_root(root.get(), tree).get(), tree);
  }
  for (std::size_t i = 0; i < mounts.attachments.size(); ++i) {
    const Attachment& attachment = mounts.attachments[i];
    attach(mounts.attachment_fds[i], place_for(root.get(), attachment).get(), attachment.target);
  }
  root.reset();
  cover_root_with("root");
  return stage;
}

void make_root_read_only(const Assignment& assignment) {
  // With the flag that mount_overlay gave it, which would be taken away otherwise.
  make_mount_read_only("/", MS_NODEV);
  // Where /usr is a mount of its own, unless a volume hides it.
  const bool hidden = std::ranges::any_of(assignment.attachments, [](const Attachment& one) {
    return one.target == "/usr" || one.target == "/usr/";
  });
  if (assignment.usr_layers != 0 && !hidden) make_mount_read_only("/usr", MS_NODEV);
}

}  // namespace hearth::guest
