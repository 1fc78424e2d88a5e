// The table of built-in types (api/builtin), as it is read at the start. Inside this room only.
#pragma once

#include <string_view>
#include <vector>

namespace hearth::schema {

// The files of api/, in the binary. "types", "kinds", "descriptions", "crds/NAME".
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};
const std::vector<EmbeddedFile>& embedded_files();

enum class Shape : unsigned char {
  string,
  boolean,
  int32,
  int64,
  bytes,
  time,
  micro_time,
  quantity,
  int_or_string,
  strings,  // a list that is a message in protobuf
  json,     // any JSON; bytes in protobuf
  free,     // any JSON; not in protobuf
  message,
};

struct Message;

struct Field {
  unsigned number = 0;
  std::string_view name;
  Shape shape = Shape::string;
  const Message* message = nullptr;
  bool is_list = false;
  bool is_map = false;
  bool is_inline = false;  // its fields are those of the outer struct, in JSON
  bool is_required = false;
  bool keeps_zero = false;      // zero values are written
  std::string_view grain;       // "atomic", "set", "map:KEYS"
  std::string_view patch;       // "STRATEGY:KEY"
  std::string_view default_to;  // JSON
  std::string_view allowed;     // "A|B"
};

struct Message {
  std::string_view name;  // "core.v1.PodSpec"
  bool is_atomic = false;
  std::vector<Field> fields;  // by number

  const Field* find(unsigned number) const;
};

struct KindRow {
  std::string_view api_version;
  std::string_view kind;
  std::string_view plural;  // empty: no resource
  std::string_view short_names;
  std::string_view categories;
  bool namespaced = false;
  bool has_status = false;
  const Message* message = nullptr;
};

struct Table {
  std::vector<Message> messages;  // by name; never moved once loaded
  std::vector<KindRow> kinds;
  struct Prefix {
    std::string_view types;     // "core.v1"
    std::string_view open_api;  // "io.k8s.api.core.v1"
  };
  std::vector<Prefix> prefixes;
  std::vector<std::pair<std::string_view, std::string_view>> descriptions;  // by name

  const Message* find(std::string_view name) const;
  std::string_view description(std::string_view name) const;
};

// Read at the first call, by whichever thread comes first.
const Table& table();

// "a,b,c" as its words; none for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace hearth::schema
