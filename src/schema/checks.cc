#include "schema/checks.h"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_text.h"
#include "schema/cel.h"

namespace hearth::schema {
namespace {

using model::FieldError;
using model::FieldProblem;
using model::JsonArray;
using model::JsonObject;

// Of a value or a path in a message.
constexpr std::size_t kLongestText = 1024;

// Lists whose elements, or whose elements' keys, must differ.
class ListCheck {
 public:
  explicit ListCheck(std::vector<FieldError>& errors) : errors_(errors) {}

  void check(const Json& value, const Schema& schema, model::Touched touched) {
    if (errors_.size() >= kMostErrors) return;
    if (const JsonObject* object = value.if_object()) {
      for (const auto& [key, member] : *object) {
        if (!member.is_structured()) continue;
        const auto below = touched.member(view(key));
        if (!below) continue;
        const auto named = schema.properties.find(view(key));
        const bool is_named = named != schema.properties.end();
        const Schema* known = is_named ? named->second.get() : schema.additional.get();
        if (!known) continue;
        const auto step = is_named ? path_.member(view(key)) : path_.key(view(key));
        check(member, *known, *below);
      }
    } else if (const JsonArray* array = value.if_array(); array && schema.items) {
      check_elements(*array, schema);
    }
  }

 private:
  void check_elements(const JsonArray& array, const Schema& schema) {
    const bool must_differ =
        array.size() > 1 && (schema.grain == Grain::set || schema.grain == Grain::keyed);
    std::map<std::string, int> seen;
    std::size_t index = 0;
    for (const Json& item : array) {
      const auto step = path_.index(index++);
      if (must_differ) {
        std::string key = model::to_text(schema.grain == Grain::set ? item : key_of(item, schema));
        // Once for each value, at its first repetition.
        if (++seen[key] == 2) errors_.push_back(model::duplicate(path_.text(), clipped(key)));
      }
      check(item, *schema.items, {});
    }
  }

  static Json key_of(const Json& item, const Schema& schema) {
    JsonObject key;
    if (const JsonObject* object = item.if_object())
      for (const std::string& name : schema.list_keys)
        if (const Json* value = object->if_contains(name)) key.emplace(name, *value);
    return key;
  }

  std::vector<FieldError>& errors_;
  FieldPath path_;
};

// x-kubernetes-validations.
class RuleCheck {
 public:
  explicit RuleCheck(std::vector<FieldError>& errors) : errors_(errors) {}

  void check(const Json& value, const Json* old, const Schema& schema) {
    if (errors_.size() >= kMostErrors || !schema.has_rules || value.is_null()) return;
    for (const Rule& rule : schema.rules) check_rule(rule, value, old, schema);
    if (const JsonObject* object = value.if_object()) {
      for (const auto& [key, member] : *object) {
        const Schema* known = member_schema(schema, view(key));
        if (!known || !known->has_rules) continue;
        const bool is_named = schema.properties.contains(view(key));
        const auto step = is_named ? path_.member(view(key)) : path_.key(view(key));
        check(member, old ? model::find(*old, {view(key)}) : nullptr, *known);
      }
    } else if (const JsonArray* array = value.if_array(); array && schema.items) {
      std::size_t index = 0;
      for (const Json& item : *array) {
        const auto step = path_.index(index++);
        check(item, old ? old_element(item, *old, schema) : nullptr, *schema.items);
      }
    }
  }

 private:
  void check_rule(const Rule& rule, const Json& value, const Json* old, const Schema& schema) {
    if (uses_old_self(*rule.program) && !old) return;
    const std::string what = rule.message.empty() ? rule.rule : rule.message;
    try {
      if (evaluate_cel(*rule.program, value, old)) return;
    } catch (const Error& error) {
      errors_.push_back(model::invalid(path_.text(), json_quote(type_name(schema.type)),
                                       fmt::format("{} evaluating rule: {}", error.what(), what)));
      return;
    }
    add(rule, rule.message.empty() ? "failed rule: " + rule.rule : rule.message, value);
  }

  void add(const Rule& rule, const std::string& detail, const Json& value) {
    std::string field = path_.text() + rule.field_path;
    if (field.starts_with('.')) field.erase(0, 1);
    if (rule.reason == "FieldValueForbidden") {
      errors_.push_back(model::forbidden(field, detail));
    } else if (rule.reason == "FieldValueRequired") {
      errors_.push_back(model::required(field, detail));
    } else if (rule.reason == "FieldValueDuplicate") {
      errors_.push_back(model::duplicate(field, text_of(value)));
    } else if (value.is_object() || value.is_array()) {
      errors_.push_back({FieldProblem::invalid, field, "Invalid value: " + detail});
    } else {
      errors_.push_back(model::invalid(field, text_of(value), detail));
    }
  }

  std::vector<FieldError>& errors_;
  FieldPath path_;
};

}  // namespace

const Json* old_element(const Json& item, const Json& old, const Schema& schema) {
  const JsonArray* olds = old.if_array();
  constexpr std::size_t kLong = 256;
  if (!olds || schema.grain != Grain::keyed || olds->size() > kLong) return nullptr;
  for (const Json& candidate : *olds) {
    bool same = true;
    for (const std::string& key : schema.list_keys) {
      const Json* a = model::find(item, {key});
      const Json* b = model::find(candidate, {key});
      same = same && a && b && model::is_same(*a, *b);
    }
    if (same) return &candidate;
  }
  return nullptr;
}

std::string clipped(std::string text) {
  if (text.size() <= kLongestText) return text;
  text.resize(kLongestText);
  while (!text.empty() && (text.back() & 0xC0) == 0x80) text.pop_back();
  return text + "...";
}

std::string text_of(double number) {
  if (std::trunc(number) == number && std::abs(number) < 1e18)
    return std::to_string(static_cast<long long>(number));
  return fmt::format("{}", number);
}

std::string text_of(const Json& value) {
  return value.is_double() ? text_of(value.get_double()) : clipped(model::to_text(value));
}

std::string_view type_name(Type type) {
  constexpr std::string_view kNames[] = {"",        "object", "array",  "string",
                                         "integer", "number", "boolean"};
  return kNames[static_cast<int>(type)];
}

FieldPath::Step FieldPath::member(std::string_view name) {
  const std::size_t length = text_.size();
  if (!text_.empty()) text_ += '.';
  text_.append(name);
  return {text_, length};
}

FieldPath::Step FieldPath::index(std::size_t number) {
  const std::size_t length = text_.size();
  fmt::format_to(std::back_inserter(text_), "[{}]", number);
  return {text_, length};
}

FieldPath::Step FieldPath::key(std::string_view name) {
  const std::size_t length = text_.size();
  text_.append("[").append(name).append("]");
  return {text_, length};
}

void check_lists(const Json& object, const Schema& schema, model::Touched touched,
                 std::vector<FieldError>& errors) {
  ListCheck(errors).check(object, schema, touched);
}

void check_rules(const Json& object, const Json* old, const Schema& schema,
                 std::vector<FieldError>& errors) {
  RuleCheck(errors).check(object, old, schema);
}

}  // namespace hearth::schema
