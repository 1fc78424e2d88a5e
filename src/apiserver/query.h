// The query of a request: parameters as Go clients and Python's write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::apiserver {

class Query {
 public:
  // Throws StatusError 400 for what does not decode.
  explicit Query(std::string_view query);

  // The first of that name; empty where there is none.
  std::string_view text(std::string_view name) const;
  bool has(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  // Once it is there everything but "0" and "false" is true, also nothing: "?watch".
  bool flag(std::string_view name) const;
  std::optional<bool> optional_flag(std::string_view name) const;
  // Throws StatusError 400 for text that is no integer.
  std::optional<std::int64_t> number(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace hearth::apiserver
