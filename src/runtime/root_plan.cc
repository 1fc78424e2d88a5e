#include "runtime/root_plan.h"

#include <sys/mount.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "linux/mounts.h"

namespace hearth::runtime {
namespace {

using init::Step;

// Kernel memory outside the size limit of a tmpfs: about a kilobyte each.
constexpr unsigned kMaxInodes = 1'000'000;

constexpr unsigned long kInert = MS_NOSUID | MS_NODEV | MS_NOEXEC;

// /proc and /sys have the same entries inside as out here.
bool kernel_has(const std::string& path) {
  return ::access(path.c_str() + std::string_view("root").size(), F_OK) == 0;
}

class Steps {
 public:
  void folder(const std::string& path, unsigned mode = 0755) {
    add({.kind = Step::Kind::folder, .target = path, .flags = mode});
  }
  void symlink(const std::string& path, const std::string& to) {
    add({.kind = Step::Kind::symlink, .source = to, .target = path});
  }
  void mount(const std::string& type, const std::string& path, unsigned long flags,
             const std::string& options = {}) {
    add({.kind = Step::Kind::mount,
         .source = type,
         .target = path,
         .type = type,
         .options = options,
         .flags = flags});
  }
  void bind(const std::string& from, const std::string& path) {
    add({.kind = Step::Kind::mount, .source = from, .target = path, .flags = MS_BIND});
  }
  void read_only(const std::string& path) {
    if (!kernel_has(path)) return;
    bind(path, path);
    add({.kind = Step::Kind::mount,
         .target = path,
         .flags = MS_BIND | MS_REMOUNT | MS_RDONLY | kInert});
  }
  // Nothing to see here.
  void mask_file(const std::string& path) {
    if (kernel_has(path)) bind("/dev/null", path);
  }
  void mask_folder(const std::string& path) {
    if (kernel_has(path)) mount("tmpfs", path, MS_RDONLY | kInert, "size=0,mode=555");
  }
  void add(Step step) { steps_.push_back(std::move(step)); }

  std::vector<Step> take() && { return std::move(steps_); }

 private:
  std::vector<Step> steps_;
};

// Attaches the layers as <prefix>0, <prefix>1, … and mounts an overlay over them.
void add_overlay(Steps& steps, const std::string& prefix, const std::vector<int>& layer_fds,
                 const std::string& target) {
  linux::OverlayLayers layers{
      .upper = prefix + "upper", .work = prefix + "work", .userxattr = true};
  steps.folder(layers.upper);
  steps.folder(layers.work);
  for (const int fd : layer_fds) {
    layers.lowers.push_back(fmt::format("{}{}", prefix, layers.lowers.size()));
    steps.folder(layers.lowers.back());
    steps.add({.kind = Step::Kind::attach, .target = layers.lowers.back(), .fd = fd});
  }
  steps.mount("overlay", target, MS_NODEV, linux::overlay_options(layers));
}

void add_proc(Steps& steps) {
  steps.mount("proc", "root/proc", kInert);
  for (const char* file :
       {"kcore", "keys", "key-users", "latency_stats", "timer_list", "sched_debug"}) {
    steps.mask_file(fmt::format("root/proc/{}", file));
  }
  for (const char* folder : {"acpi", "scsi"})
    steps.mask_folder(fmt::format("root/proc/{}", folder));
  for (const char* path : {"bus", "fs", "irq", "sys", "sysrq-trigger"}) {
    steps.read_only(fmt::format("root/proc/{}", path));
  }
}

void add_dev(Steps& steps) {
  steps.mount("tmpfs", "root/dev", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755");
  // A user namespace may not make devices; the host's own serve as well.
  for (const char* device : {"null", "zero", "full", "random", "urandom", "tty"}) {
    const std::string path = fmt::format("root/dev/{}", device);
    steps.add({.kind = Step::Kind::file, .target = path});
    steps.bind(fmt::format("/dev/{}", device), path);
  }
  steps.folder("root/dev/pts");
  steps.mount("devpts", "root/dev/pts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0620,gid=5");
  steps.folder("root/dev/shm", 01777);
  steps.mount("tmpfs", "root/dev/shm", kInert, "size=64m,mode=1777");
  steps.folder("root/dev/mqueue");
  steps.mount("mqueue", "root/dev/mqueue", kInert);
  steps.symlink("root/dev/ptmx", "pts/ptmx");
  steps.symlink("root/dev/fd", "/proc/self/fd");
  steps.symlink("root/dev/stdin", "/proc/self/fd/0");
  steps.symlink("root/dev/stdout", "/proc/self/fd/1");
  steps.symlink("root/dev/stderr", "/proc/self/fd/2");
}

}  // namespace

std::vector<Step> plan_root(const RootRequest& request) {
  Steps steps;
  steps.add({.kind = Step::Kind::mount, .target = "/", .flags = MS_REC | MS_PRIVATE});
  const std::string size =
      request.disk_bytes == 0 ? "" : fmt::format("size={},", request.disk_bytes);
  steps.add({.kind = Step::Kind::enter_tmpfs,
             .options = fmt::format("{}nr_inodes={},mode=0755", size, kMaxInodes)});
  steps.folder("root");
  add_overlay(steps, "l", request.layer_fds, "root");
  if (!request.usr_layer_fds.empty()) add_overlay(steps, "u", request.usr_layer_fds, "root/usr");
  add_proc(steps);
  steps.mount("sysfs", "root/sys", MS_RDONLY | kInert);
  steps.mask_folder("root/sys/firmware");
  add_dev(steps);
  steps.add({.kind = Step::Kind::enter_root, .target = "root"});
  return std::move(steps).take();
}

}  // namespace hearth::runtime
