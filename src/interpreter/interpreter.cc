#include "interpreter/interpreter.h"

#include <memory>

#include <boost/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "http/target.h"
#include "interpreter/answers.h"
#include "interpreter/contexts.h"

namespace hearth::interpreter {
namespace {

namespace json = boost::json;

// A cell with a small data set written out in it, and room to spare.
constexpr std::size_t kMostBody = std::size_t{16} << 20;

constexpr std::string_view kContexts = "/contexts";

json::object read_object(serve::Exchange& exchange) {
  const std::string body = exchange.read_body(kMostBody);
  if (body.empty()) return {};
  json::error_code error;
  json::value value = json::parse(json::string_view(body.data(), body.size()), error);
  if (error) fail(Code::invalid, "the request is not JSON: {}", error.message());
  json::object* object = value.if_object();
  if (object == nullptr) fail(Code::invalid, "the request is no JSON object");
  return std::move(*object);
}

// Nothing for what is not there and for null, which some clients send.
std::optional<std::string> find_text(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const json::string* text = value->if_string();
  if (text == nullptr) fail(Code::invalid, "'{}' is no text", name);
  return std::string(text->data(), text->size());
}

Variables read_variables(const json::object& in) {
  const json::value* value = in.if_contains("env_vars");
  if (value == nullptr || value->is_null()) return {};
  const json::object* object = value->if_object();
  if (object == nullptr) fail(Code::invalid, "'env_vars' is no object");
  Variables variables;
  for (const auto& each : *object) {
    const std::string name(each.key().data(), each.key().size());
    const json::string* text = each.value().if_string();
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      fail(Code::invalid, "'{}' cannot be a variable's name", name);
    if (text == nullptr || text->find('\0') != json::string::npos)
      fail(Code::invalid, "the variable '{}' has a value that is no text", name);
    variables.emplace_back(name, std::string(text->data(), text->size()));
  }
  return variables;
}

std::string describe(const Context& context) {
  return fmt::format(R"({{"id":{},"language":{},"cwd":{}}})", json_quote(context.id()),
                     json_quote(context.language()), json_quote(context.directory()));
}

class Interpreter {
 public:
  explicit Interpreter(guest::Core& core) : core_(core), contexts_(core) {}

  void handle(serve::Exchange& exchange) {
    try {
      route(exchange);
    } catch (const Error& error) {
      if (exchange.begun()) throw;
      exchange.respond(text_answer(status_of(error), error.what()));
    }
  }

 private:
  // Clients know 404 for contexts; what keeps a kernel from running is 500, whatever it is.
  static unsigned status_of(const Error& error) {
    switch (error.code()) {
      case Code::invalid:
        return 400;
      case Code::unauthenticated:
        return 401;
      case Code::not_found:
        return 404;
      default:
        return 500;
    }
  }

  void route(serve::Exchange& exchange) {
    const std::string& method = exchange.request().method;
    const std::string_view path = exchange.request().path;
    if (method == "OPTIONS") return exchange.respond(preflight_answer());
    if (path == "/execute" && method == "POST") return execute(exchange);
    contexts_.warm_up();
    if (path == "/health" && (method == "GET" || method == "HEAD"))
      return exchange.respond(json_answer("\"OK\""));
    if (path == kContexts && method == "GET") return list(exchange);
    if (path == kContexts && method == "POST") return make(exchange);
    if (path.starts_with("/contexts/")) return change(exchange, path.substr(kContexts.size() + 1));
    const bool known = path == "/execute" || path == "/health" || path == kContexts;
    exchange.respond(known ? text_answer(405, "Method Not Allowed")
                           : text_answer(404, "Not Found"));
  }

  // Clients send their token with /execute and nowhere else.
  void check_token(const serve::Exchange& exchange) const {
    const std::string token = core_.settings().token;
    if (token.empty()) return;
    if (!http::equal_constant_time(exchange.request().headers.value("X-Access-Token"), token))
      fail(Code::unauthenticated, "the access token is missing or wrong");
  }

  void execute(serve::Exchange& exchange) {
    check_token(exchange);
    const json::object request = read_object(exchange);
    const auto id = find_text(request, "context_id");
    const auto language = find_text(request, "language");
    if (id && language) fail(Code::invalid, "Only one of context_id or language can be provided");
    auto code = find_text(request, "code");
    if (!code) fail(Code::invalid, "'code' is missing");
    const Variables variables = read_variables(request);
    Contexts::Shared context;
    if (id) {
      context = contexts_.get(*id);
    } else {
      context =
          with_500([&] { return contexts_.default_for(normal_language(language.value_or(""))); });
    }
    context->execute(exchange, std::move(*code), variables);
  }

  // Where a context is made, nothing is the client's mistake to him, and none is missing.
  template <typename F>
  static auto with_500(F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (const Error& error) {
      throw Error(Code::internal, error.what());
    }
  }

  void list(serve::Exchange& exchange) const {
    std::string text;
    for (const Contexts::Shared& context : contexts_.list()) {
      text += text.empty() ? "" : ",";
      text += describe(*context);
    }
    exchange.respond(json_answer('[' + text + ']'));
  }

  void make(serve::Exchange& exchange) {
    const json::object request = read_object(exchange);
    const std::string language = normal_language(find_text(request, "language").value_or(""));
    const std::string directory = find_text(request, "cwd").value_or("");
    const auto context = with_500([&] {
      Contexts::Shared made = contexts_.make(language, directory);
      try {
        made->warm_up();
      } catch (const Error&) {
        contexts_.remove(made->id());
        throw;
      }
      return made;
    });
    exchange.respond(json_answer(describe(*context)));
  }

  // DELETE ID, POST ID/restart.
  void change(serve::Exchange& exchange, std::string_view rest) {
    constexpr std::string_view kRestart = "/restart";
    const std::string& method = exchange.request().method;
    const bool restarts = rest.ends_with(kRestart) && method == "POST";
    if (restarts) rest.remove_suffix(kRestart.size());
    if (!restarts && method != "DELETE")
      return exchange.respond(text_answer(405, "Method Not Allowed"));
    const auto id = http::decode_path_segment(rest);
    if (!id) fail(Code::not_found, "Context {} not found", rest);
    const Contexts::Shared context = contexts_.get(*id);
    if (restarts) {
      context->restart();
    } else {
      contexts_.remove(*id);
    }
    exchange.respond(json_answer("null"));
  }

  guest::Core& core_;
  Contexts contexts_;
};

}  // namespace

serve::Handler make_handler(guest::Core& core) {
  auto interpreter = std::make_shared<Interpreter>(core);
  return [interpreter](serve::Exchange& exchange) { interpreter->handle(exchange); };
}

}  // namespace hearth::interpreter
