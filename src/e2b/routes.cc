#include "e2b/routes.h"

#include <utility>

#include "e2b/answers.h"
#include "http/head.h"
#include "http/target.h"
#include "metrics/registry.h"

namespace hearth::e2b {
namespace {

// Metadata and variables of a sandbox; objects above that are refused by the API server anyway.
constexpr std::uint64_t kMostBodyBytes = 1 << 20;

void count(metrics::Registry& metrics, const std::string& route, unsigned status) {
  metrics
      .counter("hearth_e2b_requests_total", "Requests to the E2B API.",
               {{"route", route}, {"code", std::to_string(status)}})
      .add();
}

// Whose turn a request takes; strangers are told so, all in one. A connection's thread mostly hears
// the same key again: what it was is good enough here, and whether it still is, the handler asks.
std::string team_of(const Core& core, const http::Request& request) {
  static thread_local std::string last_key;
  static thread_local std::string last_team;
  const std::string_view key = request.headers.value("X-API-Key");
  if (!last_key.empty() && http::equal_constant_time(key, last_key)) return last_team;
  const auto holder = core.parts.keys.find(key);
  if (!holder) return "nobody";
  last_key = key;
  last_team = "team " + holder->team;
  return last_team;
}

tenants::KeyHolder identify(const Core& core, const http::Request& request) {
  const std::string* key = request.headers.find("X-API-Key");
  if (key == nullptr || key->empty())
    refuse(401, "the API key is missing: send it in the header 'X-API-Key'");
  auto holder = core.parts.keys.find(*key);
  if (!holder) refuse(401, "the API key is not valid");
  return std::move(*holder);
}

}  // namespace

std::optional<std::string> Call::query(std::string_view name) const {
  return http::find_query_parameter(request.query, name);
}

std::optional<std::int64_t> Call::query_number(std::string_view name, std::int64_t least,
                                               std::int64_t most) const {
  const auto text = query(name);
  if (!text || text->empty()) return {};
  const auto number = http::parse_number(*text);
  if (!number || std::cmp_less(*number, least) || std::cmp_greater(*number, most))
    refuse(400, "the parameter '{}' is '{}', which is no number from {} to {}", name, *text, least,
           most);
  return static_cast<std::int64_t>(*number);
}

model::Key Call::key() const {
  return {holder.ns, parse_sandbox_id(request.parameter("id"))};
}

Object Call::sandbox(const Core& core) const {
  return core.get_sandbox(holder.ns, request.parameter("id"));
}

Object Call::find_sandbox(const Core& core) const {
  const model::Key named = key();
  return core.find_sandbox(named.ns, named.name);
}

Routes::Routes(net::Router& router, Core& core, net::Workers& workers)
    : router_(router), core_(core), workers_(workers) {}

void Routes::add_open(const std::string& method, const std::string& pattern, OpenHandler handler,
                      Runs runs) {
  const auto answer = [&core = core_, route = method + " " + pattern,
                       handler = std::move(handler)](const http::Request& request) {
    http::Response response;
    try {
      response = handler(request);
    } catch (...) {
      response = answer_current_exception(request);
    }
    count(core.parts.metrics, route, response.status);
    return response;
  };
  router_.add(
      method, pattern, answer,
      {.max_body_bytes = kMostBodyBytes,
       .workers = runs == Runs::at_once ? nullptr : &workers_,
       .whose = [&core = core_](const http::Request& request) { return team_of(core, request); }});
}

void Routes::add(const std::string& method, const std::string& pattern, Handler handler,
                 Runs runs) {
  const auto answer = [&core = core_, handler = std::move(handler),
                       reads = runs == Runs::on_worker](const http::Request& request) {
    const tenants::KeyHolder holder = identify(core, request);
    if (reads) core.catch_up();
    return handler({.request = request, .holder = holder});
  };
  add_open(method, pattern, answer, runs);
}

void Routes::add_unoffered(const std::string& method, const std::string& pattern, std::string what,
                           std::string advice) {
  const auto answer = [what = std::move(what), advice = std::move(advice)](
                          const Call&) -> http::Response { refuse_unoffered(what, advice); };
  add(method, pattern, answer, Runs::at_once);
}

}  // namespace hearth::e2b
