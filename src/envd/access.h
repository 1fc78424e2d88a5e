// Who may use envd: the sandbox's token, signatures made with it, and users of the sandbox.
#pragma once

#include <string>
#include <string_view>

#include "guest/core.h"
#include "guest/users.h"
#include "http/http.h"

namespace hearth::envd {

// An answer in the dialect of the REST part, with a status of its own.
class RestError : public Error {
 public:
  RestError(unsigned status, const std::string& message)
      : Error(Code::internal, message), status_(status) {}
  unsigned status() const { return status_; }

 private:
  unsigned status_;
};

// "v1_" and the SHA-256 of what may be done: `operation` is read or write; `expiration` in seconds
// since 1970, or empty.
std::string sign(std::string_view path, std::string_view operation, std::string_view user,
                 std::string_view token, std::string_view expiration);

// Throws RestError(401) unless there is no token, or the request has it.
void check_token(const http::Request& request, const std::string& token);

// The same for files, where a signature in the query does too.
void check_file_access(const http::Request& request, const std::string& token,
                       std::string_view operation, Time now);

// A user by name, and by nothing else. Empty: `standard`, which may be anything that guest/users.h
// understands. Throws RpcError(unauthenticated).
guest::User find_user(const std::string& name, const std::string& standard);

}  // namespace hearth::envd
