// Objects against schemas, with the wordings that people know from kube-apiserver: first what the
// schema says, then lists whose elements must differ, then the rules.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/json_text.h"
#include "model/member.h"
#include "schema/checks.h"
#include "schema/schema.h"
#include "schema/words.h"

namespace hearth::schema {
namespace {

using model::FieldError;
using model::FieldProblem;
using model::JsonArray;
using model::JsonObject;
using model::Touched;

std::string_view type_of(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return "integer";
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
  }
  return "";
}

// The format that numbers have by themselves.
std::string_view format_of(const Json& value) {
  if (!value.is_number()) return "";
  return value.is_double() ? "float64" : "int64";
}

bool fits_integer(const Json& value, std::string_view format) {
  const auto number = model::as_integer(value);
  return number && (format != "int32" || (*number >= INT32_MIN && *number <= INT32_MAX));
}

bool is_type(const Json& value, Type type) {
  switch (type) {
    case Type::any:
      return true;
    case Type::integer:
      return value.is_int64() || value.is_uint64() ||
             (value.is_double() && std::trunc(value.get_double()) == value.get_double());
    case Type::number:
      return value.is_number();
    default:
      return type_of(value) == type_name(type);
  }
}

bool has_duplicates(const JsonArray& array) {
  std::set<std::string> seen;
  for (const Json& item : array)
    if (!seen.insert(model::to_text(item)).second) return true;
  return false;
}

class SchemaCheck {
 public:
  std::vector<FieldError> errors;

  // `old` is what was there; null: nothing, or nothing that could be told. What has not changed is
  // not looked at again: a schema that has become stricter since keeps nobody from changing the
  // rest.
  void check(const Json& value, const Schema& schema, const Json* old = nullptr,
             Touched touched = {}) {
    if (errors.size() >= kMostErrors || (old && !touched.names() && model::is_same(value, *old)))
      return;
    const bool fits = check_type(value, schema);
    if (value.is_null()) {
      if (!schema.nullable) check_allowed(value, schema);
      return;
    }
    check_parts(value, schema);
    if (const auto* text = value.if_string()) {
      check_string(view(*text), schema, fits);
    } else if (value.is_number()) {
      check_number(value, schema);
    } else if (const JsonArray* array = value.if_array()) {
      check_array(*array, schema, old);
    }
    check_allowed(value, schema);
    if (const JsonObject* object = value.if_object())
      check_object(*object, schema, old ? old->if_object() : nullptr, touched);
  }

 private:
  void add(FieldProblem problem, std::string detail) {
    errors.push_back({problem, path_.text(), std::move(detail)});
  }

  // The usual sentence: value, then "FIELD in body SAYS".
  void add_invalid(std::string_view value, std::string_view says) {
    const std::string field = path_.text();
    errors.push_back(model::invalid(field, value, fmt::format("{} in body {}", field, says)));
  }

  // What concerns no single field.
  void add_general(std::string_view says) {
    errors.push_back(model::invalid("<nil>", "\"\"", says));
  }

  void add_type_error(std::string_view wanted, std::string_view found) {
    const std::string field = path_.text();
    const std::string quoted = json_quote(found);
    add(FieldProblem::type_invalid,
        fmt::format("Invalid value: {}: {} in body must be of type {}: {}", quoted, field, wanted,
                    quoted));
  }

  bool check_type(const Json& value, const Schema& schema) {
    if (value.is_null() && (schema.nullable || (schema.type == Type::any && !schema.int_or_string)))
      return true;
    if (schema.int_or_string) {
      if (value.is_string() || is_type(value, Type::integer)) return true;
      add_type_error("integer,string", type_of(value));
      return false;
    }
    if (is_type(value, schema.type)) return true;
    // Of a value with a format, the format is what is missed.
    const bool by_format =
        !schema.format.empty() && !value.is_null() && !value.is_string() && !value.is_array();
    if (by_format)
      add_type_error(schema.format, format_of(value));
    else
      add_type_error(type_name(schema.type), type_of(value));
    return false;
  }

  void check_parts(const Json& value, const Schema& schema) {
    if (!schema.any_of.empty()) check_any_of(value, schema);
    if (!schema.one_of.empty()) check_one_of(value, schema);
    if (!schema.all_of.empty()) {
      const std::size_t before = errors.size();
      std::size_t failed = 0;
      for (const SchemaPtr& part : schema.all_of) {
        const std::size_t so_far = errors.size();
        check(value, *part);
        if (errors.size() > so_far) ++failed;
      }
      if (errors.size() > before)
        add_general(fmt::format("{} must validate all the schemas (allOf){}",
                                json_quote(path_.text()),
                                failed == schema.all_of.size() ? ". None validated" : ""));
    }
    if (schema.not_ && errors_of(value, *schema.not_).empty())
      add_general(fmt::format("{} must not validate the schema (not)", json_quote(path_.text())));
  }

  std::vector<FieldError> errors_of(const Json& value, const Schema& schema) {
    std::vector<FieldError> others;
    errors.swap(others);
    check(value, schema);
    errors.swap(others);
    return others;
  }

  void add_all(std::vector<FieldError> more) {
    errors.insert(errors.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  }

  void check_any_of(const Json& value, const Schema& schema) {
    std::vector<FieldError> best;
    for (const SchemaPtr& part : schema.any_of) {
      auto problems = errors_of(value, *part);
      if (problems.empty()) return;
      if (best.empty() || problems.size() < best.size()) best = std::move(problems);
    }
    add_general(
        fmt::format("{} must validate at least one schema (anyOf)", json_quote(path_.text())));
    add_all(std::move(best));
  }

  void check_one_of(const Json& value, const Schema& schema) {
    std::vector<FieldError> best;
    std::size_t fitting = 0;
    for (const SchemaPtr& part : schema.one_of) {
      auto problems = errors_of(value, *part);
      if (problems.empty())
        ++fitting;
      else if (best.empty() || problems.size() < best.size())
        best = std::move(problems);
    }
    if (fitting == 1) return;
    add_general(fmt::format("{} must validate one and only one schema (oneOf). {}",
                            json_quote(path_.text()),
                            fitting == 0 ? std::string("Found none valid")
                                         : fmt::format("Found {} valid alternatives", fitting)));
    if (fitting == 0) add_all(std::move(best));
  }

  void check_string(std::string_view text, const Schema& schema, bool fits) {
    const auto quoted = [&] { return clipped(json_quote(text)); };
    if (schema.max_length && count_characters(text) > *schema.max_length) {
      add(FieldProblem::too_long,
          fmt::format("Too long: may not be more than {} {}", *schema.max_length,
                      *schema.max_length == 1 ? "byte" : "bytes"));
    } else if (schema.min_length && count_characters(text) < *schema.min_length) {
      add_invalid(quoted(), fmt::format("should be at least {} chars long", *schema.min_length));
    } else if (!schema.pattern.empty() && !matches(schema.pattern, text)) {
      add_invalid(quoted(), fmt::format("should match '{}'", schema.pattern));
    }
    if (fits && !schema.format.empty() && schema.type != Type::integer &&
        schema.type != Type::number && !is_of_format(schema.format, text)) {
      const std::string value = quoted();
      add(FieldProblem::type_invalid,
          fmt::format("Invalid value: {}: {} in body must be of type {}: {}", value, path_.text(),
                      schema.format, value));
    }
  }

  void check_number(const Json& value, const Schema& schema) {
    const double number = value.to_number<double>();
    if (schema.type == Type::integer && !fits_integer(value, schema.format))
      add_general(
          fmt::format("Checked value must be of type integer {} in {}",
                      schema.format.empty() ? "(default format)" : "with format " + schema.format,
                      path_.text()));
    if (schema.multiple_of && std::fmod(number, *schema.multiple_of) != 0)
      add_invalid(text_of(value),
                  fmt::format("should be a multiple of {}", text_of(*schema.multiple_of)));
    if (schema.minimum) {
      const bool exclusive = schema.exclusive_minimum;
      if (number < *schema.minimum || (exclusive && number == *schema.minimum))
        add_invalid(text_of(value),
                    fmt::format("should be greater than {}{}", exclusive ? "" : "or equal to ",
                                text_of(*schema.minimum)));
    }
    if (schema.maximum) {
      const bool exclusive = schema.exclusive_maximum;
      if (number > *schema.maximum || (exclusive && number == *schema.maximum))
        add_invalid(text_of(value),
                    fmt::format("should be less than {}{}", exclusive ? "" : "or equal to ",
                                text_of(*schema.maximum)));
    }
  }

  void check_array(const JsonArray& array, const Schema& schema, const Json* old) {
    if (schema.items) {
      std::size_t index = 0;
      for (const Json& item : array) {
        const auto step = path_.index(index++);
        check(item, *schema.items, old ? old_element(item, *old, schema) : nullptr);
      }
    }
    if (schema.min_items && array.size() < *schema.min_items)
      add_invalid(std::to_string(array.size()),
                  fmt::format("should have at least {} items", *schema.min_items));
    if (schema.max_items && array.size() > *schema.max_items)
      add_too_many(array.size(), *schema.max_items);
    if (schema.unique_items && has_duplicates(array))
      add_invalid("\"\"", "shouldn't contain duplicates");
  }

  void add_too_many(std::size_t count, std::uint64_t most) {
    add(FieldProblem::too_many, fmt::format("Too many: {}: must have at most {} {}", count, most,
                                            most == 1 ? "item" : "items"));
  }

  void check_allowed(const Json& value, const Schema& schema) {
    if (schema.allowed.empty()) return;
    std::vector<std::string> words;
    for (const Json& one : schema.allowed) {
      if (model::is_same(one, value)) return;
      words.push_back(one.is_string() ? std::string(view(one.get_string())) : text_of(one));
    }
    errors.push_back(model::not_supported(path_.text(), text_of(value), words));
  }

  void check_object(const JsonObject& object, const Schema& schema, const JsonObject* old,
                    Touched touched) {
    if (schema.min_properties && object.size() < *schema.min_properties)
      add_invalid(std::to_string(object.size()),
                  fmt::format("should have at least {} properties", *schema.min_properties));
    if (schema.max_properties && object.size() > *schema.max_properties)
      add_too_many(object.size(), *schema.max_properties);
    check_members(object, schema, old, touched);
    for (const std::string& name : schema.required) {
      if (object.contains(name)) continue;
      const auto step = path_.member(name);
      errors.push_back(model::required(path_.text()));
    }
  }

  // Errors are told of members that no property names first, then of the rest by their names.
  void check_members(const JsonObject& object, const Schema& schema, const JsonObject* old,
                     Touched touched) {
    struct Told {
      bool is_named = false;
      std::string_view name;  // none: they stay in the object's order
      std::size_t first = 0;
      std::vector<FieldError> errors;
    };
    std::vector<Told> told;  // usually nothing
    for (const auto& [key, value] : object) {
      const auto below = touched.member(view(key));
      if (!below) continue;
      const auto named = schema.properties.find(view(key));
      const bool is_named = named != schema.properties.end();
      const Schema* member = is_named ? named->second.get() : schema.additional.get();
      if (!member) continue;
      const std::size_t before = errors.size();
      check_member(view(key), value, *member, old, *below);
      if (errors.size() == before) continue;
      const auto first = errors.begin() + static_cast<std::ptrdiff_t>(before);
      told.push_back({is_named, is_named ? view(key) : "", before, {first, errors.end()}});
    }
    if (told.size() < 2) return;
    std::ranges::sort(told, {}, [](const Told& each) {
      return std::tuple(each.is_named, each.name, each.first);
    });
    for (const Told& each : told) errors.resize(errors.size() - each.errors.size());
    for (Told& each : told) add_all(std::move(each.errors));
  }

  void check_member(std::string_view name, const Json& value, const Schema& schema,
                    const JsonObject* old, Touched touched) {
    const auto step = path_.member(name);
    check(value, schema, old ? model::find_member(*old, name) : nullptr, touched);
  }

  FieldPath path_;
};

// After these, what rules would find is likely to be nonsense.
bool blocks_rules(const FieldError& error) {
  return error.problem == FieldProblem::not_supported || error.problem == FieldProblem::required ||
         error.problem == FieldProblem::too_long || error.problem == FieldProblem::too_many ||
         error.problem == FieldProblem::type_invalid;
}

}  // namespace

std::vector<FieldError> validate(const Json& object, const Schema& schema, const Json* old,
                                 Touched touched) {
  SchemaCheck check;
  check.check(object, schema, old, touched);
  std::vector<FieldError> errors = std::move(check.errors);
  check_lists(object, schema, touched, errors);
  if (errors.size() > kMostErrors) errors.resize(kMostErrors);
  if (!schema.has_rules) return errors;
  for (const FieldError& error : errors) {
    if (!blocks_rules(error)) continue;
    errors.push_back(model::invalid("<nil>", "null",
                                    "some validation rules were not checked because the object was "
                                    "invalid; correct the existing errors to complete validation"));
    return errors;
  }
  check_rules(object, old, schema, errors);
  return errors;
}

}  // namespace hearth::schema
