#include "gateway/refusal.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "http/http.h"

namespace hearth::gateway {
namespace {

// As sandbox-router says it: SDKs show the detail, some look for its words.
std::string router_body(const Refusal& refusal, const RefusalContext& context) {
  std::string text(refusal.message);
  if (refusal.status == 502) {
    text = fmt::format("Could not connect to the backend sandbox: {}", context.id);
  }
  return fmt::format(R"({{"detail":{}}})", json_quote(text));
}

std::string e2b_body(const Refusal& refusal, const RefusalContext& context) {
  const std::string port = refusal.shows_port ? fmt::format(R"("port":{},)", context.port) : "";
  return fmt::format(R"({{"sandboxId":{},"message":{},{}"code":{}}})", json_quote(context.id),
                     json_quote(refusal.message), port, refusal.status);
}

std::string control_body(const Refusal& refusal) {
  return fmt::format(R"({{"code":{},"message":{}}})", refusal.status, json_quote(refusal.message));
}

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string page(const Refusal& refusal, const RefusalContext& context) {
  const std::string port =
      refusal.shows_port ? fmt::format("<p>Port: <code>{}</code></p>", context.port) : "";
  return fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} {1}</title>"
      "<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;"
      "padding:0 1rem}}code{{background:#8883;padding:.1em .3em;border-radius:.2em}}</style></head>"
      "<body><h1>{1}</h1><p>Sandbox: <code>{2}</code></p>{3}</body></html>\n",
      refusal.status, escape_html(refusal.message), escape_html(context.id), port);
}

}  // namespace

bool is_browser(std::string_view user_agent) {
  return user_agent.find("Mozilla/") != std::string_view::npos;
}

std::string render_answer(unsigned status, std::string_view type, std::string_view body,
                          const RefusalContext& context) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n{}",
                     status, http::reason_phrase(status), type, body.size(), kCorsFields,
                     context.closes ? "Connection: close\r\n" : "",
                     context.is_head ? std::string_view() : body);
}

namespace {

std::string without_routers(std::string_view names) {
  std::string kept;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    names.remove_prefix(std::min(comma + 1, names.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    constexpr std::string_view kRouters = "X-Sandbox-";
    if (http::equal_ignoring_case(name.substr(0, kRouters.size()), kRouters)) continue;
    if (!kept.empty()) kept += ",";
    kept += name;
  }
  return kept;
}

}  // namespace

std::string render_cors_answer(std::string_view wanted_headers, bool closes) {
  const std::string allowed = wanted_headers.empty() ? "*" : without_routers(wanted_headers);
  return fmt::format(
      "HTTP/1.1 204 No Content\r\n{}"
      "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
      "Access-Control-Allow-Headers: {}\r\nAccess-Control-Max-Age: 7200\r\n"
      "Vary: Access-Control-Request-Headers\r\n{}\r\n",
      kCorsFields, allowed, closes ? "Connection: close\r\n" : "");
}

std::string render_refusal(const Refusal& refusal, const RefusalContext& context) {
  constexpr std::string_view kJson = "application/json";
  if (refusal.is_envds && !context.is_browser)
    return render_answer(refusal.status, kJson, control_body(refusal), context);
  switch (context.dialect) {
    case Dialect::router:
      return render_answer(refusal.status, kJson, router_body(refusal, context), context);
    case Dialect::e2b:
    case Dialect::signature:
      if (context.is_browser) {
        return render_answer(refusal.status, "text/html; charset=utf-8", page(refusal, context),
                             context);
      }
      return render_answer(refusal.status, kJson, e2b_body(refusal, context), context);
    case Dialect::control:
    case Dialect::health:
      break;
  }
  return render_answer(refusal.status, kJson, control_body(refusal), context);
}

}  // namespace hearth::gateway
