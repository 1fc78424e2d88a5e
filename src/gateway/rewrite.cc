#include "gateway/rewrite.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "gateway/limits.h"

namespace hearth::gateway {
namespace {

using http::equal_ignoring_case;
using http::FieldView;
using http::HeadView;

// What we add: a few fixed fields, a masked host, and the host that was asked for once more.
static_assert(kHeadBytes * 2 + 1024 <= kBufferBytes * 2);
// And to an answer a prefix for each field.
static_assert(kHeadBytes + (http::HeadView::kMostFields + 1) * kMostPrefixBytes <= kBufferBytes);

class Writer {
 public:
  explicit Writer(std::span<char> into) : into_(into) {}

  Writer& add(std::string_view text) {
    HEARTH_ASSERT(text.size() <= into_.size() - at_);
    text.copy(into_.data() + at_, text.size());
    at_ += text.size();
    return *this;
  }
  Writer& add_number(unsigned number) {
    const fmt::format_int text(number);
    return add({text.data(), text.size()});
  }
  std::string_view text() const { return {into_.data(), at_}; }

 private:
  std::span<char> into_;
  std::size_t at_ = 0;
};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view one) {
    return one.size() == name.size() && equal_ignoring_case(one, name);
  });
}

constexpr auto kHopByHop =
    std::to_array<std::string_view>({"Connection", "Keep-Alive", "Proxy-Connection",
                                     "Proxy-Authenticate", "Proxy-Authorization", "TE", "Upgrade"});

// A client must not be able to have these taken out by naming them in Connection: the next reader
// would see another message than we did.
constexpr auto kNeverNominated = std::to_array<std::string_view>(
    {"Content-Length", "Transfer-Encoding", "Host", "X-Access-Token", "Expect"});

constexpr auto kForwarded = std::to_array<std::string_view>(
    {"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port",
     "X-Forwarded-Prefix", "X-Real-IP", "Forwarded"});

constexpr auto kRouting = std::to_array<std::string_view>(
    {"E2b-Sandbox-Id", "E2b-Sandbox-Port", "X-Sandbox-ID", "X-Sandbox-Namespace", "X-Sandbox-Port",
     "X-Sandbox-Pod-IP", "X-Sandbox-UID", "X-Sandbox-Timeout", "E2B-Traffic-Access-Token"});

bool is_nominated(const HeadView& head, std::string_view name, bool has_nominations) {
  return has_nominations && head.has_token("Connection", name) && !is_one_of(name, kNeverNominated);
}

// Whether Connection says more than the usual words.
bool has_nominations(const HeadView& head) {
  return std::any_of(head.begin(), head.end(), [](const FieldView& field) {
    return equal_ignoring_case(field.name, "Connection") &&
           !equal_ignoring_case(field.value, "keep-alive") &&
           !equal_ignoring_case(field.value, "close") &&
           !equal_ignoring_case(field.value, "upgrade");
  });
}

// Credentials for us, which a sandbox has no business to see. An X-API-Key may also be the user's
// own program's: ours are recognised by their shape.
bool is_secret(const FieldView& field, const RequestContext& context) {
  const Route& route = *context.route;
  if (field.name.size() == 9 && equal_ignoring_case(field.name, "X-API-Key")) {
    return route.access == Access::team_key || field.value.starts_with("e2b_");
  }
  if (field.name.size() == 14 && equal_ignoring_case(field.name, "X-Access-Token")) {
    return context.target->port != kEnvdPort && !route.envd_token.empty() &&
           field.value == route.envd_token && context.target->port != 49999;
  }
  if (field.name.size() == 13 && equal_ignoring_case(field.name, "Authorization")) {
    constexpr std::string_view kBearer = "Bearer e2b_";
    if (context.target->dialect == Dialect::router) return true;
    return equal_ignoring_case(field.value.substr(0, kBearer.size()), kBearer);
  }
  if (context.target->dialect == Dialect::router) {
    if (context.is_upgrade && equal_ignoring_case(field.name, "Origin")) return true;
  }
  return false;
}

// Whether it is for more than the client and us; we say ourselves whom it asked for, and who it is.
bool goes_further(const HeadView& head, const FieldView& field, bool nominations) {
  return !is_one_of(field.name, kHopByHop) && !is_one_of(field.name, kForwarded) &&
         !equal_ignoring_case(field.name, "Host") && !is_nominated(head, field.name, nominations);
}

bool is_kept(const HeadView& head, const FieldView& field, const RequestContext& context,
             bool nominations) {
  return goes_further(head, field, nominations) && !is_one_of(field.name, kRouting) &&
         !is_secret(field, context);
}

void append_target(const Target& target, auto&& append) {
  if (!target.path_query.starts_with('/') && target.path_query != "*") append("/");
  append(target.path_query);
}

void add_host(const RequestContext& context, Writer& writer) {
  const Target& target = *context.target;
  writer.add("Host: ");
  const bool is_masked = !context.route->mask_host.empty() && target.port != kEnvdPort;
  if (is_masked) {
    constexpr std::string_view kPort = "${PORT}";
    std::string_view mask = context.route->mask_host;
    for (auto at = mask.find(kPort); at != std::string_view::npos; at = mask.find(kPort)) {
      writer.add(mask.substr(0, at)).add_number(target.port);
      mask.remove_prefix(at + kPort.size());
    }
    writer.add(mask);
  } else if (target.dialect == Dialect::router) {
    // The one that was asked for is the router's own; programs expect to be called by theirs.
    writer.add("localhost:").add_number(target.port);
  } else {
    writer.add(target.host);
  }
  writer.add("\r\n");
}

void add_forwarded(const RequestContext& context, Writer& writer) {
  if (!context.peer.empty()) writer.add("X-Forwarded-For: ").add(context.peer).add("\r\n");
  writer.add(context.is_tls ? "X-Forwarded-Proto: https\r\n" : "X-Forwarded-Proto: http\r\n");
  if (!context.target->host.empty()) {
    writer.add("X-Forwarded-Host: ").add(context.target->host).add("\r\n");
  }
  if (!context.target->prefix.empty()) {
    writer.add("X-Forwarded-Prefix: ").add(context.target->prefix).add("\r\n");
  }
}

// Where the path of a cookie begins in the field's value; npos for one that is for no path of its
// own, and so for where it was set.
std::size_t find_cookie_path(std::string_view cookie) {
  constexpr std::string_view kPath = "path=";
  for (auto at = cookie.find(';'); at != cookie.npos; at = cookie.find(';', at)) {
    at = cookie.find_first_not_of(" \t", at + 1);
    if (at == cookie.npos) break;
    const std::size_t value = at + kPath.size();
    if (equal_ignoring_case(cookie.substr(at, kPath.size()), kPath) &&
        cookie.substr(std::min(value, cookie.size())).starts_with('/'))
      return value;
  }
  return cookie.npos;
}

bool is_path(std::string_view location) {
  return location.starts_with('/') && !location.starts_with("//");
}

// A field of an answer whose sandbox is one folder among others of this host.
void add_below(const FieldView& field, std::string_view prefix, Writer& writer) {
  // A page may watch over the whole host with it, and so over the pages of other sandboxes.
  if (equal_ignoring_case(field.name, "Service-Worker-Allowed")) return;
  std::size_t at = std::string_view::npos;
  if (equal_ignoring_case(field.name, "Set-Cookie")) at = find_cookie_path(field.value);
  if (equal_ignoring_case(field.name, "Location") && is_path(field.value)) at = 0;
  if (at == std::string_view::npos) {
    writer.add(field.line);
    return;
  }
  writer.add(field.name).add(": ").add(field.value.substr(0, at)).add(prefix);
  writer.add(field.value.substr(at)).add("\r\n");
}

}  // namespace

bool wants_upgrade(const HeadView& head) {
  return head.minor > 0 && head.find("Upgrade") != nullptr &&
         head.has_token("Connection", "upgrade");
}

std::string_view rewrite_request(const HeadView& head, const RequestContext& context,
                                 std::span<char> into) {
  const Target& target = *context.target;
  Writer writer(into);
  writer.add(head.method).add(" ");
  append_target(target, [&](std::string_view text) { writer.add(text); });
  writer.add(head.minor > 0 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
  add_host(context, writer);
  const bool nominations = has_nominations(head);
  for (const FieldView& field : head) {
    if (is_kept(head, field, context, nominations)) writer.add(field.line);
  }
  add_forwarded(context, writer);
  if (context.is_upgrade) {
    writer.add("Connection: Upgrade\r\nUpgrade: ").add(head.value("Upgrade")).add("\r\n");
  }
  return writer.add("\r\n").text();
}

http::Request control_request(const HeadView& head, const Target& target) {
  http::Request request{.method = std::string(head.method), .target = {}};
  append_target(target, [&](std::string_view text) { request.target += text; });
  if (!target.host.empty()) request.headers.add("Host", std::string(target.host));
  const bool nominations = has_nominations(head);
  for (const FieldView& field : head) {
    if (goes_further(head, field, nominations))
      request.headers.add(std::string(field.name), std::string(field.value));
  }
  return request;
}

std::string_view rewrite_response(const HeadView& head, const ResponseContext& context,
                                  std::span<char> into) {
  Writer writer(into);
  writer.add("HTTP/1.1 ").add_number(head.status).add(" ").add(head.reason).add("\r\n");
  const bool nominations = has_nominations(head);
  for (const FieldView& field : head) {
    if (is_one_of(field.name, kHopByHop) || is_nominated(head, field.name, nominations)) continue;
    if (context.prefix.empty()) {
      writer.add(field.line);
    } else {
      add_below(field, context.prefix, writer);
    }
  }
  if (context.is_upgrade) {
    writer.add("Connection: Upgrade\r\n");
    if (const FieldView* upgrade = head.find("Upgrade")) writer.add(upgrade->line);
  } else if (context.closes) {
    writer.add("Connection: close\r\n");
  }
  return writer.add("\r\n").text();
}

}  // namespace hearth::gateway
