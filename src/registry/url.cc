#include "registry/url.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "http/target.h"

namespace hearth::registry {
namespace {

// What net::Limits takes; signed URLs of object stores have up to a few KiB.
constexpr std::size_t kMaxUrl = 16 << 10;

std::uint16_t parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    fail(Code::invalid, "'{}' is no port", text);
  }
  return port;
}

bool is_host_text(std::string_view host) {
  return !host.empty() && host.size() <= 255 && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  });
}

// "/path?query", or it throws.
std::string check_target(std::string_view text) {
  const auto target = http::parse_target(text);
  if (!target || !target->authority.empty() || text.front() != '/') {
    fail(Code::invalid, "a URL with bytes in it that may not be there");
  }
  return std::string(text);
}

}  // namespace

std::string Url::origin() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", is_v6 ? "[" : "", host,
                     is_v6 ? "]" : "", port);
}

std::string Url::shown() const {
  return origin() + target.substr(0, target.find('?'));
}

Url url_of_host(std::string_view host, bool tls) {
  Url url{.tls = tls, .port = static_cast<std::uint16_t>(tls ? 443 : 80)};
  std::string_view name = host;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) fail(Code::invalid, "'{}' is no host", host);
    name = host.substr(1, end - 1);
    const std::string_view rest = host.substr(end + 1);
    if (rest.starts_with(':')) {
      url.port = parse_port(rest.substr(1));
    } else if (!rest.empty()) {
      fail(Code::invalid, "'{}' is no host", host);
    }
  } else if (const std::size_t colon = host.find(':'); colon != std::string_view::npos) {
    name = host.substr(0, colon);
    url.port = parse_port(host.substr(colon + 1));
  }
  if (!is_host_text(name)) fail(Code::invalid, "'{}' is no host", host);
  url.host = name;
  std::ranges::transform(url.host, url.host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return url;
}

Url parse_url(std::string_view text) {
  if (text.size() > kMaxUrl) fail(Code::invalid, "a URL of more than {} bytes", kMaxUrl);
  const bool tls = text.starts_with("https://");
  if (!tls && !text.starts_with("http://")) {
    fail(Code::invalid, "a URL that begins with neither https:// nor http://");
  }
  std::string_view rest = text.substr(tls ? 8 : 7);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t end = rest.find_first_of("/?");
  const std::string_view authority = rest.substr(0, end);
  // A user and password in a URL would end up in messages and at strangers.
  if (authority.find('@') != std::string_view::npos) {
    fail(Code::invalid, "a URL with a user in it");
  }
  Url url = url_of_host(authority, tls);
  if (end == std::string_view::npos) return url;
  std::string target(rest.substr(end));
  if (target.front() == '?') target.insert(0, "/");
  url.target = check_target(target);
  return url;
}

Url resolve(const Url& base, std::string_view location) {
  if (location.starts_with("//")) {
    return parse_url(std::string(base.tls ? "https:" : "http:") + std::string(location));
  }
  if (!location.starts_with('/')) return parse_url(location);
  if (location.size() > kMaxUrl) fail(Code::invalid, "a URL of more than {} bytes", kMaxUrl);
  Url url = base;
  url.target = check_target(location.substr(0, location.find('#')));
  return url;
}

std::string form_encode(std::string_view text) {
  return http::percent_encode(text);
}

}  // namespace hearth::registry
