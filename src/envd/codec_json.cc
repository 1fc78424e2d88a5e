// Protobuf's JSON mapping. Written by hand, so that a piece of output costs no tree of values; read
// with Boost.JSON, which is strict about depth and UTF-8.
#include <charconv>
#include <cmath>
#include <concepts>

#include <boost/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/time_text.h"
#include "envd/messages.h"

namespace hearth::envd {
namespace {

namespace json = boost::json;

class JsonWriter {
 public:
  template <typename M>
  void message(const M& message) {
    text_ += '{';
    is_first_ = true;
    M::fields(message, *this);
    text_ += '}';
    is_first_ = false;
  }

  // A field: defaults are left out, as the mapping has it.
  template <typename T>
  void operator()(int, std::string_view name, const T& value) {
    if (value == T{}) return;
    put(name, value);
  }
  template <typename T>
  void operator()(int, std::string_view name, const std::optional<T>& value) {
    if (value) put(name, *value);
  }
  template <typename T>
  void operator()(int, std::string_view name, const std::vector<T>& value) {
    if (!value.empty()) put(name, value);
  }

  std::string take() && { return std::move(text_); }

 private:
  template <typename T>
  void put(std::string_view name, const T& value) {
    if (!is_first_) text_ += ',';
    is_first_ = false;
    text_ += '"';
    text_ += name;
    text_ += "\":";
    write(value);
  }

  void write(const std::string& value) { text_ += json_quote(value); }
  void write(const Bytes& value) {
    text_ += '"';
    append_base64(text_, value.data);
    text_ += '"';
  }
  void write(bool value) { text_ += value ? "true" : "false"; }
  void write(std::uint32_t value) { text_ += std::to_string(value); }
  void write(Sint32 value) { text_ += std::to_string(value.value); }
  void write(std::int64_t value) { text_ += '"' + std::to_string(value) + '"'; }
  void write(Time value) { text_ += '"' + format_rfc3339(value, 9) + '"'; }
  template <typename E>
    requires std::is_enum_v<E>
  void write(E value) {
    for (const EnumName& each : EnumNames<E>::all()) {
      if (each.value == static_cast<std::int32_t>(value)) {
        text_ += fmt::format("\"{}\"", each.name);
        return;
      }
    }
    text_ += std::to_string(static_cast<std::int32_t>(value));
  }
  void write(const std::map<std::string, std::string>& value) {
    char separator = '{';
    for (const auto& [key, text] : value) {
      text_ += separator;
      text_ += json_quote(key) + ':' + json_quote(text);
      separator = ',';
    }
    text_ += '}';
  }
  template <typename T>
  void write(const std::vector<T>& value) {
    char separator = '[';
    for (const T& each : value) {
      text_ += separator;
      write(each);
      separator = ',';
    }
    text_ += ']';
  }
  template <typename M>
    requires requires(const M& m, JsonWriter& w) { M::fields(m, w); }
  void write(const M& value) {
    message(value);
  }

  std::string text_;
  bool is_first_ = true;
};

// "exitCode" as "exit_code": parsers take both.
std::string snake_case(std::string_view name) {
  std::string snake;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') snake += '_';
    snake += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return snake;
}

class JsonReader {
 public:
  explicit JsonReader(const json::object& object) : object_(object) {}

  template <typename T>
  void operator()(int, std::string_view name, T& value) {
    const json::value* found = object_.if_contains(name);
    if (found == nullptr) found = object_.if_contains(snake_case(name));
    if (found == nullptr || found->is_null()) return;
    name_ = name;
    read(*found, value);
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    fail(Code::invalid, "field '{}' is not {}", name_, expected);
  }

  void read(const json::value& in, std::string& out) const {
    if (!in.is_string()) refuse("a string");
    out = in.get_string();
  }
  void read(const json::value& in, Bytes& out) const {
    if (!in.is_string()) refuse("base64");
    auto decoded = base64_decode(std::string_view(in.get_string()));
    if (!decoded) refuse("base64");
    out.data = std::move(*decoded);
  }
  void read(const json::value& in, bool& out) const {
    if (!in.is_bool()) refuse("true or false");
    out = in.get_bool();
  }
  // Numbers may come as text, and as 1.0 or 1e3.
  template <typename T>
    requires(std::same_as<T, std::uint32_t> || std::same_as<T, std::int32_t> ||
             std::same_as<T, std::int64_t>)
  void read(const json::value& in, T& out) const {
    if (const auto* text = in.if_string()) {
      const char* const end = text->data() + text->size();
      const auto result = std::from_chars(text->data(), end, out);
      if (result.ec != std::errc() || result.ptr != end) refuse("an integer");
    } else if (const double* number = in.if_double()) {
      constexpr double kMost = static_cast<double>(std::int64_t{1} << 53);
      if (!(std::abs(*number) <= kMost) || *number != std::floor(*number)) refuse("an integer");
      narrow(static_cast<std::int64_t>(*number), out);
    } else if (const std::int64_t* integer = in.if_int64()) {
      narrow(*integer, out);
    } else {
      refuse("an integer of its size");
    }
  }
  template <typename T>
  void narrow(std::int64_t in, T& out) const {
    if (!std::in_range<T>(in)) refuse("an integer of its size");
    out = static_cast<T>(in);
  }
  void read(const json::value& in, Sint32& out) const { read(in, out.value); }
  void read(const json::value& in, Time& out) const {
    const auto time =
        in.is_string() ? parse_rfc3339(std::string_view(in.get_string())) : std::optional<Time>();
    if (!time) refuse("a time");
    out = *time;
  }
  template <typename E>
    requires std::is_enum_v<E>
  void read(const json::value& in, E& out) const {
    if (const auto* text = in.if_string()) {
      for (const EnumName& each : EnumNames<E>::all()) {
        if (each.name == std::string_view(*text)) {
          out = static_cast<E>(each.value);
          return;
        }
      }
      refuse("one of its names");
    }
    std::int32_t number = 0;
    read(in, number);
    out = static_cast<E>(number);
  }
  void read(const json::value& in, std::map<std::string, std::string>& out) const {
    if (!in.is_object()) refuse("an object of strings");
    for (const auto& [key, value] : in.get_object()) {
      if (!value.is_string()) refuse("an object of strings");
      out[key] = std::string_view(value.get_string());
    }
  }
  template <typename T>
  void read(const json::value& in, std::vector<T>& out) const {
    if (!in.is_array()) refuse("an array");
    for (const json::value& each : in.get_array()) read(each, out.emplace_back());
  }
  template <typename T>
  void read(const json::value& in, std::optional<T>& out) const {
    read(in, out.emplace());
  }
  template <typename M>
    requires requires(M& m, JsonReader& r) { M::fields(m, r); }
  void read(const json::value& in, M& out) const {
    if (!in.is_object()) refuse("an object");
    JsonReader inner(in.get_object());
    M::fields(out, inner);
  }

  const json::object& object_;
  std::string_view name_;
};

}  // namespace

template <typename M>
std::string to_json(const M& message) {
  JsonWriter writer;
  writer.message(message);
  return std::move(writer).take();
}

template <typename M>
M from_json(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error) fail(Code::invalid, "the message is not JSON: {}", error.message());
  if (!value.is_object()) fail(Code::invalid, "the message is not a JSON object");
  M message;
  JsonReader reader(value.get_object());
  M::fields(message, reader);
  return message;
}

#define HEARTH_INSTANTIATE(M)                     \
  template std::string to_json(const M& message); \
  template M from_json(std::string_view text);
HEARTH_ENVD_MESSAGES(HEARTH_INSTANTIATE)

}  // namespace hearth::envd
