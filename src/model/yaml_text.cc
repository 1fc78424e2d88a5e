#include "model/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/json_text.h"

namespace hearth::model {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Words that YAML 1.1 or 1.2 takes for something else than text.
bool is_reserved(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords = {"null", "true", "false", "yes", "no",
                                                             "on",   "off",  "y",     "n"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return std::equal(word.begin(), word.end(), text.begin(), text.end(),
                      [](char a, char b) { return a == (b | 0x20); });
  });
}

// Safe without quotes for every reader: starts like a word and has nothing in it that means
// something to YAML.
bool is_plain(std::string_view text) {
  if (text.empty() || !(is_letter(text[0]) || text[0] == '_' || text[0] == '/')) return false;
  if (is_reserved(text) || text.back() == ':') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ':' && text[i + 1] != ' ') continue;
    if (!is_letter(c) && !is_digit(c) &&
        std::string_view("_./@+=-").find(c) == std::string_view::npos)
      return false;
  }
  return true;
}

std::string scalar(std::string_view text) {
  return is_plain(text) ? std::string(text) : json_quote(text);
}

class Writer {
 public:
  std::string take() { return std::move(out_); }

  // Writes behind "key:" or "-", or at the start of the document.
  void write(const Json& value, std::size_t indent, bool is_item) {
    if (const JsonObject* object = value.if_object(); object && !object->empty())
      write_object(*object, indent, is_item);
    else if (const JsonArray* array = value.if_array(); array && !array->empty())
      write_array(*array, indent, is_item);
    else
      write_leaf(value);
  }

 private:
  void write_object(const JsonObject& object, std::size_t indent, bool is_item) {
    std::vector<const boost::json::key_value_pair*> members;
    members.reserve(object.size());
    for (const auto& member : object) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const auto* left, const auto* right) { return left->key() < right->key(); });
    bool is_first = true;
    for (const auto* member : members) {
      // The first member of a list's item stands behind its dash.
      start_line(indent, is_first && is_item);
      is_first = false;
      out_ += scalar({member->key().data(), member->key().size()});
      out_ += ':';
      const bool is_list = member->value().is_array() && !member->value().get_array().empty();
      // Lists are not indented below their key, as everyone writes Kubernetes' YAML.
      write(member->value(), is_list ? indent : indent + 1, false);
    }
  }
  void write_array(const JsonArray& array, std::size_t indent, bool is_item) {
    bool is_first = true;
    for (const Json& child : array) {
      start_line(indent, is_first && is_item);
      is_first = false;
      out_ += '-';
      write(child, indent + 1, true);
    }
  }
  void write_leaf(const Json& value) {
    if (!out_.empty()) out_ += ' ';
    if (const auto* text = value.if_string())
      out_ += scalar({text->data(), text->size()});
    else
      out_ += to_text(value);
  }
  void start_line(std::size_t indent, bool continues) {
    if (continues) {
      out_ += ' ';
      return;
    }
    if (!out_.empty()) out_ += '\n';
    out_.append(2 * indent, ' ');
  }

  std::string out_;
};

}  // namespace

std::string to_yaml(const Json& value) {
  Writer writer;
  writer.write(value, 0, false);
  return writer.take() + '\n';
}

}  // namespace hearth::model
