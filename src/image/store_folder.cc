#include "image/store_folder.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "linux/files.h"

namespace hearth::image {
namespace {

// On disk, in front of every meta and record. A file with another number was written by a version
// that this one does not understand.
constexpr std::uint32_t kFormat = 1;

// More than the largest image that put_image() lets in.
constexpr std::size_t kMaxRecord = std::size_t{4} << 20;

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr const char* kFiles = "fs";
constexpr const char* kMeta = "meta";

linux::Fd open_folder(int dir_fd, const std::string& name) {
  if (::mkdirat(dir_fd, name.c_str(), 0700) != 0 && errno != EEXIST)
    throw_errno("make folder '{}'", name);
  return linux::open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// ext4 does not give out an inode again for one to five minutes after its file was deleted
// (fs/ext4/ialloc.c, recently_deleted), and looks at every one of them for each new file: 20,000
// files after as many were deleted took 10.6 s of CPU time instead of 0.9 (Linux 6.18). With this
// flag each folder made here begins in another part of the disk. Other file systems refuse it.
void spread_folders(int folder_fd) {
  unsigned flags = 0;
  if (::ioctl(folder_fd, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_TOPDIR_FL;
  ::ioctl(folder_fd, FS_IOC_SETFLAGS, &flags);
}

void sync_file(int fd, const char* what) {
  if (::fsync(fd) != 0) throw_errno("sync {}", what);
}

// A new file with its content on disk; its name is not, yet.
void write_synced(int dir_fd, const std::string& name, std::string_view bytes) {
  const linux::Fd file =
      linux::open_at(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600);
  linux::write_all(file.get(), bytes);
  sync_file(file.get(), "a record");
}

std::string folder_of(const std::string& diff_id) {
  return diff_id.substr(kDigestPrefix.size());
}

std::string new_name() {
  return random_hex(16);
}

// Neither letter can be part of an image's name, so that no two names meet.
std::string file_of(std::string name) {
  std::ranges::replace(name, '/', '+');
  std::ranges::replace(name, ':', '=');
  return name;
}

std::uint64_t parse_meta(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    const std::uint32_t format = in.u32();
    if (format != kFormat) fail(Code::invalid, "meta of format {}, not {}", format, kFormat);
    return in.u64();
  });
}

Image parse_record(std::string_view bytes) {
  return wire::parse_whole(bytes, [](wire::Reader& in) {
    const std::uint32_t format = in.u32();
    if (format != kFormat) fail(Code::invalid, "record of format {}, not {}", format, kFormat);
    return read_image(in);
  });
}

}  // namespace

HalfMade::HalfMade(int tmp_fd, std::string name)
    : tmp_fd_(tmp_fd), name_(std::move(name)), dir_(open_folder(tmp_fd_, name_)) {
  // The layer's own root, unless the archive says otherwise.
  if (::mkdirat(dir_.get(), kFiles, 0755) != 0) throw_errno("make a layer's folder");
  if (::fchmodat(dir_.get(), kFiles, 0755, 0) != 0) throw_errno("open up a layer's folder");
}

HalfMade::HalfMade(HalfMade&& other) noexcept
    : tmp_fd_(other.tmp_fd_), name_(std::exchange(other.name_, {})), dir_(std::move(other.dir_)) {}

HalfMade::~HalfMade() {
  if (name_.empty()) return;
  try {
    linux::remove_all_at(tmp_fd_, name_);
  } catch (const Error& error) {
    // The next start tries again.
    log::warning("a half-made layer stays", {{"name", name_}, {"error", error.what()}});
  }
}

std::string HalfMade::fs_path() const {
  return fmt::format("/proc/self/fd/{}/{}", dir_.get(), kFiles);
}

StoreFolder::StoreFolder(int folder_fd)
    : folder_(linux::duplicate(folder_fd)),
      layers_(open_folder(folder_fd, "layers")),
      images_(open_folder(folder_fd, "images")),
      tmp_(open_folder(folder_fd, "tmp")) {
  spread_folders(tmp_.get());
  sync_file(folder_.get(), "the image store");
}

std::size_t StoreFolder::sweep() {
  std::size_t count = 0;
  for (const std::string& name : linux::list_folder(tmp_.get())) {
    remove_aside(name);
    ++count;
  }
  return count;
}

std::map<std::string, std::uint64_t> StoreFolder::load_layers() {
  std::map<std::string, std::uint64_t> layers;
  for (const std::string& name : linux::list_folder(layers_.get())) {
    const std::string diff_id = std::string(kDigestPrefix) + name;
    if (!is_digest(diff_id)) {
      log::warning("not a layer", {{"name", name}});
      continue;
    }
    try {
      layers[diff_id] =
          parse_meta(linux::read_file_at(layers_.get(), fmt::format("{}/{}", name, kMeta)));
    } catch (const Error& error) {
      log::warning("a broken layer is removed", {{"layer", diff_id}, {"error", error.what()}});
      put_aside(diff_id);
    }
  }
  return layers;
}

std::vector<Image> StoreFolder::load_images() const {
  std::vector<Image> images;
  for (const std::string& name : linux::list_folder(images_.get())) {
    try {
      Image image = parse_record(linux::read_file_at(images_.get(), name, kMaxRecord));
      if (!is_image_name(image.name) || file_of(image.name) != name)
        fail(Code::invalid, "the record is of '{}'", image.name);
      images.push_back(std::move(image));
    } catch (const Error& error) {
      log::warning("an image cannot be read", {{"file", name}, {"error", error.what()}});
    }
  }
  return images;
}

HalfMade StoreFolder::begin() {
  return {tmp_.get(), new_name()};
}

void StoreFolder::seal(const HalfMade& half_made, std::uint64_t bytes) {
  wire::Writer out;
  out.u32(kFormat).u64(bytes);
  write_synced(half_made.dir_.get(), kMeta, std::move(out).take());
  // One wait for all files, however many: fsync(2) for each would wait for each.
  if (::syncfs(half_made.dir_.get()) != 0) throw_errno("sync a layer");
}

void StoreFolder::publish(HalfMade& half_made, const std::string& diff_id) {
  if (::renameat2(tmp_.get(), half_made.name_.c_str(), layers_.get(), folder_of(diff_id).c_str(),
                  RENAME_NOREPLACE) != 0) {
    throw_errno("put layer {} in its place", diff_id);
  }
  half_made.name_.clear();
}

void StoreFolder::sync_layers() {
  sync_file(layers_.get(), "the list of layers");
}

std::string StoreFolder::put_aside(const std::string& diff_id) {
  std::string name = new_name();
  if (::renameat(layers_.get(), folder_of(diff_id).c_str(), tmp_.get(), name.c_str()) != 0)
    throw_errno("put layer {} aside", diff_id);
  return name;
}

void StoreFolder::remove_aside(const std::string& name) {
  try {
    linux::remove_all_at(tmp_.get(), name);
  } catch (const Error& error) {
    log::warning("cannot be swept", {{"name", name}, {"error", error.what()}});
  }
}

void StoreFolder::write_image(const Image& image) {
  wire::Writer out;
  out.u32(kFormat);
  put(out, image);
  const std::string bytes = std::move(out).take();
  if (bytes.size() > kMaxRecord)
    fail(Code::exhausted, "the record of image '{}' takes more than {} bytes", image.name,
         kMaxRecord);
  const std::string fresh = new_name();
  try {
    write_synced(tmp_.get(), fresh, bytes);
    if (::renameat(tmp_.get(), fresh.c_str(), images_.get(), file_of(image.name).c_str()) != 0)
      throw_errno("put the record of image '{}' in its place", image.name);
  } catch (...) {
    ::unlinkat(tmp_.get(), fresh.c_str(), 0);
    throw;
  }
  sync_file(images_.get(), "the list of images");
}

void StoreFolder::remove_image(const std::string& name) {
  if (::unlinkat(images_.get(), file_of(name).c_str(), 0) != 0 && errno != ENOENT)
    throw_errno("remove the record of image '{}'", name);
  sync_file(images_.get(), "the list of images");
}

std::string StoreFolder::layer_path(const std::string& diff_id) const {
  return fmt::format("/proc/self/fd/{}/{}/{}", layers_.get(), folder_of(diff_id), kFiles);
}

}  // namespace hearth::image
