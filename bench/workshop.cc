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

Engine::Engine(const EngineOptions& options) : options_(options) {
  const std::string& program = options.program;
  if (::access(program.c_str(), X_OK) != 0) fail(Code::not_found, "hearth-runtime is not built");
  linux::Pipe ready = linux::make_pipe();
  std::vector<std::string> words = {program,
                                    "--state-dir",
                                    options.state_dir,
                                    "--owner",
                                    "0",
                                    "--ready-fd",
                                    std::to_string(kReadyFd),
                                    "--log-level",
                                    "warning",
                                    "--warm",
                                    std::to_string(options.warm),
                                    "--network",
                                    options.network ? "on" : "off"};
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
    runtime::RuntimeClient(state_dir()).shut_down(/*destroy_all=*/true);
  } catch (const Error& error) {
    std::fprintf(stderr, "hearth-bench: stop the engine: %s\n", error.what());
    ::kill(pid_, SIGTERM);
  }
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void add_image(const std::string& state_dir, const std::string& folder) {
  // One connection for both: the layer stays for as long as it is open.
  runtime::RuntimeClient client(state_dir);
  const linux::Fd root = linux::open_file(folder, O_RDONLY | O_DIRECTORY);
  image::Image image;
  image.name = kImage;
  image.id = "sha256:" + random_hex(32);
  image.layers = {client.add_folder(root.get())};
  client.put_image(image);
}

const Engine& EngineOrReason::get() const {
  if (!engine) fail(Code::unavailable, "{}", reason);
  return *engine;
}

Workshop::Workshop(Engines engines) : bin_(fs::canonical("/proc/self/exe").parent_path()) {
  if (::geteuid() != 0) fail(Code::forbidden, "a benchmark of sandboxes needs root");
  folder_ = make_temporary_folder();
  OnFailure remove([&] {
    engine_.engine.reset();
    pooled_engine_.engine.reset();
    fs::remove_all(folder_);
  });
  prefix_ = fmt::format("hearth-bench-{}-", random_hex(4));
  make_rootfs();
  if (engines == Engines::both) {
    engine_ = start_engine("engine", 0);
    pooled_engine_ = start_engine("pooled-engine", kWarm);
  }
  give_rootfs_away();
  hide_v2();
  remove.release();
}

Workshop::~Workshop() {
  engine_.engine.reset();
  pooled_engine_.engine.reset();
  sweep_cgroups();
  std::error_code error;
  fs::remove_all(folder_, error);
  if (error)
    std::fprintf(stderr, "hearth-bench: remove '%s': %s\n", folder_.c_str(),
                 error.message().c_str());
}

EngineOrReason Workshop::start_engine(const char* name, unsigned warm) const {
  try {
    auto engine = std::make_unique<Engine>(EngineOptions{.program = own_program("hearth-runtime"),
                                                         .state_dir = make_folder(name),
                                                         .warm = warm,
                                                         .network = warm > 0});
    add_image(engine->state_dir(), rootfs());
    return {.engine = std::move(engine), .reason = ""};
  } catch (const Error& error) {
    return {.engine = nullptr, .reason = error.what()};
  }
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
  for (const char* name : {"rootfs", "rootfs/dev", "rootfs/etc", "rootfs/proc", "rootfs/root",
                           "rootfs/sys", "rootfs/tmp"}) {
    make_folder(name);
  }
  add_program(noop(), "noop");
  add_program(small_files(), "small-files");
}

void Workshop::add_program(const std::string& program, const char* name) const {
  if (::access(program.c_str(), X_OK) != 0) fail(Code::not_found, "'{}' is not built", program);
  fs::copy_file(program, fmt::format("{}/{}", rootfs(), name));
}

// After the engines have copied it: an image has its owners as root inside sees them.
void Workshop::give_rootfs_away() const {
  const auto give = [](const std::string& path) {
    if (::lchown(path.c_str(), kRootId, kRootId) != 0) throw_errno("give '{}' away", path);
  };
  give(rootfs());
  for (const auto& entry : fs::recursive_directory_iterator(rootfs())) give(entry.path());
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
