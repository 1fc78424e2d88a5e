#include "gateway/target.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/id.h"
#include "base/ip_text.h"
#include "gateway/signature.h"
#include "http/target.h"

namespace hearth::gateway {
namespace {

using http::HeadView;

// A name of DNS and a port. It is passed on more than once: head and additions must fit a buffer.
constexpr std::size_t kMostHostBytes = 261;

std::optional<std::uint16_t> read_port(std::string_view text) {
  const auto number = http::parse_number(text);
  if (!number || *number < 1 || *number > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

// Old ids carry the name of the machine behind a hyphen.
std::string_view without_client(std::string_view id) {
  return id.substr(0, id.find('-'));
}

bool is_twice(const HeadView& head, std::string_view name) {
  return std::count_if(head.begin(), head.end(), [&](const http::FieldView& field) {
           return http::equal_ignoring_case(field.name, name);
         }) > 1;
}

Target& refuse(Target& target, unsigned status, std::string_view why) {
  target.problem_status = status;
  target.problem = why;
  return target;
}

void read_e2b_headers(const HeadView& head, std::string_view id, Target& target) {
  target.dialect = Dialect::e2b;
  target.id = without_client(id);
  const auto port = read_port(head.value("E2b-Sandbox-Port"));
  if (!is_e2b_id(target.id) || is_twice(head, "E2b-Sandbox-Id")) {
    refuse(target, 400, "Invalid sandbox ID");
  } else if (!port || is_twice(head, "E2b-Sandbox-Port")) {
    refuse(target, 400, "Invalid sandbox port");
  } else {
    target.port = *port;
  }
}

// An address that a sandbox may have. Whether it is this sandbox's is asked later.
bool is_pod_address(std::string_view text) {
  if (text.size() > INET6_ADDRSTRLEN) return false;
  if (const auto v4 = parse_ipv4(text)) {
    const std::uint32_t address = ntohl(v4->s_addr);
    return address != 0 && (address >> 24) != 127 && (address >> 16) != 0xa9fe &&
           (address >> 28) != 0xe;
  }
  const auto v6 = parse_ipv6(text);
  if (!v6) return false;
  const in6_addr* address = &*v6;
  return !IN6_IS_ADDR_UNSPECIFIED(address) && !IN6_IS_ADDR_LOOPBACK(address) &&
         !IN6_IS_ADDR_LINKLOCAL(address) && !IN6_IS_ADDR_MULTICAST(address) &&
         !IN6_IS_ADDR_V4MAPPED(address);
}

constexpr std::array<std::string_view, 4> kRouterFields = {"X-Sandbox-ID", "X-Sandbox-Namespace",
                                                           "X-Sandbox-Port", "X-Sandbox-Pod-IP"};

void read_router_headers(const HeadView& head, Target& target) {
  target.dialect = Dialect::router;
  target.id = head.value("X-Sandbox-ID");
  target.ns = "default";
  target.port = kRouterPort;
  if (const auto* ns = head.find("X-Sandbox-Namespace")) target.ns = ns->value;
  if (target.id.empty()) {
    refuse(target, 400, "X-Sandbox-ID header is required.");
    return;
  }
  if (!is_label(target.id) || is_twice(head, "X-Sandbox-ID")) {
    refuse(target, 400, "Invalid sandbox ID format.");
    return;
  }
  if (!is_label(target.ns) || is_twice(head, "X-Sandbox-Namespace")) {
    refuse(target, 400, "Invalid namespace format.");
    return;
  }
  if (const auto* field = head.find("X-Sandbox-Port")) {
    const auto port = read_port(field->value);
    if (!port || is_twice(head, "X-Sandbox-Port")) {
      refuse(target, 400, "Invalid port format.");
      return;
    }
    target.port = *port;
  }
  if (const auto* ip = head.find("X-Sandbox-Pod-IP")) {
    target.pod_ip = ip->value;
    if (!is_pod_address(ip->value)) refuse(target, 400, "Invalid target IP address.");
  }
}

bool is_router(const HeadView& head) {
  return std::ranges::any_of(kRouterFields, [&](auto name) { return head.find(name) != nullptr; });
}

// "49983-ID.example.com:8443"; false for a host that is nobody's sandbox.
bool read_host(std::string_view host, Target& target) {
  const auto dot = host.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view label = host.substr(0, dot);
  const auto hyphen = label.find('-');
  if (hyphen == std::string_view::npos || hyphen == 0 || hyphen > 5) return false;
  if (label.substr(0, hyphen).find_first_not_of("0123456789") != std::string_view::npos) {
    return false;
  }
  target.dialect = Dialect::e2b;
  target.id = without_client(label.substr(hyphen + 1));
  const auto port = read_port(label.substr(0, hyphen));
  if (!port || !is_e2b_id(target.id)) {
    refuse(target, 400, "Invalid host");
  } else {
    target.port = *port;
  }
  return true;
}

// "/sandboxes/ID/PORT/rest"; false where the third is no number: the control plane's.
bool read_path(Target& target) {
  constexpr std::string_view kPrefix = "/sandboxes/";
  if (!target.path_query.starts_with(kPrefix)) return false;
  const std::string_view rest = target.path_query.substr(kPrefix.size());
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view behind = rest.substr(slash + 1);
  const std::string_view digits = behind.substr(0, behind.find_first_of("/?"));
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return false;
  }
  target.dialect = Dialect::e2b;
  target.id = without_client(rest.substr(0, slash));
  target.prefix = target.path_query.substr(0, kPrefix.size() + slash + 1 + digits.size());
  target.path_query = behind.substr(digits.size());
  target.path = target.path_query.substr(0, target.path_query.find('?'));
  if (target.path.empty()) target.path = "/";
  const auto port = read_port(digits);
  if (!is_e2b_id(target.id) || target.prefix.size() > kMostPrefixBytes) {
    refuse(target, 400, "Invalid sandbox ID");
  } else if (!port) {
    refuse(target, 400, "Invalid sandbox port");
  } else {
    target.port = *port;
  }
  return true;
}

// Some clients of E2B name a sandbox in calls about it, too, as they do for its envd. That has no
// such paths, and who asks it shows no key.
bool is_about_sandbox(const HeadView& head, std::string_view path) {
  constexpr std::array<std::string_view, 2> kPaths = {"/sandboxes/", "/v2/sandboxes/"};
  return head.find("X-API-Key") != nullptr &&
         std::ranges::any_of(kPaths, [&](auto prefix) { return path.starts_with(prefix); }) &&
         read_port(head.value("E2b-Sandbox-Port")) == kEnvdPort;
}

void find_by_content(const HeadView& head, Target& target) {
  if (const auto* id = head.find("E2b-Sandbox-Id")) {
    if (is_about_sandbox(head, target.path)) return;
    read_e2b_headers(head, id->value, target);
  } else if (is_router(head)) {
    read_router_headers(head, target);
  } else if (read_host(target.host, target) || read_path(target)) {
    return;
  } else if (target.path == "/files" && has_signature(target.query)) {
    target.dialect = Dialect::signature;
    target.port = kEnvdPort;
  } else if (target.path == "/healthz" && (head.method == "GET" || head.method == "HEAD")) {
    target.dialect = Dialect::health;
  }
}

}  // namespace

bool is_e2b_id(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

Target find_target(const HeadView& head) {
  Target target;
  const auto parsed = http::parse_target(head.target);
  if (!parsed) return refuse(target, 400, "Invalid request target");
  target.path = parsed->path;
  target.query = parsed->query;
  target.host = parsed->authority.empty() ? head.value("Host") : parsed->authority;
  target.path_query = head.target;
  if (target.host.size() > kMostHostBytes) return refuse(target, 400, "Invalid host");
  if (!parsed->authority.empty()) {
    const auto behind = head.target.find_first_of("/?", head.target.find("://") + 3);
    target.path_query = head.target.substr(std::min(behind, head.target.size()));
  }
  find_by_content(head, target);
  return target;
}

}  // namespace hearth::gateway
