#include "e2b/answers.h"

#include <string_view>

#include "base/log.h"

namespace hearth::e2b {
namespace {

http::Response answer_fault(const http::Request& request, std::string_view why) {
  log::error("request failed",
             {{"method", request.method}, {"path", request.path}, {"error", why}});
  return answer_problem(500, "internal error");
}

}  // namespace

void refuse_unoffered(std::string_view what, std::string_view advice) {
  refuse(501, "{} is not offered here; {}", what, advice);
}

void refuse_unknown_sandbox(std::string_view id) {
  refuse(404, "Sandbox \"{}\" doesn't exist or you don't have access to it", id);
}

http::Response answer_json(unsigned status, const model::Json& body) {
  return http::json_response(status, model::to_text(body));
}

http::Response answer_nothing() {
  return {.status = 204, .headers = {}, .body = {}};
}

http::Response answer_problem(unsigned status, std::string_view message) {
  return answer_json(status, model::JsonObject{{"code", status}, {"message", message}});
}

http::Response answer_current_exception(const http::Request& request) {
  try {
    throw;
  } catch (const Refusal& refusal) {
    http::Response response = answer_problem(refusal.status(), refusal.what());
    for (const http::Field& field : refusal.headers())
      response.headers.set(field.name, field.value);
    return response;
  } catch (const Error& error) {
    if (error.code() == Code::internal) return answer_fault(request, error.what());
    return answer_problem(http::status_from_code(error.code()), error.what());
  } catch (const std::exception& error) {
    return answer_fault(request, error.what());
  }
}

}  // namespace hearth::e2b
