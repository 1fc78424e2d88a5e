#include "interpreter/answers.h"

#include <utility>

namespace hearth::interpreter {
namespace {

http::Response open_to_all(http::Response response) {
  response.headers.add("Access-Control-Allow-Origin", "*");
  return response;
}

}  // namespace

http::Response events_response() {
  http::Response response;
  response.headers.add("Content-Type", "application/x-ndjson");
  response.headers.add("Cache-Control", "no-cache");
  return open_to_all(std::move(response));
}

http::Response json_answer(std::string json) {
  return open_to_all(http::json_response(200, std::move(json)));
}

http::Response text_answer(unsigned status, std::string text) {
  return open_to_all(http::text_response(status, std::move(text)));
}

http::Response preflight_answer() {
  http::Response response{.status = 204};
  response.headers.add("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  response.headers.add("Access-Control-Allow-Headers", "*, Authorization");
  response.headers.add("Access-Control-Max-Age", "86400");
  return open_to_all(std::move(response));
}

}  // namespace hearth::interpreter
