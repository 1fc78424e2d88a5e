#include "registry/archive_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "registry/manifest.h"
#include "registry/scratch.h"
#include "registry/tar_reader_internal.h"

namespace hearth::registry {
namespace {

// `docker save` writes four a layer.
constexpr std::size_t kMaxEntries = 1 << 16;
constexpr int kMaxLinks = 8;

// Where a link in `name`'s folder leads, from the root; empty when out of it.
std::string resolve_link(const std::string& name, const std::string& link) {
  if (link.starts_with('/')) return {};
  std::vector<std::string_view> parts;
  const std::string joined =
      name.substr(0, name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1) + link;
  std::string_view rest = joined;
  while (true) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part == "..") {
      if (parts.empty()) return {};
      parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  std::string path;
  for (const std::string_view part : parts) path += (path.empty() ? "" : "/") + std::string(part);
  return path;
}

void seek(int fd, std::uint64_t position) {
  if (::lseek(fd, static_cast<off_t>(position), SEEK_SET) < 0) throw_errno("seek in the archive");
}

[[noreturn]] void fail_missing(const std::string& name) {
  fail(Code::invalid, "the archive has no '{}' in it", name);
}

bool is_regular(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) throw_errno("look at the archive");
  return S_ISREG(info.st_mode);
}

}  // namespace

TarFiles::TarFiles(linux::Fd tar, int scratch_fd) : tar_(std::move(tar)), scratch_fd_(scratch_fd) {
  seek(tar_.get(), 0);
  TarReader reader(tar_.get(), TarReader::Wrapping::none);
  TarReader::Entry entry;
  while (reader.next(entry)) {
    if (places_.size() == kMaxEntries) {
      fail(Code::invalid, "the archive has more than {} files", kMaxEntries);
    }
    Place place{.position = entry.position, .is_file = entry.is_file};
    if (!entry.link.empty()) place.link = resolve_link(entry.name, entry.link);
    if (!entry.same_as.empty()) place.link = entry.same_as;
    places_.insert_or_assign(entry.name, std::move(place));
  }
}

const TarFiles::Place* TarFiles::find(const std::string& name) const {
  auto found = places_.find(name);
  for (int i = 0; i < kMaxLinks && found != places_.end(); ++i) {
    if (found->second.link.empty()) return found->second.is_file ? &found->second : nullptr;
    found = places_.find(found->second.link);
  }
  return nullptr;
}

const TarFiles::Place& TarFiles::get(const std::string& name) const {
  const Place* place = find(name);
  if (place == nullptr) fail_missing(name);
  return *place;
}

bool TarFiles::has(const std::string& name) const {
  return find(name) != nullptr;
}

std::string TarFiles::read(const std::string& name, std::size_t limit) {
  seek(tar_.get(), get(name).position);
  TarReader reader(tar_.get(), TarReader::Wrapping::none);
  TarReader::Entry entry;
  if (!reader.next(entry)) fail_missing(name);
  return reader.read(limit);
}

linux::Fd TarFiles::open(const std::string& name) {
  seek(tar_.get(), get(name).position);
  TarReader reader(tar_.get(), TarReader::Wrapping::none);
  TarReader::Entry entry;
  if (!reader.next(entry)) fail_missing(name);
  linux::Fd file = make_unnamed_file(scratch_fd_);
  reader.copy_to(file.get(), kMaxArchive);
  seek(file.get(), 0);
  return file;
}

bool FolderFiles::has(const std::string& name) const {
  struct stat info{};
  return ::fstatat(folder_.get(), name.c_str(), &info, 0) == 0 && S_ISREG(info.st_mode);
}

linux::Fd FolderFiles::open(const std::string& name) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder_.get(), name.c_str(), &how, sizeof(how));
  if (fd < 0 && (errno == ENOENT || errno == EXDEV || errno == ENOTDIR)) fail_missing(name);
  if (fd < 0) throw_errno("open '{}'", name);
  linux::Fd file(static_cast<int>(fd));
  if (!is_regular(file.get())) fail_missing(name);
  return file;
}

std::string FolderFiles::read(const std::string& name, std::size_t limit) {
  const linux::Fd file = open(name);
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("read '{}'", name);
    if (count == 0) return text;
    if (static_cast<std::size_t>(count) > limit - text.size()) {
      fail(Code::exhausted, "'{}' is larger than {} bytes", name, limit);
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Wrapping wrapping_of(int file_fd) {
  std::array<char, 6> first{};
  const ssize_t count = ::pread(file_fd, first.data(), first.size(), 0);
  if (count < 0) throw_errno("read the archive");
  const std::string_view magic(first.data(), static_cast<std::size_t>(count));
  switch (compression_of("zstd", magic)) {
    case image::Compression::gzip:
      return Wrapping::gzip;
    case image::Compression::zstd:
      return Wrapping::zstd;
    case image::Compression::none:
      break;
  }
  constexpr std::string_view kXz("\xfd\x37zXZ\0", 6);
  return magic.starts_with(kXz) || magic.starts_with("BZh") ? Wrapping::other : Wrapping::none;
}

linux::Fd as_regular_file(int fd, int scratch_fd) {
  if (is_regular(fd) && ::lseek(fd, 0, SEEK_CUR) == 0) return linux::duplicate(fd);
  linux::Fd file = make_unnamed_file(scratch_fd);
  std::vector<char> buffer(256 << 10);
  std::uint64_t copied = 0;
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("read the archive");
    if (count == 0) break;
    copied += static_cast<std::uint64_t>(count);
    if (copied > kMaxArchive)
      fail(Code::exhausted, "the archive is larger than {} bytes", kMaxArchive);
    linux::write_all(file.get(), {buffer.data(), static_cast<std::size_t>(count)});
  }
  seek(file.get(), 0);
  return file;
}

linux::Fd unwrapped(int file_fd, int scratch_fd) {
  linux::Fd file = make_unnamed_file(scratch_fd);
  seek(file_fd, 0);
  TarReader reader = TarReader::of_compressed_bytes(file_fd);
  TarReader::Entry entry;
  if (reader.next(entry)) reader.copy_to(file.get(), kMaxArchive);
  seek(file.get(), 0);
  return file;
}

}  // namespace hearth::registry
