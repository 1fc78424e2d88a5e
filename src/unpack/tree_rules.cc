#include "unpack/tree_rules.h"

#include <algorithm>

#include "base/error.h"
#include "image/unpack_job.h"

namespace hearth::unpack {
namespace {

// PATH_MAX and NAME_MAX.
constexpr std::size_t kMaxPath = 4095;
constexpr std::size_t kMaxName = 255;

// What an empty folder takes, and what every file is rounded up to.
constexpr std::uint64_t kDiskBlock = 4096;

constexpr std::string_view kMark = ".wh.";
constexpr std::string_view kOpaqueMark = ".wh..wh..opq";

}  // namespace

std::vector<std::string> split_path(const std::string& path) {
  if (path.empty()) fail(Code::invalid, "an entry without a name");
  if (path.size() > kMaxPath)
    fail(Code::invalid, "'{}...': a path of {} bytes", path.substr(0, 100), path.size());
  if (path.find('\0') != std::string::npos)
    fail(Code::invalid, "'{}': a path with a NUL in it", path.substr(0, path.find('\0')));
  std::vector<std::string> parts;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") fail(Code::invalid, "'{}': a path with '..' in it", path);
    if (part.size() > kMaxName) fail(Code::invalid, "'{}': a name of {} bytes", path, part.size());
    parts.emplace_back(part);
  }
  if (parts.size() > image::kMaxTreeDepth)
    fail(Code::invalid, "'{}': more than {} folders deep", path, image::kMaxTreeDepth);
  return parts;
}

std::string join_path(const std::vector<std::string>& parts) {
  if (parts.empty()) return ".";
  std::string path = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) path += "/" + parts[i];
  return path;
}

Whiteout parse_whiteout(const std::vector<std::string>& parts) {
  if (parts.empty()) return {};
  for (const std::string& part : parts) {
    if (&part != &parts.back() && part.starts_with(kMark))
      fail(Code::invalid, "'{}': a folder with the name of a whiteout", join_path(parts));
  }
  const std::string& name = parts.back();
  if (!name.starts_with(kMark)) return {};
  if (name == kOpaqueMark) return {.kind = Whiteout::Kind::opaque};
  std::string removed = name.substr(kMark.size());
  if (removed.empty() || removed == "." || removed == ".." || removed.starts_with(kMark))
    fail(Code::invalid, "'{}': a whiteout of nothing", join_path(parts));
  return {.kind = Whiteout::Kind::removed, .name = std::move(removed)};
}

bool is_kept_xattr(std::string_view name) {
  if (name.find('\0') != std::string_view::npos || name.size() > kMaxName) return false;
  if (name == "security.capability") return true;
  return name.starts_with("user.") && !name.starts_with("user.overlay.");
}

Budget::Budget(std::uint64_t max_bytes, std::uint64_t max_entries)
    : max_bytes_(max_bytes), max_entries_(max_entries) {}

void Budget::add(std::uint64_t bytes) {
  if (bytes > max_bytes_ - bytes_)
    fail(Code::exhausted, "the layer needs more than the {} bytes there are for it", max_bytes_);
  bytes_ += bytes;
}

void Budget::add_entry() {
  if (++entries_ > max_entries_)
    fail(Code::exhausted, "the layer has more than {} files", max_entries_);
}

void Budget::add_folder() {
  add(kDiskBlock);
}

void Budget::add_data(std::uint64_t bytes) {
  add(bytes);
}

void Budget::end_file(std::uint64_t bytes) {
  add((kDiskBlock - bytes % kDiskBlock) % kDiskBlock);
}

}  // namespace hearth::unpack
