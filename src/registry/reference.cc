#include "registry/reference.h"

#include <algorithm>

#include "base/error.h"
#include "image/image.h"

namespace hearth::registry {
namespace {

constexpr std::string_view kDockerHub = "docker.io";
// Docker's own bound; file names and URLs are far longer.
constexpr std::size_t kMaxRepository = 255;
constexpr std::size_t kMaxTag = 128;
constexpr std::size_t kMaxHost = 255;
// More than the longest that is right; what is quoted in errors stays readable.
constexpr std::size_t kMaxReference = 1024;

bool is_lower(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_alphanumeric(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}

// Lower case letters and digits, with ".", "_", "__" or dashes between them.
bool is_component(std::string_view text) {
  if (text.empty() || !is_lower(text.front()) || !is_lower(text.back())) return false;
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t begin = i;
    while (i < text.size() && !is_lower(text[i])) ++i;
    const std::string_view between = text.substr(begin, i - begin);
    const bool is_dashes = between.find_first_not_of('-') == std::string_view::npos;
    if (!is_dashes && between != "." && between != "_" && between != "__") return false;
    while (i < text.size() && is_lower(text[i])) ++i;
  }
  return true;
}

bool is_tag(std::string_view text) {
  const auto is_inner = [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxTag && (is_alphanumeric(text[0]) || text[0] == '_') &&
         std::ranges::all_of(text, is_inner);
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoul(std::string(text)) <= 65535;
}

// A name or an IPv4 address, or an IPv6 address in brackets, with or without a port.
bool is_host(std::string_view text) {
  if (text.empty() || text.size() > kMaxHost) return false;
  std::string_view name = text;
  if (text.front() == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || end < 3) return false;
    const std::string_view address = text.substr(1, end - 1);
    if (address.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) {
      return false;
    }
    return end + 1 == text.size() || (text[end + 1] == ':' && is_port(text.substr(end + 2)));
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    if (!is_port(text.substr(colon + 1))) return false;
    name = text.substr(0, colon);
  }
  const auto is_inner = [](char c) { return is_alphanumeric(c) || c == '.' || c == '-'; };
  return !name.empty() && std::ranges::all_of(name, is_inner) && is_alphanumeric(name.front()) &&
         is_alphanumeric(name.back()) && name.find("..") == std::string_view::npos;
}

// "python" and "team/app" are on Docker Hub; a first part that cannot be a folder is a host.
bool looks_like_host(std::string_view first) {
  return first == "localhost" || first.find_first_of(".:[") != std::string_view::npos ||
         std::ranges::any_of(first, [](char c) { return c >= 'A' && c <= 'Z'; });
}

void take_digest(std::string_view& rest, std::string_view whole, Reference& reference) {
  const std::size_t at = rest.find('@');
  if (at == std::string_view::npos) return;
  reference.digest = rest.substr(at + 1);
  rest = rest.substr(0, at);
  if (!image::is_digest(reference.digest)) {
    fail(Code::invalid,
         "image '{}': what follows '@' is no digest: 'sha256:' and 64 hexadecimal digits", whole);
  }
}

void take_host(std::string_view& rest, std::string_view whole, Reference& reference) {
  reference.host = kDockerHub;
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos || !looks_like_host(rest.substr(0, slash))) return;
  reference.host = rest.substr(0, slash);
  rest = rest.substr(slash + 1);
  if (!is_host(reference.host)) {
    fail(Code::invalid, "image '{}': '{}' is no host", whole, reference.host);
  }
  if (reference.host == "index.docker.io" || reference.host == "registry-1.docker.io") {
    reference.host = kDockerHub;
  }
}

void take_tag(std::string_view& rest, std::string_view whole, Reference& reference) {
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return;
  reference.tag = rest.substr(colon + 1);
  rest = rest.substr(0, colon);
  if (!is_tag(reference.tag)) {
    fail(Code::invalid,
         "image '{}': '{}' is no tag: up to 128 letters, digits, '_', '.' and '-', the first of "
         "them a letter, digit or '_'",
         whole, reference.tag);
  }
}

void check_repository(std::string_view repository, std::string_view whole) {
  if (repository.empty()) fail(Code::invalid, "image '{}': there is no name in it", whole);
  if (repository.size() > kMaxRepository) {
    fail(Code::invalid, "image '{}': its name is longer than {} characters", whole, kMaxRepository);
  }
  while (true) {
    const std::size_t slash = repository.find('/');
    const std::string_view component = repository.substr(0, slash);
    if (!is_component(component)) {
      fail(Code::invalid,
           "image '{}': '{}' may not be part of a name: lower case letters and digits, with '.', "
           "'_', '__' or '-' between them",
           whole, component);
    }
    if (slash == std::string_view::npos) return;
    repository.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string Reference::text() const {
  std::string all = host + '/' + repository;
  if (!tag.empty()) all += ':' + tag;
  if (!digest.empty()) all += '@' + digest;
  return all;
}

std::string Reference::server() const {
  return host == kDockerHub ? "registry-1.docker.io" : host;
}

Reference parse_reference(std::string_view text) {
  if (text.empty()) fail(Code::invalid, "the name of an image is empty");
  if (text.size() > kMaxReference) {
    fail(Code::invalid, "the name of an image is longer than {} characters", kMaxReference);
  }
  if (text.find("://") != std::string_view::npos) {
    fail(Code::invalid, "image '{}': leave out '{}'", text, text.substr(0, text.find("://") + 3));
  }
  Reference reference;
  std::string_view rest = text;
  take_digest(rest, text, reference);
  take_host(rest, text, reference);
  take_tag(rest, text, reference);
  reference.repository = rest;
  if (reference.host == kDockerHub && !rest.empty() && rest.find('/') == std::string_view::npos) {
    reference.repository = "library/" + reference.repository;
  }
  check_repository(reference.repository, text);
  if (reference.version().empty()) reference.tag = "latest";
  return reference;
}

}  // namespace hearth::registry
