#include "base/error.h"

#include <string.h>

#include <cstdio>
#include <cstdlib>

namespace hearth {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid:
      return "invalid";
    case Code::unauthenticated:
      return "unauthenticated";
    case Code::forbidden:
      return "forbidden";
    case Code::not_found:
      return "not_found";
    case Code::already_exists:
      return "already_exists";
    case Code::conflict:
      return "conflict";
    case Code::exhausted:
      return "exhausted";
    case Code::timeout:
      return "timeout";
    case Code::unavailable:
      return "unavailable";
    case Code::internal:
      return "internal";
  }
  return "internal";
}

Code code_from_number(unsigned number) {
  const bool known = number >= static_cast<unsigned>(Code::invalid) &&
                     number <= static_cast<unsigned>(Code::internal);
  return known ? static_cast<Code>(number) : Code::internal;
}

Code code_from_errno(int error) {
  switch (error) {
    case ENOENT:
    case ESRCH:
      return Code::not_found;
    case EEXIST:
      return Code::already_exists;
    case EACCES:
    case EPERM:
      return Code::forbidden;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return Code::exhausted;
    case ETIMEDOUT:
      return Code::timeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return Code::unavailable;
    default:
      return Code::internal;
  }
}

std::string errno_text(int error) {
  const char* name = strerrorname_np(error);
  const char* text = strerrordesc_np(error);
  if (name == nullptr || text == nullptr) return fmt::format("errno {}", error);
  return fmt::format("{}: {}", name, text);
}

void throw_errno_text(int error, const std::string& what) {
  throw Error(code_from_errno(error), fmt::format("{}: {}", what, errno_text(error)));
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "hearth: assertion failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace hearth
