// How this API says yes and no. Every error is {"code": status, "message": text}: SDKs branch on
// `code`, which must be a number.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "http/http.h"
#include "model/json.h"

namespace hearth::e2b {

// A no with a status that no Code has, or with header fields.
class Refusal : public Error {
 public:
  Refusal(unsigned status, const std::string& message, http::Headers headers = {})
      : Error(http::code_from_status(status), message),
        status_(status),
        headers_(std::move(headers)) {}

  unsigned status() const { return status_; }
  const http::Headers& headers() const { return headers_; }

 private:
  unsigned status_;
  http::Headers headers_;
};

template <typename... Args>
[[noreturn]] void refuse(unsigned status, fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal(status, fmt::format(format, std::forward<Args>(args)...));
}

// Of a refusal with 429 or 503 that asking again would not change soon, or that took its time
// already. Newer SDKs ask again by themselves otherwise, creates as well, and whoever gave up
// meanwhile has a sandbox that he knows nothing of. Every 504 and 507 says so.
http::Headers not_again();

// For what this engine does not offer: 501, and what to do instead.
[[noreturn]] void refuse_unoffered(std::string_view what, std::string_view advice);
// 404 in the words that clients of E2B know.
[[noreturn]] void refuse_unknown_sandbox(std::string_view id);

// For a catch handler: an Error of those below, who keep a sandbox. What they do not find is not
// what the client asked for, and of it a 404, 409 or 429 would tell him something else: 503, or 507
// where there is no room for the files. Everything else goes on as it is.
[[noreturn]] void throw_from_below(std::string_view sandbox);
// What `ask` returns, with its Errors as above.
template <typename F>
auto ask_below(std::string_view sandbox, F ask) {
  try {
    return ask();
  } catch (const Error&) {
    throw_from_below(sandbox);
  }
}

http::Response answer_json(unsigned status, const model::Json& body);
http::Response answer_nothing();  // 204
http::Response answer_problem(unsigned status, std::string_view message);
// Of the exception that is being handled. Our own faults are logged, and told without details.
http::Response answer_current_exception(const http::Request& request);

}  // namespace hearth::e2b
