#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "linux/files.h"
#include "pki/folder_internal.h"

namespace hearth::pki {
namespace {

// More than any key or certificate of ours has.
constexpr std::size_t kMostFile = 64 << 10;

linux::Fd open_private(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw_errno("make folder '{}'", path);
  return linux::open_file(path, O_RDONLY | O_DIRECTORY);
}

}  // namespace

Folder::Folder(const std::string& path) : path_(path), fd_(open_private(path)) {
  // Two starting processes would otherwise each make an authority, and one would be lost. The lock
  // goes with the descriptor.
  while (::flock(fd_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) throw_errno("lock folder '{}'", path);
  }
}

std::optional<std::string> Folder::find(const std::string& name) const {
  try {
    return linux::read_file_at(fd_.get(), name, kMostFile);
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return std::nullopt;
    throw;
  }
}

void Folder::keep(const std::string& name, std::string_view text) const {
  linux::replace_file_at(fd_.get(), name, text);
}

void Folder::keep_durably(const std::string& name, std::string_view text) const {
  linux::replace_file_durably_at(fd_.get(), name, text);
}

}  // namespace hearth::pki
