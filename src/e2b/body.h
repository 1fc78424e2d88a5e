// The JSON body of a request. Fields that nobody asks for are ignored; null is the same as absent;
// a field of a wrong type is a 400 that names it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"

namespace hearth::e2b {

using Texts = std::map<std::string, std::string>;

class Body {
 public:
  // Empty text is an empty object. Throws Error(invalid) for what is no JSON object.
  static Body parse(std::string_view text);
  // The prefix is that of the fields' names in refusals.
  explicit Body(model::JsonObject fields, std::string prefix = {});

  bool has(std::string_view field) const { return find(field) != nullptr; }
  bool is_empty() const { return fields_.empty(); }
  // A list that is not empty, of whatever.
  bool has_items(std::string_view field) const;
  std::optional<std::string> text(std::string_view field) const;
  // Required: a 400 where it is not there or empty.
  std::string get_text(std::string_view field) const;
  std::optional<bool> flag(std::string_view field) const;
  // A 400 also outside of these bounds.
  std::optional<std::int64_t> number(
      std::string_view field, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::optional<std::vector<std::string>> list(std::string_view field) const;
  std::optional<std::vector<std::int64_t>> numbers(std::string_view field) const;
  // An object of texts; empty where there is none.
  Texts texts(std::string_view field) const;
  // An object within, whose fields are named "field.x" in refusals.
  std::optional<Body> object(std::string_view field) const;

 private:
  // Null for absent and for null.
  const model::Json* find(std::string_view field) const;
  [[noreturn]] void refuse_type(std::string_view field, std::string_view wanted) const;

  model::JsonObject fields_;
  std::string prefix_;
};

}  // namespace hearth::e2b
