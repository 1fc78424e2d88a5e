// The small calls of the REST part, and late configuration.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include <boost/json.hpp>

#include "base/json_text.h"
#include "base/time_text.h"
#include "envd/cors.h"
#include "envd/metrics.h"
#include "envd/service_internal.h"
#include "linux/fd.h"

namespace hearth::envd {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxInit = std::size_t{1} << 20;
constexpr const char* kIdFolder = "/run/e2b";

// What an init may say; what it leaves out stays.
struct Init {
  std::vector<std::pair<std::string, std::string>> variables;
  std::optional<std::string> token;
  std::optional<std::string> user;
  std::optional<std::string> directory;
};

std::optional<std::string> read_text(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_string()) throw RestError(400, fmt::format("'{}' is not a string", name));
  std::string text(value->get_string());
  if (text.find('\0') != std::string::npos)
    throw RestError(400, fmt::format("'{}' has a zero byte", name));
  if (text.empty()) return std::nullopt;
  return text;
}

Init parse_init(std::string_view body) {
  Init init;
  if (body.empty()) return init;
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  if (error || !value.is_object()) throw RestError(400, "the body is not a JSON object");
  const json::object& object = value.get_object();
  init.token = read_text(object, "accessToken");
  init.user = read_text(object, "defaultUser");
  init.directory = read_text(object, "defaultWorkdir");
  const auto timestamp = read_text(object, "timestamp");
  if (timestamp && !parse_rfc3339(*timestamp)) throw RestError(400, "'timestamp' is not a time");
  const json::value* variables = object.if_contains("envVars");
  if (variables == nullptr || variables->is_null()) return init;
  if (!variables->is_object()) throw RestError(400, "'envVars' is not an object");
  for (const auto& [key, text] : variables->get_object()) {
    const std::string_view name = key;
    const bool named =
        !name.empty() && name.find_first_of(std::string_view("=\0", 2)) == std::string_view::npos;
    if (!named || !text.is_string() ||
        std::string_view(text.get_string()).find('\0') != std::string_view::npos) {
      throw RestError(400, fmt::format("variable '{}' cannot be set", name));
    }
    init.variables.emplace_back(name, std::string(text.get_string()));
  }
  return init;
}

void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value) {
  std::erase_if(environment,
                [&](const std::string& entry) { return entry.starts_with(name + '='); });
  environment.push_back(name + '=' + value);
}

}  // namespace

void Service::get_health(serve::Exchange& exchange) {
  http::Response response{.status = 204};
  response.headers.add("Cache-Control", "no-store");
  add_cors(response.headers);
  exchange.respond(response);
}

void Service::get_metrics(serve::Exchange& exchange) {
  respond_json(exchange, 200, render_metrics(read_metrics(), std::chrono::system_clock::now()));
}

// Those of commands: what is kept from these, nobody is told here.
void Service::get_envs(serve::Exchange& exchange) {
  std::map<std::string, std::string> variables;
  for (auto& [name, value] : sandbox_variables(guest::environment_for_commands(core_.settings())))
    variables[name] = value;
  std::string text;
  for (const auto& [name, value] : variables) {
    text += text.empty() ? '{' : ',';
    text += json_quote(name) + ':' + json_quote(value);
  }
  respond_json(exchange, 200, text + '}');
}

// Whoever knows the token may say it again or another one; whoever does not changes nothing.
void Service::post_init(serve::Exchange& exchange) {
  const Init init = parse_init(exchange.read_body(kMaxInit));
  core_.change_settings([&](guest::Settings& settings) {
    const bool knows_token = init.token && http::equal_constant_time(*init.token, settings.token);
    if (!knows_token) check_token(exchange.request(), settings.token);
    for (const auto& [name, value] : init.variables)
      set_variable(settings.environment, name, value);
    if (init.token) settings.token = *init.token;
    if (init.user) settings.user = *init.user;
    if (init.directory) settings.directory = *init.directory;
  });
  write_ids();
  get_health(exchange);
}

// Programs inside learn from these files where they are. An image may not let us write them.
void Service::write_ids() const {
  for (const auto& [name, value] : sandbox_variables(core_.settings().environment)) {
    if (name != "E2B_SANDBOX_ID" && name != "E2B_TEMPLATE_ID") continue;
    ::mkdir(kIdFolder, 0755);
    const std::string path = fmt::format("{}/.{}", kIdFolder, name);
    const linux::Fd file(::open(
        path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0444));
    if (file) [[maybe_unused]]
      const ssize_t written = ::write(file.get(), value.data(), value.size());
  }
}

}  // namespace hearth::envd
