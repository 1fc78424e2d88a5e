#include "bench/workshop.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/id.h"
#include "base/on_failure.h"
#include "linux/mounts.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

// Any number that nobody else hands to a child.
constexpr int kReadyFd = 9;

std::string make_temporary_folder() {
  std::string path = (fs::temp_directory_path() / "hearth-bench-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw_errno("make a folder '{}'", path);
  // Containers' root users must be able to reach their root folder.
  if (::chmod(path.c_str(), 0755) != 0) throw_errno("open folder '{}'", path);
  return path;
}

bool is_v2(const linux::MountEntry& mount) {
  return mount.type == "cgroup2";
}
bool is_v1(const linux::MountEntry& mount) {
  return mount.type == "cgroup";
}

}  // namespace

Engine::Engine(const std::string& program, const std::string& state_dir) : state_dir_(state_dir) {
  if (::access(program.c_str(), X_OK) != 0) fail(Code::not_found, "hearth-runtime is not built");
  linux::Pipe ready = linux::make_pipe();
  std::vector<std::string> words = {program,
                                    "--state-dir",
                                    state_dir,
                                    "--owner",
                                    "0",
                                    "--ready-fd",
                                    std::to_string(kReadyFd),
                                    "--log-level",
                                    "warning"};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ready.write.get(), kReadyFd);
  const int error =
      ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw_errno_text(error, "start hearth-runtime");
  ready.write.reset();
  char line[16];
  if (::read(ready.read.get(), line, sizeof line) > 0) return;
  ::waitpid(pid_, nullptr, 0);
  fail(Code::unavailable, "hearth-runtime did not come up");
}

Engine::~Engine() {
  try {
    runtime::RuntimeClient(state_dir_).shut_down(/*destroy_all=*/true);
  } catch (const Error& error) {
    std::fprintf(stderr, "hearth-bench: stop the engine: %s\n", error.what());
    ::kill(pid_, SIGTERM);
  }
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Workshop::Workshop() : bin_(fs::canonical("/proc/self/exe").parent_path()) {
  if (::geteuid() != 0) fail(Code::forbidden, "a benchmark of sandboxes needs root");
  folder_ = make_temporary_folder();
  OnFailure remove([&] { fs::remove_all(folder_); });
  prefix_ = fmt::format("hearth-bench-{}-", random_hex(4));
  make_rootfs();
  try {
    engine_ = std::make_unique<Engine>(own_program("hearth-runtime"), make_folder("engine"));
  } catch (const Error& error) {
    no_engine_ = error.what();
  }
  hide_v2();
  remove.release();
}

Workshop::~Workshop() {
  engine_.reset();
  sweep_cgroups();
  std::error_code error;
  fs::remove_all(folder_, error);
  if (error)
    std::fprintf(stderr, "hearth-bench: remove '%s': %s\n", folder_.c_str(),
                 error.message().c_str());
}

const Engine& Workshop::engine() const {
  if (!engine_) fail(Code::unavailable, "{}", no_engine_);
  return *engine_;
}

std::string Workshop::make_folder(const std::string& name) const {
  const std::string path = fmt::format("{}/{}", folder_, name);
  if (::mkdir(path.c_str(), 0755) != 0) throw_errno("make folder '{}'", path);
  return path;
}

std::string Workshop::new_name() const {
  return prefix_ + std::to_string(names_++);
}

void Workshop::make_rootfs() const {
  for (const char* name :
       {"rootfs", "rootfs/dev", "rootfs/etc", "rootfs/proc", "rootfs/sys", "rootfs/tmp"}) {
    const std::string path = make_folder(name);
    if (::chown(path.c_str(), kRootId, kRootId) != 0) throw_errno("give '{}' away", path);
  }
  const std::string program = rootfs() + "/noop";
  if (::access(noop().c_str(), X_OK) != 0) fail(Code::not_found, "bench-noop is not built");
  fs::copy_file(noop(), program);
  if (::chown(program.c_str(), kRootId, kRootId) != 0) throw_errno("give '{}' away", program);
}

void Workshop::hide_v2() {
  const std::vector<linux::MountEntry> mounts = linux::mount_table();
  if (::unshare(CLONE_NEWNS) != 0) throw_errno("unshare the mount namespace");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    throw_errno("make the mount namespace private");
  }
  if (std::ranges::none_of(mounts, is_v1)) return;
  for (const linux::MountEntry& mount : mounts) {
    if (!is_v2(mount)) continue;
    if (::umount2(mount.mount_point.c_str(), MNT_DETACH) != 0)
      throw_errno("hide '{}'", mount.mount_point);
    hides_v2_ = true;
  }
}

// What a container runtime leaves behind when it is killed half-way.
void Workshop::sweep_cgroups() const {
  constexpr int kDepth = 3;  // below the cgroup that we are in ourselves
  for (const linux::MountEntry& mount : linux::mount_table()) {
    if (!is_v1(mount) && !is_v2(mount)) continue;
    std::vector<std::string> found;
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(mount.mount_point, error);
         entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (!entry->is_directory(error)) continue;
      if (entry.depth() >= kDepth) entry.disable_recursion_pending();
      if (entry->path().filename().string().starts_with(prefix_)) found.push_back(entry->path());
    }
    for (const std::string& path : found) {
      if (::rmdir(path.c_str()) != 0)
        std::fprintf(stderr, "hearth-bench: '%s' is left behind\n", path.c_str());
    }
  }
}

}  // namespace hearth::bench
