#include "e2b/answers.h"

#include <string_view>

#include "base/log.h"
#include "model/status.h"

namespace hearth::e2b {
namespace {

http::Response answer_fault(const http::Request& request, std::string_view why) {
  log::error("request failed",
             {{"method", request.method}, {"path", request.path}, {"error", why}});
  return answer_problem(500, "internal error");
}

// Of another's API: that our own asked for the wrong thing, or too soon, is no word on what the
// client asked us for.
unsigned status_of(const model::StatusError& error) {
  const unsigned status = http::status_from_code(error.code());
  return status == 404 || status == 409 || status == 429 ? 503 : status;
}

}  // namespace

http::Headers not_again() {
  return {{"Should-Retry", "false"}};
}

void refuse_unoffered(std::string_view what, std::string_view advice) {
  refuse(501, "{} is not offered here; {}", what, advice);
}

void refuse_unknown_sandbox(std::string_view id) {
  refuse(404, "Sandbox \"{}\" doesn't exist or you don't have access to it", id);
}

void throw_from_below(std::string_view sandbox) {
  try {
    throw;
  } catch (const Refusal&) {
    throw;
  } catch (const Error& error) {
    switch (error.code()) {
      case Code::not_found:
      case Code::already_exists:
      case Code::conflict:
        refuse(503, "sandbox '{}' is restarting, try again: {}", sandbox, error.what());
      case Code::exhausted:
        refuse(507, "there is no room for sandbox '{}': {}", sandbox, error.what());
      default:
        throw;
    }
  }
}

http::Response answer_json(unsigned status, const model::Json& body) {
  return http::json_response(status, model::to_text(body));
}

http::Response answer_nothing() {
  return {.status = 204, .headers = {}, .body = {}};
}

http::Response answer_problem(unsigned status, std::string_view message) {
  http::Response response =
      answer_json(status, model::JsonObject{{"code", status}, {"message", message}});
  if (status == 504 || status == 507)
    for (const http::Field& each : not_again()) response.headers.set(each.name, each.value);
  return response;
}

http::Response answer_current_exception(const http::Request& request) {
  try {
    throw;
  } catch (const Refusal& refusal) {
    http::Response response = answer_problem(refusal.status(), refusal.what());
    for (const http::Field& field : refusal.headers())
      response.headers.set(field.name, field.value);
    return response;
  } catch (const model::StatusError& error) {
    if (error.code() == Code::internal) return answer_fault(request, error.what());
    return answer_problem(status_of(error), error.what());
  } catch (const Error& error) {
    if (error.code() == Code::internal) return answer_fault(request, error.what());
    return answer_problem(http::status_from_code(error.code()), error.what());
  } catch (const std::exception& error) {
    return answer_fault(request, error.what());
  }
}

}  // namespace hearth::e2b
