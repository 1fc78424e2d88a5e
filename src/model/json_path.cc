#include "model/json_path.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace hearth::model {
namespace {

using Comparison = JsonPath::Comparison;
using Filter = JsonPath::Filter;
using Slice = JsonPath::Slice;
using Step = JsonPath::Step;

// Paths of CRDs have some five steps.
constexpr std::size_t kMostSteps = 64;
constexpr std::size_t kMostPathBytes = 4096;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Step> parse() {
    const bool is_braced = accept('{');
    accept('$');
    std::vector<Step> steps;
    while (!is_done() && peek() != '}') {
      if (steps.size() == kMostSteps) complain("it has too many steps");
      if (auto step = parse_step(steps.empty())) steps.push_back(*std::move(step));
    }
    if (is_braced && !accept('}')) complain("'}' is missing");
    if (!is_done()) complain("text follows its end");
    return steps;
  }

 private:
  bool is_done() const { return at_ >= text_.size(); }
  char peek() const { return is_done() ? '\0' : text_[at_]; }
  bool accept(char c) {
    if (peek() != c || is_done()) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(char c) {
    if (!accept(c)) complain(std::string("'") + c + "' is missing");
  }
  void skip_blanks() {
    while (peek() == ' ') ++at_;
  }
  [[noreturn]] void complain(std::string_view why) const {
    fail(Code::invalid, "JSONPath '{}': at byte {}: {}", text_, at_, why);
  }

  std::optional<Step> parse_step(bool is_first) {
    if (accept('[')) return parse_brackets();
    const bool has_dot = accept('.');
    if (!has_dot && !is_first) complain("'.' or '[' is missing");
    if (has_dot && peek() == '.') complain("'..' is not supported");
    if (has_dot && accept('*')) return JsonPath::Each{};
    // "." alone is the whole value, and ".['a']" is "['a']".
    if (has_dot && ((is_first && (is_done() || peek() == '}')) || peek() == '['))
      return std::nullopt;
    return JsonPath::Member{parse_name()};
  }

  // A backslash takes the meaning from what follows: ".metadata.annotations.a\.b".
  std::string parse_name() {
    std::string name;
    while (!is_done() && std::string_view(".[]{}()=!<> ").find(peek()) == std::string_view::npos) {
      if (accept('\\') && is_done()) complain("it ends in a backslash");
      name += text_[at_++];
    }
    if (name.empty()) complain("a name is missing");
    return name;
  }

  Step parse_brackets() {
    Step step;
    if (accept('*')) {
      step = JsonPath::Each{};
    } else if (accept('?')) {
      step = parse_filter();
    } else if (peek() == '\'' || peek() == '"') {
      step = JsonPath::Member{parse_quoted()};
    } else {
      step = parse_slice();
    }
    expect(']');
    return step;
  }

  std::string parse_quoted() {
    const char quote = text_[at_++];
    std::string text;
    while (!is_done() && peek() != quote) {
      if (accept('\\') && is_done()) break;
      text += text_[at_++];
    }
    expect(quote);
    return text;
  }

  std::optional<long> parse_integer() {
    long number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error == std::errc::result_out_of_range) complain("the number is too large");
    if (error != std::errc()) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return number;
  }

  Slice parse_slice() {
    const auto first = parse_integer();
    if (!accept(':')) {
      if (!first) complain("an index is missing");
      // The last element has none behind it that a number could name.
      return {*first, *first + 1, *first == -1};
    }
    const auto last = parse_integer();
    return {first.value_or(0), last.value_or(0), !last};
  }

  Filter parse_filter() {
    expect('(');
    skip_blanks();
    expect('@');
    Filter filter;
    while (peek() == '.' || peek() == '[') {
      if (filter.members.size() == kMostSteps) complain("it has too many steps");
      if (accept('[')) {
        if (peek() != '\'' && peek() != '"') complain("a quote is missing");
        filter.members.push_back(parse_quoted());
        expect(']');
      } else {
        expect('.');
        filter.members.push_back(parse_name());
      }
    }
    skip_blanks();
    filter.comparison = parse_comparison();
    skip_blanks();
    if (filter.comparison != Comparison::exists) filter.literal = parse_literal();
    skip_blanks();
    expect(')');
    return filter;
  }

  Comparison parse_comparison() {
    if (accept("==")) return Comparison::equal;
    if (accept("!=")) return Comparison::not_equal;
    if (accept("<=")) return Comparison::less_or_equal;
    if (accept(">=")) return Comparison::greater_or_equal;
    if (accept('<')) return Comparison::less;
    if (accept('>')) return Comparison::greater;
    return Comparison::exists;
  }

  Json parse_literal() {
    if (peek() == '\'' || peek() == '"') return Json(parse_quoted());
    if (accept("true")) return true;
    if (accept("false")) return false;
    double number = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc() || !std::isfinite(number)) complain("a literal is missing");
    at_ += static_cast<std::size_t>(end - begin);
    return number;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<double> number_of(const Json& value) {
  if (const auto* number = value.if_int64()) return static_cast<double>(*number);
  if (const auto* number = value.if_uint64()) return static_cast<double>(*number);
  if (const auto* number = value.if_double()) return *number;
  return std::nullopt;
}

// Less than 0, 0, more than 0; nothing for values that have no order.
std::optional<int> compare(const Json& left, const Json& right) {
  if (left.is_string() && right.is_string()) return left.get_string().compare(right.get_string());
  const auto a = number_of(left);
  const auto b = number_of(right);
  if (a && b) return *a < *b ? -1 : *a > *b ? 1 : 0;
  if (left.is_bool() && right.is_bool()) return int(left.get_bool()) - int(right.get_bool());
  return std::nullopt;
}

bool holds(const Filter& filter, const Json& element) {
  const Json* value = &element;
  for (const std::string& name : filter.members) {
    const JsonObject* object = value->if_object();
    value = object ? object->if_contains(name) : nullptr;
    if (!value) return false;
  }
  if (filter.comparison == Comparison::exists) return true;
  const auto order = compare(*value, filter.literal);
  if (!order) return filter.comparison == Comparison::not_equal;
  switch (filter.comparison) {
    case Comparison::equal:
      return *order == 0;
    case Comparison::not_equal:
      return *order != 0;
    case Comparison::less:
      return *order < 0;
    case Comparison::less_or_equal:
      return *order <= 0;
    case Comparison::greater:
      return *order > 0;
    case Comparison::greater_or_equal:
      return *order >= 0;
    case Comparison::exists:
      break;
  }
  return true;
}

// Walks along the steps and collects what is at their end.
class Walk {
 public:
  Walk(const std::vector<Step>& steps, std::size_t most) : steps_(steps), most_(most) {}

  std::vector<const Json*> run(const Json& value) {
    go(value, 0);
    return std::move(found_);
  }

 private:
  void go(const Json& value, std::size_t step) {
    if (found_.size() >= most_) return;
    if (step == steps_.size()) {
      found_.push_back(&value);
      return;
    }
    std::visit([&](const auto& what) { take(value, what, step + 1); }, steps_[step]);
  }

  void take(const Json& value, const JsonPath::Member& member, std::size_t next) {
    const JsonObject* object = value.if_object();
    if (const Json* child = object ? object->if_contains(member.name) : nullptr) go(*child, next);
  }
  void take(const Json& value, const Slice& slice, std::size_t next) {
    const JsonArray* array = value.if_array();
    if (!array) return;
    const long size = static_cast<long>(array->size());
    const auto from_end = [&](long index) { return index < 0 ? index + size : index; };
    const long last = slice.is_open ? size : std::min(from_end(slice.last), size);
    long first = from_end(slice.first);
    if (first < 0) return;
    for (; first < last; ++first) go((*array)[static_cast<std::size_t>(first)], next);
  }
  void take(const Json& value, const JsonPath::Each&, std::size_t next) {
    if (const JsonArray* array = value.if_array())
      for (const Json& child : *array) go(child, next);
    if (const JsonObject* object = value.if_object())
      for (const auto& [key, child] : *object) go(child, next);
  }
  void take(const Json& value, const Filter& filter, std::size_t next) {
    if (const JsonArray* array = value.if_array())
      for (const Json& child : *array)
        if (holds(filter, child)) go(child, next);
  }

  const std::vector<Step>& steps_;
  std::size_t most_;
  std::vector<const Json*> found_;
};

}  // namespace

JsonPath JsonPath::parse(std::string_view text) {
  if (text.empty()) fail(Code::invalid, "a JSONPath is empty");
  if (text.size() > kMostPathBytes)
    fail(Code::invalid, "a JSONPath may have {} bytes, not {}", kMostPathBytes, text.size());
  JsonPath path;
  path.steps_ = Parser(text).parse();
  return path;
}

std::vector<const Json*> JsonPath::find_all(const Json& value, std::size_t most) const {
  return Walk(steps_, most).run(value);
}

const Json* JsonPath::find_first(const Json& value) const {
  const auto found = find_all(value, 1);
  return found.empty() ? nullptr : found.front();
}

bool JsonPath::is_simple() const {
  for (const Step& step : steps_)
    if (!std::holds_alternative<Member>(step)) return false;
  return !steps_.empty();
}

void JsonPath::set(Json& value, Json what) const {
  if (!is_simple()) fail(Code::invalid, "a JSONPath with more than members leads to no one place");
  Json* at = &value;
  for (const Step& step : steps_) {
    const std::string& name = std::get<Member>(step).name;
    if (at->is_null()) at->emplace_object();
    if (!at->is_object()) fail(Code::invalid, "there is no object to put '{}' into", name);
    at = &at->get_object()[name];
  }
  *at = std::move(what);
}

}  // namespace hearth::model
