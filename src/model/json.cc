#include "model/json.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/json_text.h"
#include "model/member.h"
#include "model/read_json.h"
#include "model/scratch.h"

namespace hearth::model {
namespace {

namespace json = boost::json;

// Builds values as the library's own parser does, and notes members that come twice.
class Builder {
 public:
  explicit Builder(Storage storage) : storage_(std::move(storage)) {}

  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  bool on_document_begin(json::error_code&) {
    values_.reset(storage_);
    return true;
  }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    levels_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t size, json::error_code&) {
    levels_.pop_back();
    values_.push_object(size);
    count_element();
    return true;
  }
  bool on_array_begin(json::error_code&) {
    levels_.emplace_back();
    levels_.back().is_array = true;
    return true;
  }
  bool on_array_end(std::size_t size, json::error_code&) {
    levels_.pop_back();
    values_.push_array(size);
    count_element();
    return true;
  }
  bool on_key_part(std::string_view part, std::size_t, json::error_code&) {
    key_.append(part);
    values_.push_chars(part);
    return true;
  }
  bool on_key(std::string_view part, std::size_t, json::error_code&) {
    key_.append(part);
    values_.push_key(part);
    enter(std::move(key_));
    key_.clear();
    return true;
  }
  bool on_string_part(std::string_view part, std::size_t, json::error_code&) {
    values_.push_chars(part);
    return true;
  }
  bool on_string(std::string_view part, std::size_t, json::error_code&) {
    values_.push_string(part);
    count_element();
    return true;
  }
  bool on_number_part(std::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t number, std::string_view, json::error_code&) {
    values_.push_int64(number);
    count_element();
    return true;
  }
  bool on_uint64(std::uint64_t number, std::string_view, json::error_code&) {
    values_.push_uint64(number);
    count_element();
    return true;
  }
  bool on_double(double number, std::string_view, json::error_code& error) {
    // Written again it would be no JSON.
    if (!std::isfinite(number)) {
      error = json::error::exponent_overflow;
      return false;
    }
    values_.push_double(number);
    count_element();
    return true;
  }
  bool on_bool(bool value, json::error_code&) {
    values_.push_bool(value);
    count_element();
    return true;
  }
  bool on_null(json::error_code&) {
    values_.push_null();
    count_element();
    return true;
  }
  bool on_comment_part(std::string_view, json::error_code&) { return true; }
  bool on_comment(std::string_view, json::error_code&) { return true; }

  ParsedJson take() { return {values_.release(), std::move(duplicates_)}; }

 private:
  struct Level {
    bool is_array = false;
    std::size_t index = 0;
    std::string key;                // of the member that is being read
    std::vector<std::string> seen;  // few members: looking through them beats a set
  };

  // Many duplicates are one attacker's, and one complaint is enough.
  static constexpr std::size_t kMostDuplicates = 64;
  // Looking for twins among so many members would take longer than reading them.
  static constexpr std::size_t kMostMembersSeen = 512;

  void enter(std::string key) {
    Level& level = levels_.back();
    const bool twice = std::find(level.seen.begin(), level.seen.end(), key) != level.seen.end();
    level.key = key;
    if (twice) {
      if (duplicates_.size() < kMostDuplicates) duplicates_.push_back(path());
    } else if (level.seen.size() < kMostMembersSeen) {
      level.seen.push_back(std::move(key));
    }
  }
  void count_element() {
    if (!levels_.empty() && levels_.back().is_array) ++levels_.back().index;
  }
  std::string path() const {
    std::string text;
    for (const Level& level : levels_) {
      if (level.is_array) {
        text += fmt::format("[{}]", level.index);
      } else {
        if (!text.empty()) text += '.';
        text += level.key;
      }
    }
    return text;
  }

  Storage storage_;
  json::value_stack values_;
  std::vector<Level> levels_;
  std::vector<std::string> duplicates_;
  std::string key_;
};

json::parse_options parse_limits() {
  json::parse_options options;
  options.max_depth = kMostDepth;
  return options;
}

// `used`: how far a parser came that has found one value, or an error.
void check_parsed(std::string_view text, std::size_t used, const json::error_code& error,
                  bool is_done) {
  if (!error && used < text.size()) {
    const auto rest = text.substr(used);
    if (rest.find_first_not_of(" \t\r\n") != std::string_view::npos)
      fail(Code::invalid, "invalid character after top-level value at byte {}", used);
  }
  if (error == json::error::incomplete || (!error && !is_done))
    fail(Code::invalid, "unexpected end of JSON input");
  if (error == json::error::too_deep)
    fail(Code::invalid, "JSON is nested deeper than {} levels", kMostDepth);
  if (error) fail(Code::invalid, "invalid JSON at byte {}: {}", used, error.message());
}

const Json* member(const Json& value, std::string_view name) {
  const JsonObject* object = value.if_object();
  return object ? find_member(*object, name) : nullptr;
}

// Whether one of eight bytes is a control character, a quote or a backslash.
bool has_special(std::uint64_t bytes) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kTops = 0x8080808080808080;
  const auto has_zero = [](std::uint64_t word) { return (word - kOnes) & ~word & kTops; };
  const std::uint64_t control = (bytes - kOnes * 0x20) & ~bytes & kTops;
  return (control | has_zero(bytes ^ (kOnes * '"')) | has_zero(bytes ^ (kOnes * '\\'))) != 0;
}

// Nearly all texts are, and nearly everything that is written is text: eight bytes at a time.
bool is_plain(std::string_view text) {
  std::uint64_t bytes = 0;
  if (text.size() >= sizeof(bytes)) {
    // The last eight, whose first ones are looked at again below.
    std::memcpy(&bytes, text.data() + text.size() - sizeof(bytes), sizeof(bytes));
    if (has_special(bytes)) return false;
    for (; text.size() > sizeof(bytes); text.remove_prefix(sizeof(bytes))) {
      std::memcpy(&bytes, text.data(), sizeof(bytes));
      if (has_special(bytes)) return false;
    }
    return true;
  }
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') return false;
  return true;
}

void write_pretty(const Json& value, std::size_t indent, std::string& out) {
  const auto newline = [&](std::size_t by) { out.append("\n").append(2 * by, ' '); };
  if (const JsonObject* object = value.if_object(); object && !object->empty()) {
    out += '{';
    bool first = true;
    for (const auto& [key, child] : *object) {
      if (!first) out += ',';
      first = false;
      newline(indent + 1);
      out += json_quote(std::string_view(key.data(), key.size()));
      out += ": ";
      write_pretty(child, indent + 1, out);
    }
    newline(indent);
    out += '}';
  } else if (const JsonArray* array = value.if_array(); array && !array->empty()) {
    out += '[';
    bool first = true;
    for (const Json& child : *array) {
      if (!first) out += ',';
      first = false;
      newline(indent + 1);
      write_pretty(child, indent + 1, out);
    }
    newline(indent);
    out += ']';
  } else {
    out += to_text(value);
  }
}

bool is_same_object(const JsonObject& left, const JsonObject& right) {
  if (left.size() != right.size()) return false;
  for (const auto& [key, value] : left) {
    const Json* other = find_member(right, key);
    if (!other || !is_same(value, *other)) return false;
  }
  return true;
}

}  // namespace

ParsedJson parse_json(std::string_view text) {
  return parse_json(text, Storage());
}

ParsedJson parse_json(std::string_view text, Storage storage) {
  json::basic_parser<Builder> parser(parse_limits(), std::move(storage));
  json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  check_parsed(text, used, error, parser.done());
  return parser.handler().take();
}

Json read_json(std::string_view text) {
  return read_json(text, Storage());
}

Json read_json(std::string_view text, Storage storage) {
  // Values that are still without their object or array.
  std::array<unsigned char, 4096> open;  // NOLINT(*-member-init): written before it is read
  json::parser parser({}, parse_limits(), open.data(), open.size());
  parser.reset(std::move(storage));
  json::error_code error;
  const std::size_t used = parser.write_some(text.data(), text.size(), error);
  check_parsed(text, used, error, /*is_done=*/true);
  return parser.release();
}

void append_text(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += json::serialize(text);
  }
}

// The library's own serializer keeps where it is on a stack, in order to stop anywhere: that takes
// twice as long.
void append_text(std::string& out, const Json& value) {
  switch (value.kind()) {
    case json::kind::object: {
      char before = '{';
      for (const auto& [key, child] : value.get_object()) {
        out += before;
        append_text(out, std::string_view(key));
        out += ':';
        append_text(out, child);
        before = ',';
      }
      out += before == '{' ? "{}" : "}";
      break;
    }
    case json::kind::array: {
      char before = '[';
      for (const Json& child : value.get_array()) {
        out += before;
        append_text(out, child);
        before = ',';
      }
      out += before == '[' ? "[]" : "]";
      break;
    }
    case json::kind::string:
      append_text(out, std::string_view(value.get_string()));
      break;
    case json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      break;
    case json::kind::null:
      out += "null";
      break;
    case json::kind::int64:
    case json::kind::uint64:
      out += json::serialize(value);
      break;
    case json::kind::double_:
      // Somebody's 2.0 is a 2 to everybody else: clients with types read no "2E0" into an integer,
      // and one such object would end their watches.
      if (const auto whole = as_integer(value))
        out += std::to_string(*whole);
      else
        out += fmt::format("{}", value.get_double());
      break;
  }
}

std::string to_text(const Json& value) {
  std::string text;
  append_text(text, value);
  return text;
}

std::string to_pretty_text(const Json& value) {
  std::string text;
  write_pretty(value, 0, text);
  return text;
}

const Json* find(const Json& value, Path path) {
  const Json* at = &value;
  for (const std::string_view name : path) {
    at = member(*at, name);
    if (!at) return nullptr;
  }
  return at;
}

Json* find(Json& value, Path path) {
  return const_cast<Json*>(find(static_cast<const Json&>(value), path));
}

std::string_view text_at(const Json& value, Path path) {
  const Json* found = find(value, path);
  if (!found || !found->is_string()) return {};
  return {found->get_string().data(), found->get_string().size()};
}

std::optional<std::int64_t> number_at(const Json& value, Path path) {
  const Json* found = find(value, path);
  return found ? as_integer(*found) : std::nullopt;
}

bool is_true_at(const Json& value, Path path) {
  const Json* found = find(value, path);
  return found && found->is_bool() && found->get_bool();
}

const JsonObject* object_at(const Json& value, Path path) {
  const Json* found = find(value, path);
  return found ? found->if_object() : nullptr;
}

const JsonArray* array_at(const Json& value, Path path) {
  const Json* found = find(value, path);
  return found ? found->if_array() : nullptr;
}

JsonObject& make_object_at(Json& value, Path path) {
  if (!value.is_object()) value.emplace_object();
  JsonObject* at = &value.get_object();
  for (const std::string_view name : path) {
    Json& child = (*at)[name];
    if (!child.is_object()) child.emplace_object();
    at = &child.get_object();
  }
  return *at;
}

void erase_at(Json& value, Path path) {
  Json* at = &value;
  const std::string_view* last = path.end() - 1;
  for (const std::string_view* name = path.begin(); name != last; ++name) {
    at = find(*at, {*name});
    if (!at) return;
  }
  if (JsonObject* object = at->if_object()) object->erase(*last);
}

bool is_same(const Json& left, const Json& right) {
  if (left.is_object() && right.is_object())
    return is_same_object(left.get_object(), right.get_object());
  if (left.is_array() && right.is_array()) {
    const JsonArray& a = left.get_array();
    const JsonArray& b = right.get_array();
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same);
  }
  if (left.is_number() && right.is_number()) {
    if (left.is_double() || right.is_double())
      return left.to_number<double>() == right.to_number<double>();
    return left == right;
  }
  return left == right;
}

std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64() && value.get_uint64() <= INT64_MAX)
    return static_cast<std::int64_t>(value.get_uint64());
  if (value.is_double()) {
    const double number = value.get_double();
    // 2^53: beyond it a double does not name one integer.
    constexpr double kExact = 9007199254740992.0;
    if (std::trunc(number) == number && std::abs(number) <= kExact)
      return static_cast<std::int64_t>(number);
  }
  return std::nullopt;
}

}  // namespace hearth::model
