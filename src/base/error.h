// The one exception type, and how system calls become one.
//
// An Error has a code that every front door can translate (HTTP, gRPC, Kubernetes) and a sentence
// for a person: what failed, on what, why; no full stop; text that came from outside in single
// quotes. Absence is not an error (std::optional), and neither is an outcome that the caller must
// branch on (an enum).
//
// Thrown anywhere that computes or blocks; caught at four boundaries only: the HTTP router, the
// reconcile worker, the airlock's main, and a program's main.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace hearth {

// Crosses process boundaries as a number: do not renumber.
enum class Code : unsigned char {
  invalid = 1,          // the request makes no sense; asking again will not help
  unauthenticated = 2,  // who are you?
  forbidden = 3,        // we know, and no
  not_found = 4,        //
  already_exists = 5,   //
  conflict = 6,         // the world changed since you looked; look again
  exhausted = 7,        // no room, or a limit was reached
  timeout = 8,          // the deadline passed
  unavailable = 9,      // not now; asking again may help
  internal = 10,        // our fault, or the kernel's
};

// "not_found" and so on; "internal" for a number that is none of them.
std::string_view to_string(Code code);

// The code whose number arrived from another process; `internal` where there is none.
Code code_from_number(unsigned number);

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}

  Code code() const { return code_; }

 private:
  Code code_;
};

// Error{code, formatted message}, thrown.
template <typename... Args>
[[noreturn]] void fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// The code that describes a failed system call best.
Code code_from_errno(int error);

// "ENOENT: no such file or directory": the name for people who grep, the text for everyone else.
std::string errno_text(int error);

[[noreturn]] void throw_errno_text(int error, const std::string& what);

// Throws for the errno of the call just made: throw_errno("mount overlay on {}", path).
template <typename... Args>
[[noreturn]] void throw_errno(fmt::format_string<Args...> format, Args&&... args) {
  const int error = errno;  // formatting may change it
  throw_errno_text(error, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace hearth

// For what cannot happen unless we made a mistake; on in every build. Never for input.
#define HEARTH_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::hearth::assertion_failed(#condition, __FILE__, __LINE__))
