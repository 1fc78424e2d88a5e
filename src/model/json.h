// JSON as the Kubernetes API has it: reading with limits, looking things up, writing.
//
// Objects stay JSON from the wire to the store, so that fields nobody here knows survive. Order of
// members is kept. Nothing here knows what a kind is.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace hearth::model {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// Deeper nesting is refused: schemas of schemas go some forty deep, an attacker's brackets deeper.
inline constexpr std::size_t kMostDepth = 128;

struct ParsedJson {
  Json value;
  // Members that came twice in one object, as paths: "spec.replicas", "items[2].name". The last
  // one counts.
  std::vector<std::string> duplicates;
};

// One JSON text. Throws Error(invalid) with the place.
ParsedJson parse_json(std::string_view text);
// One YAML document, of which JSON is a part. Anchors are refused: a few lines of them make
// gigabytes.
ParsedJson parse_yaml(std::string_view text);

// Compact, without a newline.
std::string to_text(const Json& value);
// Indented by two spaces, for people.
std::string to_pretty_text(const Json& value);

using Path = std::initializer_list<std::string_view>;

// The value at the end of a path of members; null where there is none.
const Json* find(const Json& value, Path path);
Json* find(Json& value, Path path);
// The same, by kind of value; empty, null or nothing where it is something else.
std::string_view text_at(const Json& value, Path path);
std::optional<std::int64_t> number_at(const Json& value, Path path);
bool is_true_at(const Json& value, Path path);
const JsonObject* object_at(const Json& value, Path path);
const JsonArray* array_at(const Json& value, Path path);

// The object at the end of a path; members on the way that are missing or no objects are made.
JsonObject& make_object_at(Json& value, Path path);
// Removes the last member of the path, if it is there.
void erase_at(Json& value, Path path);

// Whether both are the same as JSON: order of members and the C++ type of a number do not count.
bool is_same(const Json& left, const Json& right);

// An integer of JSON, also one written 3.0; nothing for other values.
std::optional<std::int64_t> as_integer(const Json& value);

}  // namespace hearth::model
