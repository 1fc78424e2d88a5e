#include "model/selector.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "model/names.h"
#include "model/status.h"

namespace hearth::model {
namespace {

using Operator = LabelSelector::Operator;
using Requirement = LabelSelector::Requirement;

enum class Token { end, bad, comma, open, close, bang, equals, not_equals, greater, less, word };

struct Scanned {
  Token token = Token::end;
  std::string text;
};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool is_symbol(char c) {
  return std::string_view("=!(),><").find(c) != std::string_view::npos;
}

// The longest symbol at the start of `text`. All that start with '=' or '!' are one or two long.
Scanned scan_symbol(std::string_view text) {
  const auto is_next_equals = text.size() > 1 && text[1] == '=';
  switch (text[0]) {
    case '(':
      return {Token::open, "("};
    case ')':
      return {Token::close, ")"};
    case ',':
      return {Token::comma, ","};
    case '>':
      return {Token::greater, ">"};
    case '<':
      return {Token::less, "<"};
    case '=':
      return {Token::equals, is_next_equals ? "==" : "="};
    case '!':
      return is_next_equals ? Scanned{Token::not_equals, "!="} : Scanned{Token::bang, "!"};
    default:
      return {Token::bad, std::string(1, text[0])};
  }
}

std::vector<Scanned> scan(std::string_view text) {
  std::vector<Scanned> tokens;
  while (true) {
    while (!text.empty() && is_blank(text[0])) text.remove_prefix(1);
    if (text.empty()) break;
    Scanned next;
    if (is_symbol(text[0])) {
      next = scan_symbol(text);
    } else {
      const auto* const end = std::find_if(text.begin(), text.end(),
                                           [](char c) { return is_symbol(c) || is_blank(c); });
      next = {Token::word, std::string(text.begin(), end)};
    }
    text.remove_prefix(next.text.size());
    tokens.push_back(std::move(next));
  }
  tokens.emplace_back();
  return tokens;
}

std::optional<std::int64_t> integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || at != text.data() + text.size() || text.empty()) return {};
  return number;
}

std::string invalid_text(std::string_view field, std::string_view value, const Problems& problems) {
  return fmt::format("{}: Invalid value: {}: {}", field, json_quote(value),
                     fmt::join(problems, "; "));
}

// Throws the plain text of what is wrong; the caller says where.
struct Complaint {
  std::string text;
};

void check_requirement(const Requirement& requirement) {
  if (const Problems problems = check_qualified_name(requirement.key); !problems.empty())
    throw Complaint{invalid_text("key", requirement.key, problems)};
  const bool is_set = requirement.op == Operator::in || requirement.op == Operator::not_in;
  if (is_set && requirement.values.empty())
    throw Complaint{
        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"};
  const bool is_unary = requirement.op == Operator::exists || requirement.op == Operator::absent;
  if (is_unary && !requirement.values.empty())
    throw Complaint{
        "values: Invalid value: values set must be empty for exists and does not exist"};
  const bool is_order = requirement.op == Operator::greater || requirement.op == Operator::less;
  for (std::size_t i = 0; i < requirement.values.size(); ++i) {
    const std::string& value = requirement.values[i];
    if (is_order && !integer(value))
      throw Complaint{invalid_text(fmt::format("values[{}]", i), value,
                                   {"for 'Gt', 'Lt' operators, the value must be an integer"})};
    if (const Problems problems = check_label_value(value); !problems.empty())
      throw Complaint{
          invalid_text(fmt::format("values[{}][{}]", i, requirement.key), value, problems)};
  }
}

void sort_values(std::vector<std::string>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(scan(text)) {}

  std::vector<Requirement> parse() {
    std::vector<Requirement> requirements;
    if (peek().token == Token::end) return requirements;
    if (!starts_requirement())
      throw Complaint{
          fmt::format("found '{}', expected: !, identifier, or 'end of string'", peek().text)};
    while (true) {
      try {
        requirements.push_back(parse_requirement());
      } catch (const Complaint& complaint) {
        throw Complaint{"unable to parse requirement: " + complaint.text};
      }
      const Scanned& next = take();
      if (next.token == Token::end) return requirements;
      if (next.token != Token::comma)
        throw Complaint{fmt::format("found '{}', expected: ',' or 'end of string'", next.text)};
      if (!starts_requirement())
        throw Complaint{fmt::format("found '{}', expected: identifier after ','", peek().text)};
    }
  }

 private:
  const Scanned& peek() const { return tokens_[at_]; }
  // The last token is the end, which is never passed.
  const Scanned& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool starts_requirement() const {
    return peek().token == Token::word || peek().token == Token::bang;
  }

  Requirement parse_requirement() {
    Requirement requirement;
    const bool is_absent = peek().token == Token::bang;
    if (is_absent) take();
    const Scanned& key = take();
    if (key.token != Token::word)
      throw Complaint{fmt::format("found '{}', expected: identifier", key.text)};
    if (const Problems problems = check_qualified_name(key.text); !problems.empty())
      throw Complaint{invalid_text("<nil>", key.text, problems)};
    requirement.key = key.text;
    if (is_absent) {
      requirement.op = Operator::absent;
    } else if (peek().token != Token::end && peek().token != Token::comma) {
      requirement.op = parse_operator();
      const bool is_set = requirement.op == Operator::in || requirement.op == Operator::not_in;
      requirement.values = is_set ? parse_values() : std::vector{parse_value()};
    }
    check_requirement(requirement);
    return requirement;
  }

  Operator parse_operator() {
    const Scanned& found = take();
    switch (found.token) {
      case Token::equals:
        return Operator::equals;
      case Token::not_equals:
        return Operator::not_equals;
      case Token::greater:
        return Operator::greater;
      case Token::less:
        return Operator::less;
      default:
        break;
    }
    if (found.token == Token::word && found.text == "in") return Operator::in;
    if (found.token == Token::word && found.text == "notin") return Operator::not_in;
    throw Complaint{fmt::format("found '{}', expected: in, notin, =, ==, !=, gt, lt", found.text)};
  }

  std::string parse_value() {
    if (peek().token == Token::end || peek().token == Token::comma) return {};
    const Scanned& value = take();
    if (value.token != Token::word)
      throw Complaint{fmt::format("found '{}', expected: identifier", value.text)};
    return value.text;
  }

  // "(x,,y)": between two commas is the empty value.
  std::vector<std::string> parse_values() {
    if (const Scanned& open = take(); open.token != Token::open)
      throw Complaint{fmt::format("found '{}' expected: '('", open.text)};
    std::vector<std::string> values;
    while (true) {
      values.push_back(peek().token == Token::word ? take().text : std::string());
      const Scanned& next = take();
      if (next.token == Token::close) break;
      if (next.token != Token::comma)
        throw Complaint{fmt::format("found '{}', expected: ',' or ')'", next.text)};
    }
    sort_values(values);
    return values;
  }

  std::vector<Scanned> tokens_;
  std::size_t at_ = 0;
};

bool holds(const Requirement& requirement, const Labels& labels) {
  const std::string* value = find_label(labels, requirement.key);
  const auto is_among = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) !=
           requirement.values.end();
  };
  switch (requirement.op) {
    case Operator::equals:
    case Operator::in:
      return value && is_among();
    case Operator::not_equals:
    case Operator::not_in:
      return !value || !is_among();
    case Operator::exists:
      return value != nullptr;
    case Operator::absent:
      return value == nullptr;
    case Operator::greater:
    case Operator::less:
      break;
  }
  const auto left = value ? integer(*value) : std::nullopt;
  const auto right = integer(requirement.values.front());
  if (!left || !right) return false;
  return requirement.op == Operator::greater ? *left > *right : *left < *right;
}

std::string to_text(const Requirement& requirement) {
  const std::string& key = requirement.key;
  switch (requirement.op) {
    case Operator::equals:
      return fmt::format("{}={}", key, requirement.values.front());
    case Operator::not_equals:
      return fmt::format("{}!={}", key, requirement.values.front());
    case Operator::greater:
      return fmt::format("{}>{}", key, requirement.values.front());
    case Operator::less:
      return fmt::format("{}<{}", key, requirement.values.front());
    case Operator::in:
      return fmt::format("{} in ({})", key, fmt::join(requirement.values, ","));
    case Operator::not_in:
      return fmt::format("{} notin ({})", key, fmt::join(requirement.values, ","));
    case Operator::absent:
      return "!" + key;
    case Operator::exists:
      break;
  }
  return key;
}

void sort_by_key(std::vector<Requirement>& requirements) {
  std::sort(requirements.begin(), requirements.end(), [](const auto& left, const auto& right) {
    return std::tie(left.key, left.op, left.values) < std::tie(right.key, right.op, right.values);
  });
}

std::string_view text_of(const Json& value) {
  const auto* text = value.if_string();
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

Requirement requirement_from(const Json& expression) {
  Requirement requirement;
  requirement.key = text_at(expression, {"key"});
  const std::string_view op = text_at(expression, {"operator"});
  if (op == "In")
    requirement.op = Operator::in;
  else if (op == "NotIn")
    requirement.op = Operator::not_in;
  else if (op == "Exists")
    requirement.op = Operator::exists;
  else if (op == "DoesNotExist")
    requirement.op = Operator::absent;
  else
    throw Complaint{fmt::format("{} is not a valid label selector operator", json_quote(op))};
  if (const JsonArray* values = array_at(expression, {"values"}))
    for (const Json& value : *values) requirement.values.emplace_back(text_of(value));
  sort_values(requirement.values);
  return requirement;
}

}  // namespace

Labels labels_of(const Json& object) {
  Labels labels;
  if (const JsonObject* members = object_at(object, {"metadata", "labels"}))
    for (const auto& [key, value] : *members)
      labels.emplace_back(std::string(key.data(), key.size()), text_of(value));
  std::sort(labels.begin(), labels.end());
  return labels;
}

const std::string* find_label(const Labels& labels, std::string_view name) {
  const auto at =
      std::lower_bound(labels.begin(), labels.end(), name,
                       [](const auto& label, std::string_view n) { return label.first < n; });
  return at != labels.end() && at->first == name ? &at->second : nullptr;
}

void check_selector_length(std::string_view text) {
  if (text.size() > kMostSelectorBytes)
    throw_bad_request(
        fmt::format("a selector may have {} bytes, not {}", kMostSelectorBytes, text.size()));
}

LabelSelector LabelSelector::parse(std::string_view text) {
  check_selector_length(text);
  LabelSelector selector;
  try {
    selector.requirements_ = Parser(text).parse();
  } catch (const Complaint& complaint) {
    throw_bad_request(complaint.text);
  }
  sort_by_key(selector.requirements_);
  return selector;
}

LabelSelector LabelSelector::from_object(const Json& object) {
  LabelSelector selector;
  try {
    if (const JsonObject* labels = object_at(object, {"matchLabels"}))
      for (const auto& [key, value] : *labels)
        selector.requirements_.push_back(
            {std::string(key.data(), key.size()), Operator::equals, {std::string(text_of(value))}});
    if (const JsonArray* expressions = array_at(object, {"matchExpressions"}))
      for (const Json& expression : *expressions)
        selector.requirements_.push_back(requirement_from(expression));
    for (const Requirement& requirement : selector.requirements_) check_requirement(requirement);
  } catch (const Complaint& complaint) {
    throw_bad_request(complaint.text);
  }
  sort_by_key(selector.requirements_);
  return selector;
}

bool LabelSelector::matches(const Labels& labels) const {
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) { return holds(requirement, labels); });
}

std::string LabelSelector::text() const {
  std::vector<std::string> parts;
  parts.reserve(requirements_.size());
  for (const Requirement& requirement : requirements_) parts.push_back(to_text(requirement));
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace hearth::model
