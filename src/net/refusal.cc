#include <exception>
#include <string_view>

#include "base/log.h"
#include "net/refusal_internal.h"

namespace hearth::net {

Problem problem_from_current_exception(const Request& request) {
  constexpr std::string_view kMessage = "request failed";
  try {
    throw;
  } catch (const Refusal& refusal) {
    return {refusal.status(), refusal.code(), refusal.what()};
  } catch (const Error& error) {
    if (error.code() == Code::internal) {
      log::error(kMessage, {{"method", request.method},
                            {"path", request.path},
                            {"error", std::string_view(error.what())}});
    }
    return {status_from_code(error.code()), error.code(), error.what()};
  } catch (const std::exception& error) {
    log::error(kMessage, {{"method", request.method},
                          {"path", request.path},
                          {"exception", std::string_view(error.what())}});
  } catch (...) {
    log::error(kMessage, {{"method", request.method}, {"path", request.path}});
  }
  return {500, Code::internal, "internal error"};
}

Response render_problem(const Router::Surface& surface, const Problem& problem,
                        const Request& request) {
  try {
    return surface.renderer(problem, request);
  } catch (...) {
    return render_json_problem(problem);
  }
}

}  // namespace hearth::net
