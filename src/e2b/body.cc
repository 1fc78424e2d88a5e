#include "e2b/body.h"

#include <utility>

#include "base/error.h"

namespace hearth::e2b {

Body::Body(model::JsonObject fields, std::string prefix)
    : fields_(std::move(fields)), prefix_(std::move(prefix)) {}

Body Body::parse(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return Body({});
  model::Json value = model::parse_json(text).value;
  if (value.is_null()) return Body({});
  if (!value.is_object()) fail(Code::invalid, "the body is no JSON object");
  return Body(std::move(value.get_object()));
}

const model::Json* Body::find(std::string_view field) const {
  const model::Json* value = fields_.if_contains(field);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void Body::refuse_type(std::string_view field, std::string_view wanted) const {
  fail(Code::invalid, "the field '{}{}' is not {}", prefix_, field, wanted);
}

bool Body::has_items(std::string_view field) const {
  const model::Json* value = find(field);
  if (value == nullptr) return false;
  if (!value->is_array()) refuse_type(field, "a list");
  return !value->get_array().empty();
}

std::optional<std::string> Body::text(std::string_view field) const {
  const model::Json* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_string()) refuse_type(field, "a string");
  std::string text(value->get_string());
  // No field that is one text can have it, and messages would end there.
  if (text.find('\0') != text.npos)
    fail(Code::invalid, "the field '{}{}' has a zero byte", prefix_, field);
  return text;
}

std::string Body::get_text(std::string_view field) const {
  auto value = text(field);
  if (!value || value->empty()) fail(Code::invalid, "the field '{}{}' is required", prefix_, field);
  return std::move(*value);
}

std::optional<bool> Body::flag(std::string_view field) const {
  const model::Json* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_bool()) refuse_type(field, "a boolean");
  return value->get_bool();
}

std::optional<std::int64_t> Body::number(std::string_view field, std::int64_t least,
                                         std::int64_t most) const {
  const model::Json* value = find(field);
  if (value == nullptr) return {};
  const auto number = model::as_integer(*value);
  if (!number) refuse_type(field, "an integer");
  if (*number < least || *number > most)
    fail(Code::invalid, "the field '{}{}' is {}, which is not from {} to {}", prefix_, field,
         *number, least, most);
  return number;
}

std::optional<std::vector<std::string>> Body::list(std::string_view field) const {
  const model::Json* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_array()) refuse_type(field, "a list of strings");
  std::vector<std::string> all;
  for (const model::Json& each : value->get_array()) {
    if (!each.is_string()) refuse_type(field, "a list of strings");
    all.emplace_back(each.get_string());
  }
  return all;
}

std::optional<std::vector<std::int64_t>> Body::numbers(std::string_view field) const {
  const model::Json* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_array()) refuse_type(field, "a list of integers");
  std::vector<std::int64_t> all;
  for (const model::Json& each : value->get_array()) {
    const auto number = model::as_integer(each);
    if (!number) refuse_type(field, "a list of integers");
    all.push_back(*number);
  }
  return all;
}

Texts Body::texts(std::string_view field) const {
  const model::Json* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_object()) refuse_type(field, "an object of strings");
  Texts all;
  for (const auto& [name, each] : value->get_object()) {
    if (!each.is_string()) refuse_type(field, "an object of strings");
    all.emplace(std::string(name), std::string(each.get_string()));
  }
  return all;
}

std::optional<Body> Body::object(std::string_view field) const {
  const model::Json* value = find(field);
  if (value == nullptr) return {};
  if (!value->is_object()) refuse_type(field, "an object");
  return Body(value->get_object(), prefix_ + std::string(field) + ".");
}

}  // namespace hearth::e2b
