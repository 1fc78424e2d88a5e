#include <boost/json/parse.hpp>

#include "base/error.h"
#include "registry/json_internal.h"

namespace hearth::registry {
namespace {

namespace json = boost::json;

// Lists in manifests and configurations; the longest real ones have a few hundred.
constexpr std::size_t kMaxElements = 4096;

const json::value* find_value(const json::object& in, std::string_view name) {
  const json::value* value = in.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string text_of(const json::value& value, std::string_view name) {
  const json::string* text = value.if_string();
  if (text == nullptr) fail(Code::invalid, "'{}' is no text", name);
  if (text->find('\0') != json::string::npos) fail(Code::invalid, "'{}' has a NUL in it", name);
  return std::string(text->data(), text->size());
}

}  // namespace

json::value parse_json(std::string_view text, std::string_view what) {
  json::error_code error;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) fail(Code::invalid, "{} is not JSON: {}", what, error.message());
  return value;
}

const json::object& object_of(const json::value& value, std::string_view what) {
  const json::object* object = value.if_object();
  if (object == nullptr) fail(Code::invalid, "{} is no JSON object", what);
  return *object;
}

const json::object* find_object(const json::object& in, std::string_view name) {
  const json::value* value = find_value(in, name);
  if (value == nullptr) return nullptr;
  const json::object* object = value->if_object();
  if (object == nullptr) fail(Code::invalid, "'{}' is no object", name);
  return object;
}

const json::array* find_array(const json::object& in, std::string_view name) {
  const json::value* value = find_value(in, name);
  if (value == nullptr) return nullptr;
  const json::array* array = value->if_array();
  if (array == nullptr) fail(Code::invalid, "'{}' is no list", name);
  if (array->size() > kMaxElements) {
    fail(Code::invalid, "'{}' has more than {} elements", name, kMaxElements);
  }
  return array;
}

std::string find_text(const json::object& in, std::string_view name) {
  const json::value* value = find_value(in, name);
  return value == nullptr ? std::string() : text_of(*value, name);
}

std::vector<std::string> find_texts(const json::object& in, std::string_view name) {
  std::vector<std::string> texts;
  const json::array* array = find_array(in, name);
  if (array == nullptr) return texts;
  for (const json::value& value : *array) texts.push_back(text_of(value, name));
  return texts;
}

std::uint64_t get_size(const json::object& in, std::string_view name) {
  const json::value* value = find_value(in, name);
  json::error_code error;
  const auto number = value == nullptr ? 0 : value->to_number<std::uint64_t>(error);
  if (value == nullptr || error) fail(Code::invalid, "'{}' is no size", name);
  return number;
}

}  // namespace hearth::registry
