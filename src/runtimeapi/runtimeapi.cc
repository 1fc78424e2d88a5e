#include "runtimeapi/runtimeapi.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/json_text.h"
#include "http/target.h"
#include "inside/variables.h"
#include "runtimeapi/execute.h"
#include "runtimeapi/files.h"
#include "runtimeapi/schema.h"
#include "serve/json_answer.h"

namespace hearth::runtimeapi {
namespace {

// A command line that the kernel takes has two megabytes; escaped, it may be longer.
constexpr std::size_t kMaxBody = std::size_t{8} << 20;
constexpr Duration kDefaultTimeout = std::chrono::seconds(300);
constexpr double kLongestTimeout = 366.0 * 24 * 3600;

enum class Verb { health, execute, upload, download, list, exists };

struct Route {
  std::string_view path;  // one that ends with '/' takes what follows as the path of a file
  std::string_view method;
  Verb verb;
};

constexpr std::array<Route, 6> kRoutes = {{{"/", "GET", Verb::health},
                                           {"/execute", "POST", Verb::execute},
                                           {"/upload", "POST", Verb::upload},
                                           {"/download/", "GET", Verb::download},
                                           {"/list/", "GET", Verb::list},
                                           {"/exists/", "GET", Verb::exists}}};

bool leads_to(const Route& route, std::string_view path) {
  const bool takes_rest = route.path.size() > 1 && route.path.ends_with('/');
  return takes_rest ? path.starts_with(route.path) : path == route.path;
}

Duration timeout_from(const std::vector<std::string>& environment) {
  const std::string text = inside::variable_or(environment, "SANDBOX_EXEC_TIMEOUT_SECONDS", "");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(seconds) || seconds <= 0) return kDefaultTimeout;
  return std::chrono::ceil<Duration>(
      std::chrono::duration<double>(std::min(seconds, kLongestTimeout)));
}

// Where nobody said where: the usual place, or, where that cannot be (the root of a container may
// be read-only), one that is always there.
constexpr std::string_view kUsualBase = "/app";
constexpr std::string_view kLastBase = "/tmp";

Base open_base(std::string path, const guest::User& user) {
  inside::ConfinedRoot root(path, user);
  return {.path = std::move(path), .user = user, .root = std::move(root)};
}

// Read for every request: settings may change.
Base make_base(const guest::Settings& settings) {
  const guest::User user = guest::find_user_here(settings.user);
  std::string said = inside::variable_or(settings.environment, "SANDBOX_BASE_DIR", "");
  if (!said.empty()) return open_base(std::move(said), user);
  try {
    return open_base(std::string(kUsualBase), user);
  } catch (const Error&) {
    return open_base(std::string(kLastBase), user);
  }
}

void answer_detail(serve::Exchange& exchange, unsigned status, std::string_view detail) {
  exchange.respond(
      http::json_response(status, fmt::format(R"({{"detail":{}}})", json_quote(detail))));
}

class Api {
 public:
  explicit Api(guest::Core& core) : core_(core) {}

  void answer(serve::Exchange& exchange) {
    const http::Request& request = exchange.request();
    for (const Route& route : kRoutes) {
      if (!leads_to(route, request.path)) continue;
      if (request.method != route.method) return refuse_method(exchange, route.method);
      try {
        return run(exchange, route);
      } catch (const SchemaError& error) {
        return exchange.respond(http::json_response(422, error.json()));
      }
    }
    answer_detail(exchange, 404, "Not Found");
  }

 private:
  static void refuse_method(serve::Exchange& exchange, std::string_view allowed) {
    http::Response response = http::json_response(405, R"({"detail":"Method Not Allowed"})");
    response.headers.set("Allow", std::string(allowed));
    exchange.respond(response);
  }

  void run(serve::Exchange& exchange, const Route& route) {
    if (route.verb == Verb::health) {
      return exchange.respond(
          http::json_response(200, R"({"status":"ok","message":"Sandbox Runtime is active."})"));
    }
    if (route.verb == Verb::execute) return answer_execute(exchange);
    if (route.verb == Verb::upload) return answer_upload(exchange, make_base(core_.settings()));
    const auto path =
        http::percent_decode(std::string_view(exchange.request().path).substr(route.path.size()));
    if (!path) return answer_message(exchange, 400, "Path has a bad percent-encoding");
    const Base base = make_base(core_.settings());
    if (route.verb == Verb::download) return answer_download(exchange, base, *path);
    if (route.verb == Verb::list) return answer_list(exchange, base, *path);
    answer_exists(exchange, base, *path);
  }

  void answer_execute(serve::Exchange& exchange) {
    std::string text;
    try {
      text = exchange.read_body(kMaxBody);
    } catch (const Error& error) {
      if (error.code() != Code::exhausted) throw;
      exchange.abandon();
      return answer_detail(exchange, 413, error.what());
    }
    const ExecuteBody body = parse_execute_body(text);
    Captured captured(budget_);
    try {
      const guest::Settings settings = core_.settings();
      const Duration timeout = body.timeout.value_or(timeout_from(settings.environment));
      const auto code =
          execute(core_, body.command, {.directory = make_base(settings).path, .timeout = timeout},
                  captured);
      if (code) return answer_end(exchange, captured.output(), captured.error(), *code);
      const double seconds = std::chrono::duration<double>(timeout).count();
      answer_end(
          exchange, "",
          fmt::format("Failed to execute command: Command timed out after {} seconds", seconds), 1,
          /*timed_out=*/true);
    } catch (const Error& error) {
      if (exchange.begun()) throw;
      answer_end(exchange, "", fmt::format("Failed to execute command: {}", error.what()), 1);
    }
  }

  static void answer_end(serve::Exchange& exchange, std::string_view output, std::string_view error,
                         int code, bool timed_out = false) {
    serve::JsonAnswer answer(exchange);
    answer.add("{\"stdout\":");
    answer.add_text(output);
    answer.add(",\"stderr\":");
    answer.add_text(error);
    answer.add(fmt::format(",\"exit_code\":{},\"timed_out\":{}}}", code, timed_out));
    answer.finish();
  }

  guest::Core& core_;
  CaptureBudget budget_;
};

}  // namespace

serve::Handler make_handler(guest::Core& core) {
  return [api = std::make_shared<Api>(core)](serve::Exchange& exchange) { api->answer(exchange); };
}

}  // namespace hearth::runtimeapi
