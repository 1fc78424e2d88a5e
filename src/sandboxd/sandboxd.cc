#include "sandboxd/sandboxd.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/json_text.h"
#include "http/target.h"
#include "inside/variables.h"
#include "sandboxd/files.h"

namespace hearth::sandboxd {
namespace {

constexpr std::string_view kFiles = "/v1/files";
constexpr std::string_view kShownPrefix = "SANDBOX_";

// A variable whose name has one of these in it is for the sandbox alone.
constexpr std::array<std::string_view, 10> kSecretWords = {
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CRED", "KEY", "AUTH", "BEARER", "PRIVATE", "CERT"};

struct Dialect {
  unsigned status;
  std::string_view code;
};

Dialect translate(Code code) {
  switch (code) {
    case Code::invalid:
      return {400, "INVALID_ARGUMENT"};
    case Code::forbidden:
    case Code::unauthenticated:
      return {403, "PERMISSION_DENIED"};
    case Code::not_found:
      return {404, "NOT_FOUND"};
    case Code::already_exists:
    case Code::conflict:
      return {409, "CONFLICT"};
    case Code::unavailable:
      return {503, "UNAVAILABLE"};
    default:
      return {500, "INTERNAL"};
  }
}

void answer_problem(serve::Exchange& exchange, const Dialect& dialect, std::string_view message) {
  exchange.respond(http::json_response(
      dialect.status,
      fmt::format(R"({{"code":"{}","message":{}}})", dialect.code, json_quote(message))));
}

void refuse_method(serve::Exchange& exchange, std::string_view allowed) {
  http::Response response = http::json_response(
      405, fmt::format(R"({{"code":"INVALID_ARGUMENT","message":{}}})",
                       json_quote(fmt::format("only {} may be asked of this", allowed))));
  response.headers.set("Allow", std::string(allowed));
  exchange.respond(response);
}

bool is_shown(std::string_view name) {
  if (!name.starts_with(kShownPrefix)) return false;
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::ranges::none_of(
      kSecretWords, [&](std::string_view word) { return upper.find(word) != std::string::npos; });
}

std::string render_metadata(const std::vector<std::string>& environment) {
  std::map<std::string_view, std::string_view> shown;  // the last of a name counts
  for (const std::string_view variable : environment) {
    const auto equals = variable.find('=');
    if (equals == std::string_view::npos || !is_shown(variable.substr(0, equals))) continue;
    shown[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  std::string json = "{\"env\":{";
  for (const auto& [name, value] : shown) {
    if (json.back() != '{') json += ',';
    json += json_quote(name) + ":" + json_quote(value);
  }
  return json + "}}";
}

// Read for every request: settings may change.
Root make_root(const guest::Settings& settings) {
  std::string path = inside::variable_or(settings.environment, "SANDBOXD_ROOT_DIR", "/workspace");
  guest::User user = guest::find_user_here(settings.user);
  inside::ConfinedRoot folder(path, user);
  return {.path = std::move(path), .user = std::move(user), .folder = std::move(folder)};
}

class Api {
 public:
  explicit Api(guest::Core& core) : core_(core) {}

  void answer(serve::Exchange& exchange) {
    try {
      route(exchange);
    } catch (const Error& error) {
      if (exchange.begun()) throw;
      answer_problem(exchange, translate(error.code()), error.what());
    }
  }

 private:
  void route(serve::Exchange& exchange) {
    const http::Request& request = exchange.request();
    const std::string_view path = request.path;
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (path == "/v1/health" || path == "/v1/metadata") {
      if (!reads) return refuse_method(exchange, "GET");
      return exchange.respond(
          http::json_response(200, path == "/v1/health" ? health() : metadata()));
    }
    if (path != kFiles && !path.starts_with("/v1/files/"))
      return answer_problem(exchange, {404, "NOT_FOUND"}, "there is nothing at this path");
    answer_file(exchange, path.substr(std::min(kFiles.size() + 1, path.size())), reads);
  }

  void answer_file(serve::Exchange& exchange, std::string_view encoded, bool reads) {
    const std::string& method = exchange.request().method;
    if (!reads && method != "PUT" && method != "DELETE")
      return refuse_method(exchange, "GET, HEAD, PUT, DELETE");
    const auto decoded = http::percent_decode(encoded);
    if (!decoded) fail(Code::invalid, "the path has a bad percent-encoding");
    const Root root = make_root(core_.settings());
    const std::string path = relative_path(*decoded, root.path);
    if (reads) return answer_get(exchange, root, path);
    if (method == "PUT") return answer_put(exchange, root, path);
    answer_delete(exchange, root, path);
  }

  std::string health() const {
    const auto up = std::chrono::steady_clock::now() - started_;
    return fmt::format(R"({{"status":"ok","uptime_seconds":{}}})",
                       std::chrono::floor<std::chrono::seconds>(up).count());
  }

  std::string metadata() const { return render_metadata(core_.settings().environment); }

  guest::Core& core_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace

serve::Handler make_handler(guest::Core& core) {
  return [api = std::make_shared<Api>(core)](serve::Exchange& exchange) { api->answer(exchange); };
}

}  // namespace hearth::sandboxd
