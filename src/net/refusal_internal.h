// Where exceptions of handlers end: what the client is told, and what the log.
#pragma once

#include <string>

#include "base/error.h"
#include "net/router.h"
#include "net/words.h"

namespace hearth::net {

// An Error whose status is not the one of its code.
class Refusal final : public Error {
 public:
  Refusal(unsigned status, Code code, const std::string& message)
      : Error(code, message), status_(status) {}

  unsigned status() const { return status_; }

 private:
  unsigned status_;
};

// For a catch block. Logs what is our fault. Tells the client nothing about exceptions that are
// not Errors: nobody wrote their text for it.
Problem problem_from_current_exception(const Request& request);

// In the dialect of the surface; never throws.
Response render_problem(const Router::Surface& surface, const Problem& problem,
                        const Request& request);

}  // namespace hearth::net
