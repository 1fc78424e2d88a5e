#include "apiserver/path.h"

#include <utility>
#include <vector>

#include "http/target.h"

namespace hearth::apiserver {
namespace {

// "apis", group, version, "namespaces", namespace, plural, name, subresource.
constexpr std::size_t kMostParts = 8;

std::optional<std::vector<std::string>> split(std::string_view path) {
  std::vector<std::string> parts;
  parts.reserve(kMostParts);
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t slash = path.find('/');
    auto part = http::decode_path_segment(path.substr(0, slash));
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  }
  return parts;
}

}  // namespace

std::optional<ResourcePath> parse_resource_path(std::string_view text) {
  if (!text.starts_with('/')) return std::nullopt;
  auto parts = split(text);
  if (!parts) return std::nullopt;
  for (const std::string& part : *parts)
    if (part.empty()) return std::nullopt;

  ResourcePath path;
  std::size_t at = 0;
  if (parts->size() >= 3 && (*parts)[0] == "api") {
    path.version = std::move((*parts)[1]);
    at = 2;
  } else if (parts->size() >= 4 && (*parts)[0] == "apis") {
    path.group = std::move((*parts)[1]);
    path.version = std::move((*parts)[2]);
    at = 3;
  } else {
    return std::nullopt;
  }
  const std::size_t left = parts->size() - at;
  const auto part = [&](std::size_t index) -> std::string& { return (*parts)[at + index]; };
  // "namespaces/NS" itself and its two subresources are a resource, everything below it is in it.
  const bool is_namespace_object =
      part(0) == "namespaces" && (left <= 2 || (left == 3 && path.group.empty() &&
                                                (part(2) == "status" || part(2) == "finalize")));
  if (part(0) == "namespaces" && !is_namespace_object) {
    path.ns = std::move(part(1));
    at += 2;
  }
  if (parts->size() - at > 3) return std::nullopt;
  path.plural = std::move(part(0));
  if (at + 1 < parts->size()) path.name = std::move(part(1));
  if (at + 2 < parts->size()) path.subresource = std::move(part(2));
  return path;
}

std::string verb_of(std::string_view method, const ResourcePath& path, bool is_watch) {
  // Streams into a pod are writes, whichever method a WebSocket or SPDY client opens them with.
  if (path.subresource == "exec" || path.subresource == "attach" ||
      path.subresource == "portforward")
    return "create";
  if (method == "GET" || method == "HEAD") {
    if (path.name.empty()) return is_watch ? "watch" : "list";
    return "get";
  }
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return path.name.empty() ? "deletecollection" : "delete";
  return "unknown";
}

}  // namespace hearth::apiserver
