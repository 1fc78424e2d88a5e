// Browsers may talk to envd from any page: who has no token gets nowhere anyway.
#pragma once

#include "http/http.h"

namespace hearth::envd {

inline void add_cors(http::Headers& headers) {
  headers.add("Access-Control-Allow-Origin", "*");
  headers.add("Access-Control-Expose-Headers",
              "Location, Cache-Control, X-Content-Type-Options, Content-Type, Content-Length, "
              "Content-Encoding, Content-Disposition, Content-Range");
}

// What a browser asks before it asks.
inline http::Response preflight_response(const http::Request& request) {
  http::Response response{.status = 204};
  response.headers.add("Access-Control-Allow-Origin", "*");
  response.headers.add("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
  const std::string* wanted = request.headers.find("Access-Control-Request-Headers");
  response.headers.add("Access-Control-Allow-Headers", wanted != nullptr ? *wanted : "*");
  response.headers.add("Access-Control-Max-Age", "7200");
  response.headers.add("Vary", "Access-Control-Request-Headers");
  return response;
}

}  // namespace hearth::envd
