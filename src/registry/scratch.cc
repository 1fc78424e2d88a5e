#include "registry/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "linux/files.h"

namespace hearth::registry {
namespace {

constexpr std::string_view kSuffix = ".part";
constexpr Duration kKept = std::chrono::hours(7 * 24);
constexpr std::size_t kBuffer = 1 << 20;

}  // namespace

linux::Fd open_scratch(const std::string& path) {
  std::error_code error;
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  if (!above.empty()) std::filesystem::create_directories(above, error);
  if (error) fail(Code::invalid, "make the folder '{}': {}", above.string(), error.message());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw_errno("make the folder '{}'", path);
  linux::Fd folder = linux::open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat info{};
  if (::fstat(folder.get(), &info) != 0) throw_errno("look at '{}'", path);
  if (info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    fail(Code::forbidden, "'{}' is not a folder that only we may write to", path);
  }
  return folder;
}

linux::Fd make_unnamed_file(int folder_fd) {
  return linux::open_at(folder_fd, ".", O_TMPFILE | O_RDWR, 0600);
}

PartialFile::PartialFile(int folder_fd, const std::string& digest, std::uint64_t size)
    : folder_fd_(folder_fd), name_(digest) {
  name_.replace(name_.find(':'), 1, "-");
  name_ += kSuffix;
  if (!open_named()) {
    name_.clear();
    file_ = make_unnamed_file(folder_fd_);
    return;
  }
  hash_what_is_there();
  if (size_ > size) restart();
}

// False when someone else is at it.
bool PartialFile::open_named() {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    file_ = linux::open_at(folder_fd_, name_, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return false;
    struct stat info{};
    if (::fstat(file_.get(), &info) != 0) throw_errno("look at '{}'", name_);
    // Unless it was finished and removed between our two calls.
    if (info.st_nlink > 0) return S_ISREG(info.st_mode);
  }
  return false;
}

void PartialFile::hash_what_is_there() {
  std::vector<char> buffer(kBuffer);
  while (true) {
    const ssize_t count =
        ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(size_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("read '{}'", name_);
    if (count == 0) break;
    hash_.update({buffer.data(), static_cast<std::size_t>(count)});
    size_ += static_cast<std::uint64_t>(count);
  }
  if (::lseek(file_.get(), 0, SEEK_END) < 0) throw_errno("seek in '{}'", name_);
}

void PartialFile::append(std::string_view bytes) {
  linux::write_all(file_.get(), bytes);
  hash_.update(bytes);
  size_ += bytes.size();
}

void PartialFile::restart() {
  if (::ftruncate(file_.get(), 0) != 0) throw_errno("empty '{}'", name_);
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) throw_errno("seek in '{}'", name_);
  hash_ = Sha256();
  size_ = 0;
}

int PartialFile::rewound_fd() {
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) throw_errno("seek in '{}'", name_);
  return file_.get();
}

void PartialFile::remove() {
  if (!name_.empty()) ::unlinkat(folder_fd_, name_.c_str(), 0);
}

void sweep_scratch(int folder_fd) {
  const Time now = SystemClock().now();
  for (const std::string& name : linux::list_folder(folder_fd)) {
    struct stat info{};
    if (!name.ends_with(kSuffix)) continue;
    if (::fstatat(folder_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (now - Time(std::chrono::seconds(info.st_mtim.tv_sec)) > kKept) {
      ::unlinkat(folder_fd, name.c_str(), 0);
    }
  }
}

}  // namespace hearth::registry
