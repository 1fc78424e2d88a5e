// From the openAPIV3Schema of a CRD to a Schema. What a real server refuses as not structural is
// refused here, and so is what this server cannot hold objects to.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "schema/builtin.h"
#include "schema/cel.h"
#include "schema/schema.h"
#include "schema/words.h"

namespace hearth::schema {
namespace {

using model::JsonArray;
using model::JsonObject;

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"object", Type::object},   {"array", Type::array},   {"string", Type::string},
    {"integer", Type::integer}, {"number", Type::number}, {"boolean", Type::boolean},
};

// Words of JSON Schema that structural schemas may not have.
constexpr std::string_view kForbidden[] = {
    "$ref",          "definitions", "dependencies", "id",  "deprecated",     "patternProperties",
    "discriminator", "readOnly",    "writeOnly",    "xml", "additionalItems"};

std::string_view view(const boost::json::string& text) {
  return {text.data(), text.size()};
}

class Parser {
 public:
  SchemaPtr parse_root(const Json& json) {
    path_ = "openAPIV3Schema";
    auto schema = std::make_shared<Schema>(*parse(json, false));
    if (schema->type != Type::object) refuse("type must be 'object' at the root");
    add_resource_fields(*schema);
    schema->source = json;
    return schema;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail(Code::invalid, "{}: {}", path_, why);
  }

  template <typename Work>
  auto below(std::string_view step, Work work) {
    const std::size_t length = path_.size();
    path_.append(step);
    auto result = work();
    path_.resize(length);
    return result;
  }

  // `is_part`: an element of allOf and its kin, which only adds conditions.
  SchemaPtr parse(const Json& json, bool is_part) {
    const JsonObject* object = json.if_object();
    if (!object) refuse("must be an object");
    for (const auto word : kForbidden)
      if (object->contains(word)) refuse(fmt::format("'{}' is not supported", word));
    Schema schema;
    read_type(schema, *object, is_part);
    read_extensions(schema, *object);
    read_children(schema, *object, is_part);
    read_conditions(schema, *object);
    read_parts(schema, *object);
    read_rules(schema, *object);
    check_structure(schema, is_part);
    if (schema.embedded_resource) add_resource_fields(schema);
    if (const Json* value = object->if_contains("default")) {
      schema.default_value = *value;
      check_default(schema);
    }
    return shared(std::move(schema));
  }

  void read_type(Schema& schema, const JsonObject& object, bool is_part) {
    schema.description = text(object, "description");
    schema.format = text(object, "format");
    schema.nullable = flag(object, "nullable");
    schema.int_or_string = flag(object, "x-kubernetes-int-or-string");
    schema.preserve_unknown = flag(object, "x-kubernetes-preserve-unknown-fields");
    schema.embedded_resource = flag(object, "x-kubernetes-embedded-resource");
    const std::string name = text(object, "type");
    if (name.empty()) {
      if (!is_part && !schema.int_or_string && !schema.preserve_unknown) refuse("type is required");
      return;
    }
    if (schema.int_or_string) refuse("type must be left out beside x-kubernetes-int-or-string");
    for (const auto& [known, type] : kTypes)
      if (known == name) schema.type = type;
    if (schema.type == Type::any) refuse(fmt::format("type '{}' is not supported", name));
  }

  void read_extensions(Schema& schema, const JsonObject& object) {
    const std::string list_type = text(object, "x-kubernetes-list-type");
    if (schema.type == Type::array) schema.grain = Grain::atomic;
    if (!list_type.empty() && schema.type != Type::array)
      refuse("x-kubernetes-list-type is for arrays");
    if (list_type == "set") {
      schema.grain = Grain::set;
    } else if (list_type == "map") {
      schema.grain = Grain::keyed;
      schema.list_keys = texts(object, "x-kubernetes-list-map-keys");
      if (schema.list_keys.empty()) refuse("x-kubernetes-list-map-keys is required for a 'map'");
    } else if (!list_type.empty() && list_type != "atomic") {
      refuse(fmt::format("x-kubernetes-list-type '{}' is not supported", list_type));
    }
    const std::string map_type = text(object, "x-kubernetes-map-type");
    if (map_type == "atomic")
      schema.grain = Grain::atomic;
    else if (!map_type.empty() && map_type != "granular")
      refuse(fmt::format("x-kubernetes-map-type '{}' is not supported", map_type));
  }

  void read_children(Schema& schema, const JsonObject& object, bool is_part) {
    if (const Json* properties = object.if_contains("properties")) {
      if (!properties->is_object()) refuse("properties must be an object");
      for (const auto& [key, child] : properties->get_object()) {
        SchemaPtr made = below(fmt::format(".properties[{}]", view_of(key)),
                               [&] { return parse(child, is_part); });
        schema.has_rules |= made->has_rules;
        schema.properties.emplace(key, std::move(made));
      }
    }
    if (const Json* additional = object.if_contains("additionalProperties")) {
      if (!schema.properties.empty())
        refuse("additionalProperties is not allowed beside properties");
      if (additional->is_bool()) {
        Schema anything;
        anything.preserve_unknown = true;
        if (additional->get_bool()) schema.additional = shared(std::move(anything));
      } else {
        schema.additional =
            below(".additionalProperties", [&] { return parse(*additional, is_part); });
        schema.has_rules |= schema.additional->has_rules;
      }
    }
    if (const Json* items = object.if_contains("items")) {
      schema.items = below(".items", [&] { return parse(*items, is_part); });
      schema.has_rules |= schema.items->has_rules;
    }
    schema.required = texts(object, "required");
  }

  void read_conditions(Schema& schema, const JsonObject& object) {
    if (const Json* allowed = object.if_contains("enum")) {
      if (!allowed->is_array()) refuse("enum must be an array");
      schema.allowed.assign(allowed->get_array().begin(), allowed->get_array().end());
    }
    schema.pattern = text(object, "pattern");
    if (!schema.pattern.empty()) {
      try {
        check_pattern(schema.pattern);
      } catch (const Error& error) {
        refuse(error.what());
      }
    }
    schema.minimum = number(object, "minimum");
    schema.maximum = number(object, "maximum");
    schema.exclusive_minimum = flag(object, "exclusiveMinimum");
    schema.exclusive_maximum = flag(object, "exclusiveMaximum");
    schema.multiple_of = number(object, "multipleOf");
    if (schema.multiple_of && *schema.multiple_of <= 0) refuse("multipleOf must be positive");
    schema.min_length = count(object, "minLength");
    schema.max_length = count(object, "maxLength");
    schema.min_items = count(object, "minItems");
    schema.max_items = count(object, "maxItems");
    schema.min_properties = count(object, "minProperties");
    schema.max_properties = count(object, "maxProperties");
    schema.unique_items = flag(object, "uniqueItems");
  }

  void read_parts(Schema& schema, const JsonObject& object) {
    schema.all_of = parts(object, "allOf");
    schema.any_of = parts(object, "anyOf");
    schema.one_of = parts(object, "oneOf");
    if (const Json* inner = object.if_contains("not"))
      schema.not_ = below(".not", [&] { return parse(*inner, true); });
  }

  std::vector<SchemaPtr> parts(const JsonObject& object, std::string_view name) {
    std::vector<SchemaPtr> result;
    const Json* list = object.if_contains(name);
    if (!list) return result;
    if (!list->is_array()) refuse(fmt::format("{} must be an array", name));
    for (const Json& part : list->get_array())
      result.push_back(
          below(fmt::format(".{}[{}]", name, result.size()), [&] { return parse(part, true); }));
    return result;
  }

  void read_rules(Schema& schema, const JsonObject& object) {
    const Json* list = object.if_contains("x-kubernetes-validations");
    if (!list) return;
    if (!list->is_array()) refuse("x-kubernetes-validations must be an array");
    for (const Json& item : list->get_array()) {
      const JsonObject* one = item.if_object();
      if (!one) refuse("x-kubernetes-validations must hold objects");
      Rule rule{.rule = text(*one, "rule"),
                .message = text(*one, "message"),
                .field_path = text(*one, "fieldPath"),
                .reason = text(*one, "reason")};
      if (flag(*one, "optionalOldSelf")) refuse("optionalOldSelf is not supported");
      try {
        rule.program = compile_cel(rule.rule);
      } catch (const Error& error) {
        refuse(fmt::format("x-kubernetes-validations[{}].rule: {}", schema.rules.size(),
                           error.what()));
      }
      schema.rules.push_back(std::move(rule));
      schema.has_rules = true;
    }
  }

  void check_structure(const Schema& schema, bool is_part) const {
    if (is_part) return;
    if (schema.type == Type::array && !schema.items) refuse("items is required for an array");
    if (schema.embedded_resource && schema.type != Type::object)
      refuse("x-kubernetes-embedded-resource is for objects");
    if (schema.grain != Grain::keyed) return;
    if (schema.items->type != Type::object)
      refuse("items must be objects in a list of x-kubernetes-list-type 'map'");
    for (const std::string& key : schema.list_keys) {
      const auto property = schema.items->properties.find(key);
      if (property == schema.items->properties.end())
        refuse(fmt::format("key '{}' is not among the items' properties", key));
      const auto& required = schema.items->required;
      if (!property->second->default_value &&
          std::find(required.begin(), required.end(), key) == required.end())
        refuse(fmt::format("key '{}' must be required or have a default", key));
    }
  }

  void check_default(const Schema& schema) const {
    Json filled = *schema.default_value;
    apply_defaults(filled, schema);
    const auto errors = validate(filled, schema, nullptr);
    if (!errors.empty()) refuse(fmt::format("default does not fit: {}", errors.front().detail));
  }

  // apiVersion, kind and metadata, as all objects have them.
  void add_resource_fields(Schema& schema) {
    const auto given = schema.properties.find("metadata");
    const SchemaPtr restricted = given == schema.properties.end() ? nullptr : given->second;
    auto metadata = std::make_shared<Schema>(object_meta());
    if (restricted) {
      for (const std::string_view name : {"name", "generateName"})
        if (const auto at = restricted->properties.find(name); at != restricted->properties.end())
          metadata->properties[std::string(name)] = at->second;
    }
    schema.properties["metadata"] = std::move(metadata);
    Schema word;
    word.type = Type::string;
    for (const char* name : {"apiVersion", "kind"})
      schema.properties.try_emplace(name, shared(word));
  }

  // Half of all schemas say no more than a type: they share one each.
  SchemaPtr shared(Schema schema) {
    const bool is_plain =
        schema.properties.empty() && !schema.additional && !schema.items &&
        schema.description.empty() && schema.required.empty() && !schema.default_value &&
        schema.allowed.empty() && schema.pattern.empty() && !schema.minimum && !schema.maximum &&
        !schema.multiple_of && !schema.min_length && !schema.max_length && !schema.min_properties &&
        !schema.max_properties && !schema.nullable && !schema.int_or_string &&
        !schema.preserve_unknown && !schema.embedded_resource && schema.all_of.empty() &&
        schema.any_of.empty() && schema.one_of.empty() && !schema.not_ && schema.rules.empty() &&
        schema.type != Type::array && schema.type != Type::object;
    if (!is_plain) return std::make_shared<const Schema>(std::move(schema));
    SchemaPtr& known = plain_[{schema.type, schema.format}];
    if (!known) known = std::make_shared<const Schema>(std::move(schema));
    return known;
  }

  static std::string_view view_of(boost::json::string_view text) {
    return {text.data(), text.size()};
  }

  std::string text(const JsonObject& object, std::string_view name) const {
    const Json* value = object.if_contains(name);
    if (!value) return {};
    if (!value->is_string()) refuse(fmt::format("{} must be a string", name));
    return std::string(view(value->get_string()));
  }

  std::vector<std::string> texts(const JsonObject& object, std::string_view name) const {
    std::vector<std::string> result;
    const Json* value = object.if_contains(name);
    if (!value) return result;
    if (!value->is_array()) refuse(fmt::format("{} must be an array", name));
    for (const Json& one : value->get_array()) {
      if (!one.is_string()) refuse(fmt::format("{} must hold strings", name));
      result.emplace_back(view(one.get_string()));
    }
    return result;
  }

  bool flag(const JsonObject& object, std::string_view name) const {
    const Json* value = object.if_contains(name);
    if (value && !value->is_bool()) refuse(fmt::format("{} must be true or false", name));
    return value && value->get_bool();
  }

  std::optional<double> number(const JsonObject& object, std::string_view name) const {
    const Json* value = object.if_contains(name);
    if (!value) return std::nullopt;
    if (!value->is_number()) refuse(fmt::format("{} must be a number", name));
    return value->to_number<double>();
  }

  std::optional<std::uint64_t> count(const JsonObject& object, std::string_view name) const {
    const Json* value = object.if_contains(name);
    if (!value) return std::nullopt;
    const auto whole = model::as_integer(*value);
    if (!whole || *whole < 0) refuse(fmt::format("{} must be a number that is not negative", name));
    return static_cast<std::uint64_t>(*whole);
  }

  std::string path_;
  std::map<std::pair<Type, std::string>, SchemaPtr> plain_;
};

}  // namespace

SchemaPtr parse_schema(const Json& open_api_v3) {
  return Parser().parse_root(open_api_v3);
}

}  // namespace hearth::schema
