// Running rules; reading them is in cel_parse.cc.
#include "schema/cel.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "schema/cel_tree.h"
#include "schema/words.h"

namespace hearth::schema {
namespace {

using cel::arithmetic_of;
using cel::integer_of;
using cel::Node;
using cel::Op;
using cel::order;
using cel::stop;
using cel::text_of;
using cel::to_integer;
using cel::to_text;
using cel::truth_of;
using model::Json;
using model::JsonArray;
using model::JsonObject;

// A rule that takes more is not worth waiting for: some tens of milliseconds.
constexpr std::size_t kMostSteps = 1'000'000;
// Bytes of text that are as much work as one step.
constexpr std::size_t kBytesPerStep = 16;

// A value that somebody else owns, or that was computed.
class Value {
 public:
  Value(const Json& borrowed) : at_(&borrowed) {}  // NOLINT(google-explicit-constructor)
  static Value made(Json json) {
    auto own = std::make_shared<const Json>(std::move(json));
    Value value(*own);
    value.own_ = std::move(own);
    return value;
  }
  // A part of this one, which stays alive with it.
  Value part(const Json& inner) const {
    Value value(inner);
    value.own_ = own_;
    return value;
  }

  const Json& json() const { return *at_; }

 private:
  const Json* at_;
  std::shared_ptr<const Json> own_;
};

class Evaluator {
 public:
  Evaluator(const Json& self, const Json* old_self) {
    names_.push_back({"self", Value(self)});
    if (old_self) names_.push_back({"oldSelf", Value(*old_self)});
  }

  Value run(const Node& node) {
    spend(1);
    switch (node.op) {
      case Op::literal:
        return node.value;
      case Op::name:
        return lookup(node.text);
      case Op::field:
        return field(node);
      case Op::index:
        return index(run(node.child(0)), run(node.child(1)));
      case Op::list:
        return list(node);
      case Op::has:
        return Value::made(has(node.child(0)));
      case Op::negate:
        return Value::made(arithmetic_of(Op::subtract, 0, run(node.child(0)).json()));
      case Op::not_:
        return Value::made(!truth_of(run(node.child(0)).json()));
      case Op::and_:
      case Op::or_:
        return Value::made(logic(node, node.op == Op::or_));
      case Op::choose:
        return run(node.child(truth_of(run(node.child(0)).json()) ? 1 : 2));
      case Op::all:
      case Op::exists:
      case Op::exists_one:
      case Op::filter:
      case Op::map:
        return macro(node);
      default:
        return call(node);
    }
  }

 private:
  struct Name {
    std::string_view name;
    Value value;
  };

  void spend(std::size_t steps) {
    if (steps > left_) stop("the rule takes too many steps");
    left_ -= steps;
  }

  Value lookup(std::string_view name) const {
    for (auto at = names_.rbegin(); at != names_.rend(); ++at)
      if (at->name == name) return at->value;
    stop(fmt::format("undeclared reference to '{}'", name));
  }

  Value field(const Node& node) {
    const Value object = run(node.child(0));
    if (!object.json().is_object()) stop("no such overload");
    const Json* member = object.json().get_object().if_contains(node.text);
    if (!member) stop(fmt::format("no such key: {}", node.text));
    return object.part(*member);
  }

  static Value index(const Value& from, const Value& at) {
    if (const JsonArray* array = from.json().if_array()) {
      const std::int64_t number = integer_of(at.json());
      if (number < 0 || static_cast<std::uint64_t>(number) >= array->size())
        stop(fmt::format("index out of bounds: {}", number));
      return from.part((*array)[static_cast<std::size_t>(number)]);
    }
    if (!from.json().is_object()) stop("no such overload");
    const Json* member = from.json().get_object().if_contains(text_of(at.json()));
    if (!member) stop(fmt::format("no such key: {}", text_of(at.json())));
    return from.part(*member);
  }

  Value list(const Node& node) {
    JsonArray items;
    for (std::size_t i = 0; i < node.children.size(); ++i)
      items.push_back(copy(run(node.child(i)).json()));
    return Value::made(std::move(items));
  }

  bool has(const Node& selected) {
    const Value object = run(selected.child(0));
    if (!object.json().is_object()) stop("no such overload");
    return object.json().get_object().contains(selected.text);
  }

  // The side that decides wins, even if the other one cannot be computed.
  bool logic(const Node& node, bool deciding) {
    try {
      if (truth_of(run(node.child(0)).json()) == deciding) return deciding;
    } catch (const Error&) {
      if (truth_of(run(node.child(1)).json()) == deciding) return deciding;
      throw;
    }
    return truth_of(run(node.child(1)).json());
  }

  Value macro(const Node& node) {
    const Value range = run(node.child(0));
    std::vector<Value> items;
    if (const JsonArray* array = range.json().if_array()) {
      for (const Json& item : *array) items.push_back(range.part(item));
    } else if (const JsonObject* object = range.json().if_object()) {
      for (const auto& member : *object)
        items.push_back(Value::made(boost::json::string(member.key())));
    } else {
      stop("no such overload");
    }
    spend(items.size());
    return over(node, items);
  }

  Value over(const Node& node, const std::vector<Value>& items) {
    JsonArray chosen;
    std::size_t holding = 0;
    std::string problem;
    for (const Value& item : items) {
      names_.push_back({node.text, item});
      const auto forget = [this] { names_.pop_back(); };
      try {
        const Value result = run(node.child(1));
        if (node.op == Op::map) {
          chosen.push_back(copy(result.json()));
        } else if (truth_of(result.json())) {
          ++holding;
          if (node.op == Op::filter) chosen.push_back(copy(item.json()));
        } else if (node.op == Op::all) {
          forget();
          return Value::made(false);
        }
      } catch (const Error& error) {
        forget();
        // Another element may still decide.
        if (left_ == 0 || (node.op != Op::all && node.op != Op::exists)) throw;
        problem = error.what();
        continue;
      }
      forget();
      if (node.op == Op::exists && holding > 0) return Value::made(true);
    }
    if (!problem.empty()) stop(problem);
    if (node.op == Op::filter || node.op == Op::map) return Value::made(std::move(chosen));
    if (node.op == Op::exists_one) return Value::made(holding == 1);
    return Value::made(node.op == Op::all);
  }

  Value call(const Node& node) {
    const Value left = run(node.child(0));
    if (node.children.size() == 1) return Value::made(unary(node.op, left.json()));
    const Value right = run(node.child(1));
    return Value::made(binary(node.op, left.json(), right.json()));
  }

  Json unary(Op op, const Json& json) {
    switch (op) {
      case Op::size:
        return std::int64_t(size_of(json));
      case Op::to_int:
        return to_integer(json);
      case Op::to_string:
        return to_text(json);
      case Op::lower: {
        boost::json::string text(text_of(json));
        spend(text.size() / kBytesPerStep);
        for (char& c : text)
          if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        return text;
      }
      default:
        stop("no such overload");
    }
  }

  std::size_t size_of(const Json& json) {
    if (const JsonArray* array = json.if_array()) return array->size();
    if (const JsonObject* object = json.if_object()) return object->size();
    spend(text_of(json).size() / kBytesPerStep);
    return count_characters(text_of(json));
  }

  Json binary(Op op, const Json& left, const Json& right) {
    switch (op) {
      case Op::equal:
        return same(left, right);
      case Op::not_equal:
        return !same(left, right);
      case Op::less:
        return order(left, right) < 0;
      case Op::less_equal:
        return order(left, right) <= 0;
      case Op::greater:
        return order(left, right) > 0;
      case Op::greater_equal:
        return order(left, right) >= 0;
      case Op::in:
        return contains(right, left);
      case Op::starts_with:
        return text_of(left).starts_with(text_of(right));
      case Op::ends_with:
        return text_of(left).ends_with(text_of(right));
      case Op::contains:
        spend(text_of(left).size() / kBytesPerStep * (1 + text_of(right).size() / kBytesPerStep));
        return text_of(left).find(text_of(right)) != std::string_view::npos;
      case Op::matches:
        spend(text_of(left).size() / kBytesPerStep * 4);
        return matches(text_of(right), text_of(left));
      default:
        return arithmetic(op, left, right);
    }
  }

  Json arithmetic(Op op, const Json& left, const Json& right) {
    if (left.is_number() && right.is_number()) return arithmetic_of(op, left, right);
    if (op != Op::add) stop("no such overload");
    if (left.is_string() && right.is_string()) {
      spend((text_of(left).size() + text_of(right).size()) / kBytesPerStep);
      boost::json::string text(text_of(left));
      text.append(text_of(right));
      return text;
    }
    if (!left.is_array() || !right.is_array()) stop("no such overload");
    Json joined = copy(left);
    for (const Json& item : right.get_array()) joined.get_array().push_back(copy(item));
    return joined;
  }

  bool contains(const Json& range, const Json& wanted) {
    if (const JsonObject* object = range.if_object()) return object->contains(text_of(wanted));
    if (!range.is_array()) stop("no such overload");
    for (const Json& item : range.get_array())
      if (same(item, wanted)) return true;
    return false;
  }

  // As model::is_same, but each part is counted: rules may compare in loops.
  bool same(const Json& left, const Json& right) {
    spend(1);
    if (left.is_array() && right.is_array()) {
      const JsonArray& a = left.get_array();
      const JsonArray& b = right.get_array();
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [this](const Json& x, const Json& y) { return same(x, y); });
    }
    if (left.is_object() && right.is_object()) {
      const JsonObject& a = left.get_object();
      const JsonObject& b = right.get_object();
      return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& member) {
               const Json* other = b.if_contains(member.key());
               return other && same(member.value(), *other);
             });
    }
    if (left.is_string()) spend(left.get_string().size() / kBytesPerStep);
    return model::is_same(left, right);
  }

  Json copy(const Json& json) {
    count(json);
    return json;
  }

  void count(const Json& json) {
    spend(1);
    if (json.is_string()) spend(json.get_string().size() / kBytesPerStep);
    if (const JsonArray* array = json.if_array())
      for (const Json& item : *array) count(item);
    if (const JsonObject* object = json.if_object())
      for (const auto& member : *object) {
        spend(member.key().size() / kBytesPerStep);
        count(member.value());
      }
  }

  std::vector<Name> names_;
  std::size_t left_ = kMostSteps;
};

}  // namespace

bool uses_old_self(const CelProgram& program) {
  return program.uses_old_self;
}

bool evaluate_cel(const CelProgram& program, const Json& self, const Json* old_self) {
  return truth_of(Evaluator(self, old_self).run(*program.root).json());
}

}  // namespace hearth::schema
