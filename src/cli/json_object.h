// JSON objects written member by member, in the order given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"

namespace hearth::cli {

class JsonObject {
 public:
  JsonObject& text(std::string_view name, std::string_view value) {
    return raw(name, json_quote(value));
  }
  JsonObject& number(std::string_view name, std::uint64_t value) {
    return raw(name, std::to_string(value));
  }
  JsonObject& boolean(std::string_view name, bool value) {
    return raw(name, value ? "true" : "false");
  }
  // `json` is a JSON value already.
  JsonObject& raw(std::string_view name, std::string_view json) {
    members_ += (members_.empty() ? "" : ",") + json_quote(name) + ':';
    members_ += json;
    return *this;
  }

  std::string str() const { return '{' + members_ + '}'; }

 private:
  std::string members_;
};

// One element a line: for people who look at it and for tools that compare it.
inline std::string json_array(const std::vector<std::string>& elements) {
  std::string text = "[";
  for (const std::string& element : elements) text += (text.size() > 1 ? ",\n " : "") + element;
  return text + "]\n";
}

}  // namespace hearth::cli
