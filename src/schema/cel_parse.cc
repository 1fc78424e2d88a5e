// Reading rules: from text to a tree, by recursive descent.
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "schema/cel.h"
#include "schema/cel_tree.h"
#include "schema/words.h"

namespace hearth::schema {
namespace {

using cel::Node;
using cel::Op;
using NodePtr = std::unique_ptr<Node>;

constexpr std::size_t kLongestRule = 16 * 1024;
constexpr int kMostNesting = 64;

struct Word {
  std::string_view text;
  Op op;
};

constexpr Word kComparisons[] = {{"==", Op::equal},         {"!=", Op::not_equal},
                                 {"<=", Op::less_equal},    {"<", Op::less},
                                 {">=", Op::greater_equal}, {">", Op::greater}};
constexpr Word kMacros[] = {{"all", Op::all},
                            {"exists", Op::exists},
                            {"exists_one", Op::exists_one},
                            {"filter", Op::filter},
                            {"map", Op::map}};
constexpr Word kMethods[] = {{"startsWith", Op::starts_with},
                             {"endsWith", Op::ends_with},
                             {"contains", Op::contains},
                             {"matches", Op::matches}};
constexpr Word kFunctions[] = {{"size", Op::size}, {"int", Op::to_int}, {"string", Op::to_string}};
// What member names that are no identifiers look like in rules.
constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
    {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};

template <typename Words>
std::optional<Op> find_word(const Words& words, std::string_view text) {
  for (const Word& word : words)
    if (word.text == text) return word.op;
  return std::nullopt;
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "__namespace__" is a reserved word used as a member's name.
std::string unescaped(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    bool found = false;
    for (const auto& [from, to] : kEscapes) {
      if (!name.starts_with(from)) continue;
      result += to;
      name.remove_prefix(from.size());
      found = true;
      break;
    }
    if (found) continue;
    result += name.front();
    name.remove_prefix(1);
  }
  if (result.size() > 4 && result.starts_with("__") && result.ends_with("__"))
    return result.substr(2, result.size() - 4);
  return result;
}

NodePtr make(Op op, NodePtr first = nullptr, NodePtr second = nullptr, NodePtr third = nullptr) {
  auto node = std::make_unique<Node>();
  node->op = op;
  for (NodePtr* child : {&first, &second, &third})
    if (*child) node->children.push_back(std::move(*child));
  return node;
}

class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}

  std::shared_ptr<const CelProgram> parse() {
    if (text_.size() > kLongestRule) refuse("the rule is too long");
    auto program = std::make_shared<CelProgram>();
    program->root = expression();
    skip_space();
    if (at_ < text_.size()) refuse("an operator was expected");
    program->uses_old_self = uses_old_self_;
    return program;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail(Code::invalid, "{} at character {} of '{}'", why, at_ + 1,
         text_.substr(0, kLongestRule / 16));
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  // Takes a sign if it is next.
  bool take(std::string_view sign) {
    skip_space();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  void expect(std::string_view sign) {
    if (!take(sign)) refuse(fmt::format("'{}' was expected", sign));
  }

  std::string_view name() {
    skip_space();
    const std::size_t start = at_;
    if (at_ >= text_.size() || !is_name_start(text_[at_])) refuse("a name was expected");
    while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(start, at_ - start);
  }

  // The word "in", which may also be the start of a name.
  bool take_in() {
    skip_space();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with("in")) return false;
    if (rest.size() > 2 && (is_name_start(rest[2]) || is_digit(rest[2]))) return false;
    at_ += 2;
    return true;
  }

  NodePtr expression() {
    if (++nesting_ > kMostNesting) refuse("the rule is nested too deep");
    NodePtr node = disjunction();
    if (take("?")) {
      NodePtr yes = expression();
      expect(":");
      node = make(Op::choose, std::move(node), std::move(yes), expression());
    }
    --nesting_;
    return node;
  }

  NodePtr disjunction() {
    NodePtr node = conjunction();
    while (take("||")) node = joined(Op::or_, std::move(node), conjunction());
    return node;
  }

  NodePtr conjunction() {
    NodePtr node = relation();
    while (take("&&")) node = joined(Op::and_, std::move(node), relation());
    return node;
  }

  // A chain of operators is as deep a tree as it is long.
  NodePtr joined(Op op, NodePtr left, NodePtr right) {
    constexpr int kLongestChain = 500;
    if (++joints_ > kLongestChain) refuse("the rule has too many operators");
    return make(op, std::move(left), std::move(right));
  }

  NodePtr relation() {
    NodePtr node = sum();
    while (true) {
      const auto op = comparison();
      if (!op) return node;
      node = joined(*op, std::move(node), sum());
    }
  }

  std::optional<Op> comparison() {
    for (const Word& word : kComparisons)
      if (take(word.text)) return word.op;
    if (take_in()) return Op::in;
    return std::nullopt;
  }

  NodePtr sum() {
    NodePtr node = product();
    while (true) {
      if (take("+"))
        node = joined(Op::add, std::move(node), product());
      else if (take("-"))
        node = joined(Op::subtract, std::move(node), product());
      else
        return node;
    }
  }

  NodePtr product() {
    NodePtr node = unary();
    while (true) {
      if (take("*"))
        node = joined(Op::multiply, std::move(node), unary());
      else if (take("/"))
        node = joined(Op::divide, std::move(node), unary());
      else if (take("%"))
        node = joined(Op::modulo, std::move(node), unary());
      else
        return node;
    }
  }

  NodePtr unary() {
    if (++nesting_ > kMostNesting) refuse("the rule is nested too deep");
    NodePtr node;
    if (take("!"))
      node = make(Op::not_, unary());
    else if (take("-"))
      node = make(Op::negate, unary());
    else
      node = member();
    --nesting_;
    return node;
  }

  NodePtr member() {
    NodePtr node = primary();
    while (true) {
      if (take("[")) {
        node = joined(Op::index, std::move(node), expression());
        expect("]");
      } else if (take(".")) {
        const std::string_view word = name();
        if (take("(")) {
          node = method(std::move(node), word);
        } else {
          node = joined(Op::field, std::move(node), nullptr);
          node->text = unescaped(word);
        }
      } else {
        return node;
      }
    }
  }

  NodePtr method(NodePtr object, std::string_view word) {
    if (const auto op = find_word(kMacros, word)) return macro(*op, std::move(object));
    if (word == "size" || word == "lowerAscii") {
      expect(")");
      return joined(word == "size" ? Op::size : Op::lower, std::move(object), nullptr);
    }
    const auto op = find_word(kMethods, word);
    if (!op) refuse(fmt::format("function '{}' is not supported", word));
    NodePtr argument = expression();
    expect(")");
    return call(*op, std::move(object), std::move(argument));
  }

  NodePtr call(Op op, NodePtr object, NodePtr argument) {
    if (op == Op::matches) {
      if (argument->op != Op::literal || !argument->value.is_string())
        refuse("matches() is supported with a literal pattern only");
      check_pattern({argument->value.get_string().data(), argument->value.get_string().size()});
    }
    return joined(op, std::move(object), std::move(argument));
  }

  NodePtr macro(Op op, NodePtr range) {
    const std::string variable(name());
    expect(",");
    variables_.push_back(variable);
    NodePtr node = joined(op, std::move(range), expression());
    variables_.pop_back();
    expect(")");
    node->text = variable;
    return node;
  }

  NodePtr primary() {
    skip_space();
    if (at_ >= text_.size()) refuse("the rule ends too early");
    const char c = text_[at_];
    if (c == '"' || c == '\'') return literal(string_literal());
    if (is_digit(c)) return literal(number());
    if (take("(")) {
      NodePtr node = expression();
      expect(")");
      return node;
    }
    if (take("[")) return list();
    if (is_name_start(c)) return named();
    refuse(fmt::format("'{}' is not supported", c));
  }

  NodePtr list() {
    NodePtr node = make(Op::list);
    if (take("]")) return node;
    do node->children.push_back(expression());
    while (take(","));
    expect("]");
    return node;
  }

  NodePtr named() {
    const std::string_view word = name();
    if (word == "true" || word == "false") return literal(word == "true");
    if (word == "null") return literal(nullptr);
    if (take("(")) return function(word);
    bool is_known = word == "self" || word == "oldSelf";
    for (const std::string& variable : variables_) is_known |= variable == word;
    if (!is_known) refuse(fmt::format("'{}' is not known", word));
    uses_old_self_ |= word == "oldSelf";
    NodePtr node = make(Op::name);
    node->text = word;
    return node;
  }

  NodePtr function(std::string_view word) {
    if (word == "has") {
      NodePtr argument = expression();
      expect(")");
      if (argument->op != Op::field) refuse("has() is for members: has(self.name)");
      return make(Op::has, std::move(argument));
    }
    NodePtr argument = expression();
    if (word == "matches" && take(",")) {
      NodePtr pattern = expression();
      expect(")");
      return call(Op::matches, std::move(argument), std::move(pattern));
    }
    const auto op = find_word(kFunctions, word);
    if (!op) refuse(fmt::format("function '{}' is not supported", word));
    expect(")");
    return make(*op, std::move(argument));
  }

  static NodePtr literal(model::Json value) {
    NodePtr node = make(Op::literal);
    node->value = std::move(value);
    return node;
  }

  model::Json number() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    if (at_ < text_.size() && is_name_start(text_[at_])) refuse("such a number is not supported");
    const std::string_view digits = text_.substr(start, at_ - start);
    const char* end = digits.data() + digits.size();
    if (digits.find('.') == std::string_view::npos) {
      std::int64_t value = 0;
      if (std::from_chars(digits.data(), end, value).ec != std::errc())
        refuse("a number is too large");
      return value;
    }
    double value = 0;
    const auto [stopped, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc() || stopped != end) refuse("a number was expected");
    return value;
  }

  model::Json string_literal() {
    const char quote = text_[at_];
    if (text_.substr(at_).starts_with(std::string(3, quote)))
      refuse("texts of several lines are not supported");
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_)
      value += text_[at_] == '\\' ? escape() : text_[at_];
    if (at_ >= text_.size()) refuse("a text does not end");
    ++at_;
    return boost::json::string(value);
  }

  char escape() {
    constexpr std::string_view kLetters = "nrt\\'\"?`";
    constexpr std::string_view kMeanings = "\n\r\t\\'\"?`";
    ++at_;
    const auto found = at_ < text_.size() ? kLetters.find(text_[at_]) : std::string_view::npos;
    if (found == std::string_view::npos) refuse("such an escape is not supported");
    return kMeanings[found];
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int joints_ = 0;
  bool uses_old_self_ = false;
  std::vector<std::string> variables_;
};

}  // namespace

std::shared_ptr<const CelProgram> compile_cel(std::string_view text) {
  return RuleParser(text).parse();
}

}  // namespace hearth::schema
