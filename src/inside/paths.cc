#include "inside/paths.h"

#include <vector>

#include "base/error.h"

namespace hearth::inside {

std::string clean_path(std::string_view path) {
  const bool is_absolute = path.starts_with('/');
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      kept.push_back(part);
    } else if (!kept.empty() && kept.back() != "..") {
      kept.pop_back();
    } else if (!is_absolute) {
      kept.push_back(part);
    }
  }
  std::string clean;
  for (const std::string_view part : kept) {
    if (is_absolute || !clean.empty()) clean += '/';
    clean += part;
  }
  if (clean.empty()) clean = is_absolute ? "/" : ".";
  return clean;
}

std::string_view base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || path.size() == 1 ? path : path.substr(slash + 1);
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string expand_path(std::string_view path, const PathRules& rules) {
  if (path.find('\0') != std::string_view::npos) fail(Code::invalid, "the path has a zero byte");
  if (path.empty()) path = rules.working.empty() ? rules.home : rules.working;
  if (path.starts_with('/')) return clean_path(path);
  if (path.starts_with('~')) {
    if (path.size() > 1 && path[1] != '/')
      fail(Code::invalid, "cannot expand user-specific home dir in '{}'", path);
    path.remove_prefix(1);
  }
  return clean_path(fmt::format("/{}/{}", rules.home, path));
}

}  // namespace hearth::inside
