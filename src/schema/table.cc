#include "schema/table.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace hearth::schema {
namespace {

constexpr std::pair<std::string_view, Shape> kShapes[] = {
    {"string", Shape::string},
    {"bool", Shape::boolean},
    {"int32", Shape::int32},
    {"int64", Shape::int64},
    {"bytes", Shape::bytes},
    {"time", Shape::time},
    {"microtime", Shape::micro_time},
    {"quantity", Shape::quantity},
    {"intorstring", Shape::int_or_string},
    {"strings", Shape::strings},
    {"json", Shape::json},
    {"free", Shape::free},
};

std::string_view file(std::string_view name) {
  for (const EmbeddedFile& one : embedded_files())
    if (one.name == name) return one.text;
  fail(Code::internal, "there is no embedded file '{}'", name);
}

// Calls `take(line)` for every line that is no comment.
template <typename Take>
void each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.front() != '#') take(line);
  }
}

// The text behind "word:", if `word` starts so.
bool take_value(std::string_view word, std::string_view key, std::string_view& value) {
  if (!word.starts_with(key)) return false;
  value = word.substr(key.size());
  return true;
}

void parse_type(Field& field, std::string_view text, std::vector<std::string_view>& references) {
  if (text.starts_with("[]")) {
    field.is_list = true;
    text.remove_prefix(2);
  } else if (text.starts_with("{}")) {
    field.is_map = true;
    text.remove_prefix(2);
  }
  for (const auto& [name, shape] : kShapes) {
    if (name != text) continue;
    field.shape = shape;
    references.emplace_back();
    return;
  }
  field.shape = Shape::message;
  references.push_back(text);
}

void parse_word(Field& field, std::string_view word) {
  if (word == "required") {
    field.is_required = true;
  } else if (word == "pointer" || word == "always") {
    field.keeps_zero = true;
  } else if (word == "inline") {
    field.is_inline = true;
  } else if (word == "atomic" || word == "set" || word.starts_with("map:")) {
    field.grain = word;
  } else if (!take_value(word, "patch:", field.patch) &&
             !take_value(word, "default:", field.default_to) &&
             !take_value(word, "enum:", field.allowed)) {
    fail(Code::internal, "word '{}' in the table of built-in types is not known", word);
  }
}

// " 3 name string required". `references` gets the name of the type that is still to be found.
Field parse_field(std::string_view line, std::vector<std::string_view>& references) {
  const auto words = split(line.substr(1), ' ');
  HEARTH_ASSERT(words.size() >= 3);
  Field field;
  std::from_chars(words[0].data(), words[0].data() + words[0].size(), field.number);
  field.name = words[1];
  parse_type(field, words[2], references);
  for (std::size_t i = 3; i < words.size(); ++i) parse_word(field, words[i]);
  return field;
}

void load_types(Table& table) {
  std::vector<std::string_view> references;
  each_line(file("types"), [&](std::string_view line) {
    if (line.front() == ' ') {
      table.messages.back().fields.push_back(parse_field(line, references));
      return;
    }
    const auto words = split(line, ' ');
    table.messages.push_back({.name = words.at(1), .is_atomic = words.size() > 2});
  });
  std::size_t next = 0;
  for (Message& message : table.messages) {
    for (Field& field : message.fields) {
      const std::string_view name = references[next++];
      if (name.empty()) continue;
      field.message = table.find(name);
      if (!field.message) fail(Code::internal, "built-in type '{}' is not described", name);
    }
  }
}

void load_kinds(Table& table) {
  std::string_view types, api_version;
  each_line(file("kinds"), [&](std::string_view line) {
    const auto words = split(line.front() == ' ' ? line.substr(1) : line, ' ');
    if (line.front() != ' ') {
      types = words.at(1);
      api_version = words.at(2);
      table.prefixes.push_back({types, words.at(3)});
      return;
    }
    KindRow row{.api_version = api_version, .kind = words.at(0)};
    if (words.at(1) != "-") row.plural = words[1];
    for (std::size_t i = 2; i < words.size(); ++i) {
      row.namespaced |= words[i] == "namespaced";
      row.has_status |= words[i] == "status";
      take_value(words[i], "short:", row.short_names);
      take_value(words[i], "in:", row.categories);
    }
    row.message = table.find(std::string(types).append(".").append(row.kind));
    HEARTH_ASSERT(row.message);
    table.kinds.push_back(row);
  });
}

void load_descriptions(Table& table) {
  each_line(file("descriptions"), [&](std::string_view line) {
    const auto space = line.find(' ');
    HEARTH_ASSERT(space != std::string_view::npos);
    table.descriptions.emplace_back(line.substr(0, space), line.substr(space + 1));
  });
  std::sort(table.descriptions.begin(), table.descriptions.end());
}

Table load() {
  Table table;
  load_types(table);
  load_kinds(table);
  load_descriptions(table);
  return table;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  if (text.empty()) return words;
  while (true) {
    const auto end = text.find(separator);
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

const Field* Message::find(unsigned number) const {
  const auto at =
      std::lower_bound(fields.begin(), fields.end(), number,
                       [](const Field& field, unsigned wanted) { return field.number < wanted; });
  return at != fields.end() && at->number == number ? &*at : nullptr;
}

const Message* Table::find(std::string_view name) const {
  const auto at = std::lower_bound(
      messages.begin(), messages.end(), name,
      [](const Message& message, std::string_view wanted) { return message.name < wanted; });
  return at != messages.end() && at->name == name ? &*at : nullptr;
}

std::string_view Table::description(std::string_view name) const {
  const auto at =
      std::lower_bound(descriptions.begin(), descriptions.end(), name,
                       [](const auto& one, std::string_view wanted) { return one.first < wanted; });
  return at != descriptions.end() && at->first == name ? at->second : std::string_view();
}

const Table& table() {
  static const Table loaded = load();
  return loaded;
}

}  // namespace hearth::schema
