#include "runtime/dead_engines.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/wire.h"
#include "linux/cgroup.h"
#include "linux/files.h"
#include "linux/pidfd.h"
#include "network/network.h"
#include "network/pool.h"
#include "runtime/record.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLock = "lock";
constexpr const char* kHome = "home";
constexpr const char* kSandboxes = "sandboxes";
constexpr std::uint32_t kFormat = 1;

struct Home {
  std::string path;          // at the time
  std::uint64_t device = 0;  // its file system's
  std::int32_t type = 0;     // of the handle
  std::string handle;
};

// A handle with room for its bytes.
struct HandleBuffer {
  alignas(file_handle) std::byte bytes[sizeof(file_handle) + MAX_HANDLE_SZ]{};

  file_handle* get() { return reinterpret_cast<file_handle*>(bytes); }
};

std::uint64_t device_of(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw_errno("stat a folder");
  return status.st_dev;
}

std::string encode(const Home& home) {
  wire::Writer out;
  out.u32(kFormat).text(home.path).u64(home.device).u32(static_cast<std::uint32_t>(home.type));
  out.text(home.handle);
  return std::move(out).take();
}

Home parse_home(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    if (in.u32() != kFormat) fail(Code::invalid, "a note of another version");
    Home home;
    home.path = in.text();
    home.device = in.u64();
    home.type = static_cast<std::int32_t>(in.u32());
    home.handle = in.text();
    if (home.handle.size() > MAX_HANDLE_SZ) fail(Code::invalid, "a handle that is too long");
    return home;
  });
}

// The nearest folder on that path which exists: as good as any other of its file system.
linux::Fd open_nearest(std::filesystem::path path) {
  while (true) {
    linux::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder || path == path.root_path()) return folder;
    path = path.parent_path();
  }
}

// Only if the kernel is sure.
bool is_gone(const Home& home) {
  const linux::Fd near = open_nearest(home.path);
  if (!near || device_of(near.get()) != home.device) return false;
  HandleBuffer buffer;
  file_handle* handle = buffer.get();
  handle->handle_bytes = static_cast<unsigned>(home.handle.size());
  handle->handle_type = home.type;
  std::memcpy(handle->f_handle, home.handle.data(), home.handle.size());
  const linux::Fd found(::open_by_handle_at(near.get(), handle, O_PATH | O_CLOEXEC));
  if (!found) return errno == ESTALE;
  // Removed, and somebody still has it open.
  struct stat status{};
  return ::fstat(found.get(), &status) == 0 && status.st_nlink == 0;
}

void kill_guest(int sandboxes_fd, const std::string& unit) {
  try {
    const linux::Fd folder =
        linux::open_at(sandboxes_fd, unit, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const Record record = parse_record(linux::read_file_at(folder.get(), "record"));
    if (record.boot_id != read_boot_id()) return;
    const auto pidfd = linux::Pidfd::find(record.pid);
    // In this order: what the pidfd names cannot change any more.
    if (pidfd && linux::start_time_of(record.pid) == record.start_time) pidfd->send_signal(SIGKILL);
  } catch (const Error&) {
    // No record that we can read: its cgroup tells who belongs to it.
  }
}

void sweep_sandboxes(int engine_fd, const std::string& tag) {
  linux::CgroupTree cgroups = linux::CgroupTree::open("hearth/" + tag);
  const linux::Fd sandboxes(
      ::openat(engine_fd, kSandboxes, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (sandboxes)
    for (const std::string& unit : linux::list_folder(sandboxes.get()))
      kill_guest(sandboxes.get(), unit);
  for (const std::string& unit : cgroups.list()) {
    // What stands still does not die.
    if (auto cgroup = cgroups.find(unit); cgroup && cgroup->frozen()) cgroup->thaw();
    cgroups.remove(unit);
  }
  cgroups.remove_tree();
}

// Names on the network are short: once in a million two engines have the same.
bool shares_network_names(const std::string& tag, const std::vector<std::string>& all) {
  const std::string prefix = network::names_of(tag).link_prefix;
  return std::ranges::any_of(all, [&](const std::string& other) {
    return other != tag && network::names_of(other).link_prefix == prefix;
  });
}

bool has(int folder_fd, const char* name) {
  return ::faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Without a note it is one that was killed before it could write it; or one that lives and has
// none. Whoever starts just now, and has not got the lock yet, finds that his folder is gone.
void remove_if_never_used(int all_engines_fd, int engine_fd, const std::string& tag) {
  const linux::Fd lock = try_lock_folder(engine_fd);
  if (lock && !has(engine_fd, kHome) && !has(engine_fd, kSandboxes))
    linux::remove_all_at(all_engines_fd, tag);
}

bool sweep_if_dead(int all_engines_fd, const std::string& tag,
                   const std::vector<std::string>& all) {
  const linux::Fd engine = linux::open_at(all_engines_fd, tag, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!has(engine.get(), kHome)) {
    remove_if_never_used(all_engines_fd, engine.get(), tag);
    return false;
  }
  const Home home = parse_home(linux::read_file_at(engine.get(), kHome));
  const linux::Fd lock = try_lock_folder(engine.get());
  if (!lock || !is_gone(home)) return false;
  log::info("sweeping what an engine left whose folder is gone", {{"folder", home.path}});
  sweep_sandboxes(engine.get(), tag);
  if (!shares_network_names(tag, all)) network::Network({.tag = tag}).remove();
  linux::remove_all_at(all_engines_fd, tag);
  return true;
}

}  // namespace

linux::Fd try_lock_folder(int folder_fd) {
  linux::Fd lock = linux::open_at(folder_fd, kLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) throw_errno("lock a folder");
  return {};
}

void note_home(int memory_folder_fd, int home_fd, const std::string& path) {
  HandleBuffer buffer;
  file_handle* handle = buffer.get();
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(home_fd, "", handle, &mount, AT_EMPTY_PATH) != 0) {
    log::debug("the state folder's file system has no handles", {{"folder", path}});
    return;
  }
  const Home home{
      .path = path,
      .device = device_of(home_fd),
      .type = handle->handle_type,
      .handle = std::string(reinterpret_cast<const char*>(handle->f_handle), handle->handle_bytes)};
  linux::replace_file_at(memory_folder_fd, kHome, encode(home));
}

void undo_start(int memory_folder_fd, const std::string& tag, linux::CgroupTree& cgroups,
                bool with_network) {
  const linux::Fd sandboxes(
      ::openat(memory_folder_fd, kSandboxes, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (sandboxes && !linux::list_folder(sandboxes.get()).empty())
    fail(Code::conflict, "there are sandboxes from before");
  if (with_network) network::Network({.tag = tag}).remove();
  cgroups.remove_tree();
}

unsigned sweep_dead_engines(int all_engines_fd) {
  unsigned swept = 0;
  const std::vector<std::string> all = linux::list_folder(all_engines_fd);
  for (const std::string& tag : all) {
    try {
      if (sweep_if_dead(all_engines_fd, tag, all)) ++swept;
    } catch (const Error& error) {
      if (error.code() == Code::not_found) continue;  // it went meanwhile
      log::warning("an engine's remains stay", {{"engine", tag}, {"error", error.what()}});
    }
  }
  return swept;
}

}  // namespace hearth::runtime
