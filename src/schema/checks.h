// What the parts of validation share. Inside this room only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"
#include "model/status.h"
#include "schema/schema.h"

namespace hearth::schema {

// More errors help nobody, and an attacker's object may have millions.
inline constexpr std::size_t kMostErrors = 100;

// The start of a text that may be long.
std::string clipped(std::string text);
// A number as Go prints it: 3, not 3.0.
std::string text_of(double number);
std::string text_of(const Json& value);
// "object"; empty for any.
std::string_view type_name(Type type);

inline std::string_view view(const boost::json::string& text) {
  return {text.data(), text.size()};
}
inline std::string_view view(boost::json::string_view text) {
  return {text.data(), text.size()};
}

// "spec", "spec.containers[0]": grows and shrinks with the walk.
class FieldPath {
 public:
  class Step {
   public:
    Step(std::string& text, std::size_t length) : text_(text), length_(length) {}
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() { text_.resize(length_); }

   private:
    std::string& text_;
    std::size_t length_;
  };

  [[nodiscard]] Step member(std::string_view name);
  [[nodiscard]] Step index(std::size_t number);
  [[nodiscard]] Step key(std::string_view name);
  std::string text() const { return clipped(text_); }

 private:
  std::string text_;
};

// The element of `old` that `item` was before. Only elements of keyed lists can be followed from
// one version to the next, and not in lists that are long: looking for each takes their length
// squared.
const Json* old_element(const Json& item, const Json& old, const Schema& schema);
// Elements of sets and keys of keyed lists that come twice.
void check_lists(const Json& object, const Schema& schema, model::Touched touched,
                 std::vector<model::FieldError>& errors);
// x-kubernetes-validations.
void check_rules(const Json& object, const Json* old, const Schema& schema,
                 std::vector<model::FieldError>& errors);

}  // namespace hearth::schema
