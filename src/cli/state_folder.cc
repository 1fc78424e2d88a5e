#include "cli/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "cli/endpoints.h"
#include "linux/files.h"

namespace hearth::cli {
namespace {

constexpr const char* kLockFile = "engine.lock";

// Root's own folder lets the engine pass, and nobody see what is in it.
constexpr mode_t kRootsMode = 0710;
constexpr mode_t kPrivateMode = 0700;

void make_folder(const std::string& state_dir) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(state_dir).parent_path(), error);
  if (error)
    fail(code_from_errno(error.value()), "make the folders above '{}': {}", state_dir,
         errno_text(error.value()));
  if (::mkdir(state_dir.c_str(), kPrivateMode) != 0 && errno != EEXIST)
    throw_errno("make state folder '{}'", state_dir);
}

// A folder that an engine was in before, or that is empty.
void check_purpose(const std::string& state_dir) {
  const linux::Fd folder = linux::open_file(state_dir, O_RDONLY | O_DIRECTORY);
  const auto names = linux::list_folder(folder.get());
  if (names.empty() || std::ranges::find(names, kLockFile) != names.end()) return;
  fail(Code::conflict,
       "'{}' is in use for something else; name a new or empty folder with --state-dir", state_dir);
}

void check_owner(const std::string& state_dir, const struct stat& status) {
  const uid_t self = ::geteuid();
  if (status.st_uid == self || self == 0) return;
  fail(Code::forbidden,
       "state folder '{}' belongs to user {}; use sudo, or name another with --state-dir",
       state_dir, status.st_uid);
}

// What an engine keeps (objects, keys) is of use to the same user only, and not for root to give
// away: it cannot know how the files came to be there.
void check_engine_owner(int folder_fd, EngineUser user) {
  struct stat status{};
  if (::fstat(folder_fd, &status) != 0) throw_errno("stat folder '{}'", kEngineFolder);
  if (status.st_uid == user.uid || linux::list_folder(folder_fd).empty()) return;
  fail(Code::conflict,
       "the files in '{}' of the state folder belong to user {}, and this engine would be user {}: "
       "name that one with --user, or give the files away with 'chown -R'",
       kEngineFolder, status.st_uid, user.uid);
}

void make_engine_folder(int dir_fd, EngineUser user) {
  if (::mkdirat(dir_fd, kEngineFolder, kPrivateMode) != 0 && errno != EEXIST)
    throw_errno("make folder '{}'", kEngineFolder);
  const linux::Fd folder =
      linux::open_at(dir_fd, kEngineFolder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  check_engine_owner(folder.get(), user);
  if (::fchown(folder.get(), user.uid, user.gid) != 0)
    throw_errno("give folder '{}' to user {}", kEngineFolder, user.uid);
  if (::fchmod(folder.get(), kPrivateMode) != 0) throw_errno("close folder '{}'", kEngineFolder);
  // What an engine that was killed left behind.
  linux::remove_all_at(folder.get(), kEndpointsFile);
}

void make_link(int dir_fd, const char* name) {
  linux::remove_all_at(dir_fd, name);
  const std::string target = fmt::format("{}/{}", kEngineFolder, name);
  if (::symlinkat(target.c_str(), dir_fd, name) != 0) throw_errno("link '{}'", name);
}

}  // namespace

void make_state_folder(const std::string& state_dir) {
  make_folder(state_dir);
  struct stat status{};
  if (::stat(state_dir.c_str(), &status) != 0) throw_errno("stat state folder '{}'", state_dir);
  check_owner(state_dir, status);
  check_purpose(state_dir);
}

linux::Fd lock_state_folder(const std::string& state_dir) {
  const linux::Fd folder = linux::open_file(state_dir, O_RDONLY | O_DIRECTORY);
  linux::Fd lock = linux::open_at(folder.get(), kLockFile, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
    const std::string pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(lock.get(), 0) != 0) throw_errno("empty '{}'", kLockFile);
    linux::write_all(lock.get(), pid);
    return lock;
  }
  if (errno != EWOULDBLOCK) throw_errno("lock '{}'", kLockFile);
  std::array<char, 32> text{};
  const ssize_t got = ::pread(lock.get(), text.data(), text.size(), 0);
  const std::string_view pid(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  fail(Code::conflict,
       "an engine runs on '{}' already, pid {}; end it, or name another folder with --state-dir",
       state_dir, pid.substr(0, pid.find('\n')));
}

void claim_state_folder(const std::string& state_dir, EngineUser user) {
  const linux::Fd folder = linux::open_file(state_dir, O_RDONLY | O_DIRECTORY);
  const bool as_root = ::geteuid() == 0;
  if (as_root && ::fchown(folder.get(), 0, user.gid) != 0) {
    throw_errno("take over state folder '{}'", state_dir);
  }
  if (::fchmod(folder.get(), as_root ? kRootsMode : kPrivateMode) != 0) {
    throw_errno("close state folder '{}'", state_dir);
  }
  make_engine_folder(folder.get(), user);
  for (const char* name : {kEndpointsFile, kKubeconfigFile, kAdminTokenFile, kE2bKeyFile})
    make_link(folder.get(), name);
}

std::optional<EngineUser> find_engine_owner(const std::string& state_dir) {
  struct stat status{};
  if (::lstat((state_dir + "/" + kEngineFolder).c_str(), &status) != 0) return std::nullopt;
  return EngineUser{.uid = status.st_uid, .gid = status.st_gid};
}

}  // namespace hearth::cli
