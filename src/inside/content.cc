#include "inside/content.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <functional>

#include "base/error.h"
#include "inside/paths.h"

namespace hearth::inside {
namespace {

// The kernel takes no longer value of an attribute.
constexpr std::size_t kMaxAttribute = std::size_t{64} << 10;
constexpr std::size_t kCopyPiece = std::size_t{1} << 20;

[[noreturn]] void throw_for(int error, const std::string& path) {
  if (error == ENOSPC || error == EDQUOT) fail(Code::exhausted, "not enough disk space available");
  if (error == EISDIR) fail(Code::invalid, "path '{}' is a directory", path);
  if (error == ENOENT || error == ENOTDIR) fail(Code::not_found, "path '{}' does not exist", path);
  if (error == ENAMETOOLONG) fail(Code::invalid, "path '{}' is too long", path);
  if (error == ELOOP) fail(Code::invalid, "path '{}' has too many links on its way", path);
  if (error == EROFS) fail(Code::forbidden, "path '{}' is on a read-only file system", path);
  // A pipe or a socket that nobody listens to.
  if (error == ENXIO) fail(Code::invalid, "path '{}' is not a regular file", path);
  throw_errno_text(error, fmt::format("open '{}'", path));
}

void check_regular(const struct stat& status, const std::string& path) {
  if (S_ISDIR(status.st_mode)) fail(Code::invalid, "path '{}' is a directory", path);
  if (!S_ISREG(status.st_mode)) fail(Code::invalid, "path '{}' is not a regular file", path);
}

// Extended attributes, by path or by descriptor.
using ListAttributes = std::function<ssize_t(char*, std::size_t)>;
using GetAttribute = std::function<ssize_t(const char*, char*, std::size_t)>;

Metadata read_attributes(const ListAttributes& list, const GetAttribute& get) {
  const ssize_t size = list(nullptr, 0);
  if (size <= 0) return {};
  std::string names(static_cast<std::size_t>(size), '\0');
  const ssize_t got = list(names.data(), names.size());
  if (got <= 0) return {};
  names.resize(static_cast<std::size_t>(got));
  Metadata metadata;
  std::string value(kMaxAttribute, '\0');
  for (std::size_t at = 0; at < names.size(); at += std::string_view(&names[at]).size() + 1) {
    const std::string_view name(&names[at]);
    if (!name.starts_with(kMetadataPrefix)) continue;
    const ssize_t length = get(name.data(), value.data(), value.size());
    if (length < 0) continue;
    metadata.emplace(name.substr(kMetadataPrefix.size()),
                     value.substr(0, static_cast<std::size_t>(length)));
  }
  return metadata;
}

Metadata read_metadata_of(int fd) {
  return read_attributes(
      [fd](char* names, std::size_t size) { return ::flistxattr(fd, names, size); },
      [fd](const char* name, char* value, std::size_t size) {
        return ::fgetxattr(fd, name, value, size);
      });
}

// File systems without such attributes keep none.
void replace_metadata(int fd, const Metadata& wanted) {
  const Metadata present = read_metadata_of(fd);
  for (const auto& [key, value] : present) {
    if (!wanted.contains(key)) ::fremovexattr(fd, (std::string(kMetadataPrefix) + key).c_str());
  }
  for (const auto& [key, value] : wanted) {
    const auto found = present.find(key);
    if (found != present.end() && found->second == value) continue;
    const std::string name = std::string(kMetadataPrefix) + key;
    if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) != 0 &&
        (errno == ENOSPC || errno == EDQUOT)) {
      fail(Code::exhausted, "not enough disk space available");
    }
  }
}

}  // namespace

OpenedFile open_for_reading(const std::string& path) {
  OpenedFile file;
  file.fd = linux::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.fd) throw_for(errno, path);
  if (::fstat(file.fd.get(), &file.status) != 0) throw_errno("stat '{}'", path);
  check_regular(file.status, path);
  return file;
}

FileWriter::FileWriter(std::string path, Owner owner) : path_(std::move(path)) {
  open(owner);
}

void FileWriter::open(Owner owner) {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NONBLOCK;
  const auto try_open = [&](int more) {
    fd_ = linux::Fd(::open(path_.c_str(), kFlags | more, 0666));
    return static_cast<bool>(fd_);
  };
  // A file that is there is emptied only when it has its owner; a new one need not be, and whoever
  // watches would see it.
  is_new_ = try_open(O_CREAT | O_EXCL);
  if (!is_new_ && errno == ENOENT) {
    make_folder(std::string(folder_of(path_)), owner);
    is_new_ = try_open(O_CREAT | O_EXCL);
  }
  // A link to nowhere is neither there nor can be made; what it leads to can.
  if (!is_new_ && (errno != EEXIST || (!try_open(0) && (errno != ENOENT || !try_open(O_CREAT))))) {
    if (errno == ENOTDIR) fail(Code::invalid, "path '{}' is below a file", path_);
    throw_for(errno, path_);
  }
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) throw_errno("stat '{}'", path_);
  check_regular(status, path_);
  if (::fchown(fd_.get(), owner.uid, owner.gid) != 0) throw_errno("give '{}' its owner", path_);
  if (!is_new_ && status.st_size > 0 && ::ftruncate(fd_.get(), 0) != 0)
    throw_errno("empty '{}'", path_);
}

FileWriter::~FileWriter() {
  if (is_new_ && !finished_ && fd_) ::unlink(path_.c_str());
}

void FileWriter::write(std::string_view piece) {
  while (!piece.empty()) {
    const ssize_t written = ::write(fd_.get(), piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == ENOSPC || errno == EDQUOT))
      fail(Code::exhausted, "not enough disk space available");
    if (written < 0) throw_errno("write '{}'", path_);
    piece.remove_prefix(static_cast<std::size_t>(written));
  }
}

void FileWriter::append(const OpenedFile& file) {
  while (true) {
    const ssize_t copied = ::sendfile(fd_.get(), file.fd.get(), nullptr, kCopyPiece);
    if (copied == 0) return;
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == ENOSPC || errno == EDQUOT))
      fail(Code::exhausted, "not enough disk space available");
    if (copied < 0) throw_errno("copy to '{}'", path_);
  }
}

void FileWriter::finish(const Metadata& metadata) {
  replace_metadata(fd_.get(), metadata);
  finished_ = true;
}

std::optional<std::uint64_t> free_bytes(const std::string& path) {
  struct statvfs status{};
  std::string_view at = path;
  while (::statvfs(std::string(at).c_str(), &status) != 0) {
    if (at == "/") return std::nullopt;
    at = folder_of(at);
  }
  if (status.f_blocks == 0) return std::nullopt;
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

Metadata read_metadata(const std::string& path) {
  return read_attributes(
      [&](char* names, std::size_t size) { return ::llistxattr(path.c_str(), names, size); },
      [&](const char* name, char* value, std::size_t size) {
        return ::lgetxattr(path.c_str(), name, value, size);
      });
}

}  // namespace hearth::inside
