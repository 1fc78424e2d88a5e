// Requests and responses as plain values; the words that every HTTP surface shares.
//
// Nothing here knows a socket, Asio or Beast: cheap to include anywhere.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace hearth::http {

struct Field {
  std::string name;
  std::string value;
};

// Header fields in the order they came. Names compare without regard to case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first field of that name; null when there is none.
  const std::string* find(std::string_view name) const;
  // The first field's value, or an empty text.
  std::string_view value(std::string_view name) const;
  // Whether a comma-separated list such as Connection or Upgrade names `token` (any case).
  bool has_token(std::string_view name, std::string_view token) const;

  void add(std::string name, std::string value);
  // Replaces every field of that name by one.
  void set(std::string_view name, std::string value);
  void remove(std::string_view name);

  std::size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

struct Request {
  std::string method = "GET";
  std::string target = "/";  // as sent: path and query, still percent-encoded
  Headers headers;
  std::string body;

  // What follows is filled in by the server.
  std::string path;   // of the target, still percent-encoded; begins with '/', or is "*"
  std::string query;  // of the target, without '?', still percent-encoded; see query_parameters()
  std::string host;   // authority of an absolute target, otherwise the Host field; with its port
  std::vector<std::pair<std::string, std::string>> parameters;  // of the route's pattern, decoded
  std::string peer;                      // "127.0.0.1:4711", "unix", "memory"
  std::string peer_certificate;          // common name of a verified client certificate
  std::vector<std::string> peer_groups;  // its organisations, in their order
  std::string principal;                 // who asks: for the router's guard to set

  // A parameter of the route's pattern. Asking for one that the pattern lacks is our mistake:
  // throws Error(internal).
  const std::string& parameter(std::string_view name) const;
};

struct Response {
  unsigned status = 200;
  Headers headers;
  std::string body;
};

Response text_response(unsigned status, std::string text);
Response json_response(unsigned status, std::string json);

// "Not Found" and so on; "Status" for a number without a name of its own.
std::string_view reason_phrase(unsigned status);

// The status that says the same as an error code, and back (for clients of our own servers).
unsigned status_from_code(Code code);
Code code_from_status(unsigned status);

// Why a request failed; each surface renders it in its own dialect.
struct Problem {
  unsigned status = 500;
  Code code = Code::internal;
  std::string message;
};

// {"code":"not_found","message":"..."}
Response render_json_problem(const Problem& problem);

bool equal_ignoring_case(std::string_view left, std::string_view right);

// Whether both are the same, in a time that tells nothing about where they differ. (It does tell
// whether their lengths are equal.) For tokens and signatures.
bool equal_constant_time(std::string_view left, std::string_view right);

}  // namespace hearth::http
