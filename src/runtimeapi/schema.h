// What a request's JSON must look like, and how it is told when it does not: in the words of
// FastAPI, which clients of this API have always been answered in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hearth::runtimeapi {

// Something that is not as it must be: the body of a 422.
class SchemaError {
 public:
  explicit SchemaError(std::string json) : json_(std::move(json)) {}
  const std::string& json() const { return json_; }

 private:
  std::string json_;
};

// Of a part of a form that is missing.
SchemaError missing_field(std::string_view name);

struct ExecuteBody {
  std::string command;
  std::optional<Duration> timeout;  // "timeout_seconds": newer clients send it
};

// Throws SchemaError.
ExecuteBody parse_execute_body(std::string_view text);

}  // namespace hearth::runtimeapi
