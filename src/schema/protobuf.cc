// Objects of built-in kinds in protobuf, as Go clients send them. Driven by the table: one decoder
// for all kinds. Every length is checked against what is left, nesting is bounded, numbers that
// nobody knows are skipped.
#include <chrono>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json_text.h"
#include "schema/builtin.h"
#include "schema/table.h"
#include "schema/words.h"

namespace hearth::schema {
namespace {

using model::JsonArray;
using model::JsonObject;

constexpr std::string_view kMagic("k8s\0", 4);
// No built-in type nests deeper.
constexpr int kMostNesting = 40;

enum Wire : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

[[noreturn]] void refuse(std::string_view why) {
  fail(Code::invalid, "protobuf body is not valid: {}", why);
}

struct Tag {
  unsigned number;
  unsigned wire;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) refuse("it ends in the middle of a number");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number is too long");
  }

  Tag tag() {
    const std::uint64_t key = varint();
    const std::uint64_t number = key >> 3;
    if (number == 0 || number > (1U << 29)) refuse("a field's number is out of range");
    return {static_cast<unsigned>(number), static_cast<unsigned>(key & 7)};
  }

  std::string_view bytes() {
    const std::uint64_t size = varint();
    return take(size);
  }

  // The bytes of a field that must be of this type.
  std::string_view bytes(Tag tag) {
    expect(tag, kBytes);
    return bytes();
  }

  std::uint64_t varint(Tag tag) {
    expect(tag, kVarint);
    return varint();
  }

  void skip(Tag tag) {
    switch (tag.wire) {
      case kVarint:
        varint();
        return;
      case kFixed64:
        take(8);
        return;
      case kBytes:
        bytes();
        return;
      case kFixed32:
        take(4);
        return;
      default:
        refuse("a field's type is not known");
    }
  }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) refuse("it ends in the middle of a field");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  static void expect(Tag tag, Wire wire) {
    if (tag.wire != wire) refuse(fmt::format("field {} has the wrong type", tag.number));
  }

  std::string_view rest_;
};

Json text_value(std::string_view text) {
  if (!is_utf8(text)) refuse("a string is not UTF-8");
  return boost::json::string(text);
}

// Time and MicroTime: {1 seconds, 2 nanos}. An empty one is no time at all.
Json time_value(std::string_view bytes, bool with_fraction) {
  if (bytes.empty()) return nullptr;
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
  for (Reader reader(bytes); !reader.done();) {
    const Tag tag = reader.tag();
    if (tag.number == 1)
      seconds = static_cast<std::int64_t>(reader.varint(tag));
    else if (tag.number == 2)
      nanos = static_cast<std::int32_t>(reader.varint(tag));
    else
      reader.skip(tag);
  }
  // The years 0 to 9999, which is all that RFC 3339 can write.
  constexpr std::int64_t kFirst = -62167219200, kLast = 253402300799;
  if (seconds < kFirst || seconds > kLast || nanos < 0 || nanos > 999'999'999)
    refuse("a time is out of range");
  const std::chrono::sys_seconds moment{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(moment - day);
  return boost::json::string(
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                  with_fraction ? fmt::format(".{:06}", nanos / 1000) : std::string()));
}

// Quantity, RawExtension, FieldsV1: {1 bytes}.
std::string_view only_field(std::string_view bytes) {
  std::string_view content;
  for (Reader reader(bytes); !reader.done();) {
    const Tag tag = reader.tag();
    if (tag.number == 1)
      content = reader.bytes(tag);
    else
      reader.skip(tag);
  }
  return content;
}

// IntOrString: {1 type, 2 int, 3 string}.
Json int_or_string_value(std::string_view bytes) {
  bool is_text = false;
  std::int32_t number = 0;
  std::string_view text;
  for (Reader reader(bytes); !reader.done();) {
    const Tag tag = reader.tag();
    if (tag.number == 1)
      is_text = reader.varint(tag) != 0;
    else if (tag.number == 2)
      number = static_cast<std::int32_t>(reader.varint(tag));
    else if (tag.number == 3)
      text = reader.bytes(tag);
    else
      reader.skip(tag);
  }
  return is_text ? text_value(text) : Json(std::int64_t(number));
}

Json strings_value(std::string_view bytes) {
  JsonArray items;
  for (Reader reader(bytes); !reader.done();) {
    const Tag tag = reader.tag();
    if (tag.number == 1)
      items.push_back(text_value(reader.bytes(tag)));
    else
      reader.skip(tag);
  }
  return items;
}

bool is_varint(Shape shape) {
  return shape == Shape::boolean || shape == Shape::int32 || shape == Shape::int64;
}

Json varint_value(Shape shape, std::uint64_t number) {
  if (shape == Shape::boolean) return number != 0;
  if (shape == Shape::int32) return std::int64_t(static_cast<std::int32_t>(number));
  return static_cast<std::int64_t>(number);
}

bool is_zero(const Json& value) {
  return value == Json(0) || value == Json(false) || value == Json("");
}

class Decoder {
 public:
  void message(std::string_view bytes, const Message& type, JsonObject& object) {
    if (++nesting_ > kMostNesting) refuse("it is nested too deep");
    for (Reader reader(bytes); !reader.done();) {
      const Tag tag = reader.tag();
      const Field* field = type.find(tag.number);
      if (!field)
        reader.skip(tag);
      else if (field->is_inline)
        message(reader.bytes(tag), *field->message, object);
      else if (field->is_list)
        element(reader, tag, *field, array_at(object, field->name));
      else if (field->is_map)
        entry(reader.bytes(tag), *field, object_at(object, field->name));
      else
        single(reader, tag, *field, object);
    }
    --nesting_;
  }

 private:
  static JsonArray& array_at(JsonObject& object, std::string_view name) {
    Json& value = object[name];
    return value.is_array() ? value.get_array() : value.emplace_array();
  }

  static JsonObject& object_at(JsonObject& object, std::string_view name) {
    Json& value = object[name];
    return value.is_object() ? value.get_object() : value.emplace_object();
  }

  // A message that comes twice is one message in two parts.
  void single(Reader& reader, Tag tag, const Field& field, JsonObject& object) {
    if (field.shape == Shape::message) {
      message(reader.bytes(tag), *field.message, object_at(object, field.name));
      return;
    }
    Json value = scalar(reader, tag, field.shape);
    if (value.is_null() || (!field.keeps_zero && is_zero(value)))
      object.erase(field.name);
    else
      object[field.name] = std::move(value);
  }

  void element(Reader& reader, Tag tag, const Field& field, JsonArray& array) {
    if (field.shape == Shape::message) {
      JsonObject one;
      message(reader.bytes(tag), *field.message, one);
      array.push_back(std::move(one));
    } else if (is_varint(field.shape) && tag.wire == kBytes) {
      for (Reader packed(reader.bytes()); !packed.done();)
        array.push_back(varint_value(field.shape, packed.varint()));
    } else {
      array.push_back(scalar(reader, tag, field.shape));
    }
  }

  // Of a map: {1 key, 2 value}; either may be left out.
  void entry(std::string_view bytes, const Field& field, JsonObject& map) {
    std::string_view key;
    Json value = empty_value(field.shape);
    for (Reader reader(bytes); !reader.done();) {
      const Tag tag = reader.tag();
      if (tag.number == 1) {
        key = reader.bytes(tag);
      } else if (tag.number != 2) {
        reader.skip(tag);
      } else if (field.shape == Shape::message) {
        message(reader.bytes(tag), *field.message, value.emplace_object());
      } else {
        value = scalar(reader, tag, field.shape);
      }
    }
    text_value(key);
    map[key] = std::move(value);
  }

  static Json empty_value(Shape shape) {
    switch (shape) {
      case Shape::message:
        return JsonObject();
      case Shape::strings:
        return JsonArray();
      case Shape::boolean:
        return false;
      case Shape::int32:
      case Shape::int64:
        return 0;
      default:
        return "";
    }
  }

  static Json scalar(Reader& reader, Tag tag, Shape shape) {
    if (is_varint(shape)) return varint_value(shape, reader.varint(tag));
    const std::string_view bytes = reader.bytes(tag);
    switch (shape) {
      case Shape::bytes:
        return boost::json::string(base64_encode(bytes));
      case Shape::time:
        return time_value(bytes, false);
      case Shape::micro_time:
        return time_value(bytes, true);
      case Shape::quantity:
        return text_value(only_field(bytes));
      case Shape::int_or_string:
        return int_or_string_value(bytes);
      case Shape::strings:
        return strings_value(bytes);
      case Shape::json: {
        const std::string_view text = only_field(bytes);
        return text.empty() ? Json() : model::parse_json(text).value;
      }
      default:
        return text_value(bytes);
    }
  }

  int nesting_ = 0;
};

struct Envelope {
  std::string_view api_version;
  std::string_view kind;
  std::string_view raw;
  std::string_view encoding;
  std::string_view content_type;
};

void read_type(std::string_view bytes, Envelope& envelope) {
  for (Reader reader(bytes); !reader.done();) {
    const Tag tag = reader.tag();
    if (tag.number == 1)
      envelope.api_version = reader.bytes(tag);
    else if (tag.number == 2)
      envelope.kind = reader.bytes(tag);
    else
      reader.skip(tag);
  }
}

Envelope read_envelope(std::string_view body) {
  if (!body.starts_with(kMagic)) refuse("it does not start with 'k8s' and a zero");
  Envelope envelope;
  for (Reader reader(body.substr(kMagic.size())); !reader.done();) {
    const Tag tag = reader.tag();
    if (tag.number == 1)
      read_type(reader.bytes(tag), envelope);
    else if (tag.number == 2)
      envelope.raw = reader.bytes(tag);
    else if (tag.number == 3)
      envelope.encoding = reader.bytes(tag);
    else if (tag.number == 4)
      envelope.content_type = reader.bytes(tag);
    else
      reader.skip(tag);
  }
  return envelope;
}

const Message* find_message(std::string_view api_version, std::string_view kind) {
  for (const KindRow& row : table().kinds) {
    const bool any_version = row.kind == "DeleteOptions";
    if (row.kind == kind && (any_version || row.api_version == api_version)) return row.message;
  }
  return nullptr;
}

}  // namespace

Json decode_protobuf(std::string_view body) {
  const Envelope envelope = read_envelope(body);
  const Message* type = find_message(envelope.api_version, envelope.kind);
  // Schemas of CRDs are not described.
  const bool is_described = type && type->name != "apiextensions.v1.CustomResourceDefinition";
  if (!is_described || !envelope.encoding.empty() || !envelope.content_type.empty())
    model::throw_unsupported_media_type({"application/json", "application/yaml"});
  JsonObject object;
  object["apiVersion"] = text_value(envelope.api_version);
  object["kind"] = text_value(envelope.kind);
  Decoder().message(envelope.raw, *type, object);
  return object;
}

}  // namespace hearth::schema
