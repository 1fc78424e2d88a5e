#include "apiserver/open_api_schemas.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::apiserver {
namespace {

using model::JsonArray;
using model::JsonObject;
using schema::Grain;
using schema::Schema;
using schema::Type;

// "io.x-k8s.agents.v1beta1.Sandbox": the group from its end, as kube-apiserver names them.
std::string custom_name(const Resource& resource) {
  std::string name;
  std::string_view rest = resource.group;
  while (!rest.empty()) {
    const std::size_t dot = rest.rfind('.');
    name.append(dot == std::string_view::npos ? rest : rest.substr(dot + 1)).append(".");
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(0, dot);
  }
  return name + resource.version + "." + resource.kind;
}

Json reference(std::string_view name) {
  return JsonObject{{"$ref", "#/components/schemas/" + std::string(name)}};
}

Json group_version_kinds(const Resource& resource) {
  return JsonArray{JsonObject{
      {"group", resource.group}, {"kind", resource.kind}, {"version", resource.version}}};
}

std::string_view type_text(Type type) {
  switch (type) {
    case Type::object:
      return "object";
    case Type::array:
      return "array";
    case Type::string:
      return "string";
    case Type::integer:
      return "integer";
    case Type::number:
      return "number";
    case Type::boolean:
      return "boolean";
    case Type::any:
      break;
  }
  return {};
}

JsonArray to_array(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

template <typename Number>
void put_if(JsonObject& out, std::string_view name, const std::optional<Number>& value) {
  if (value) out[name] = *value;
}

}  // namespace

std::string OpenApiSchemas::add(const Resource& resource) {
  const bool is_named = resource.schema && !resource.schema->name.empty();
  const std::string name =
      resource.built_in && is_named ? resource.schema->name : custom_name(resource);
  schemas_[name] = nullptr;  // so that nobody describes it without its kind
  Json schema = resource.built_in ? write_built_in(resource) : write_custom(resource);
  schema.as_object()["x-kubernetes-group-version-kind"] = group_version_kinds(resource);
  schemas_[name] = std::move(schema);
  return name;
}

Json OpenApiSchemas::take() {
  JsonObject all;
  for (auto& [name, schema] : schemas_) all[name] = std::move(schema);
  schemas_.clear();
  return all;
}

Json OpenApiSchemas::write_built_in(const Resource& resource) {
  if (!resource.schema) return JsonObject{{"type", "object"}};
  return write(*resource.schema);
}

// A CRD's schema as it came, with what all objects have.
Json OpenApiSchemas::write_custom(const Resource& resource) {
  Json schema = resource.schema && resource.schema->source ? *resource.schema->source
                : resource.schema                          ? Json(write(*resource.schema))
                                                           : Json(JsonObject());
  if (!schema.is_object()) schema = JsonObject();
  schema.as_object()["type"] = "object";
  JsonObject& properties = model::make_object_at(schema, {"properties"});
  for (const std::string_view name : {"apiVersion", "kind"})
    if (!properties.contains(name)) properties[name] = JsonObject{{"type", "string"}};
  properties["metadata"] = JsonObject{{"description", object_meta_.description},
                                      {"allOf", JsonArray{refer(object_meta_, false)}}};
  return schema;
}

Json OpenApiSchemas::refer(const Schema& schema, bool is_member) {
  if (schema.name.empty()) return write(schema);
  if (!schemas_.contains(schema.name)) {
    schemas_[schema.name] = nullptr;  // ends types that contain themselves
    JsonObject type = write(schema);
    if (is_member)
      for (const char* of_the_place : {"description", "default"}) type.erase(of_the_place);
    schemas_[schema.name] = std::move(type);
  }
  if (!is_member) return reference(schema.name);
  JsonObject member{{"allOf", JsonArray{reference(schema.name)}}};
  if (!schema.description.empty()) member["description"] = schema.description;
  if (schema.default_value) member["default"] = *schema.default_value;
  write_extensions(schema, member);
  return member;
}

JsonObject OpenApiSchemas::write(const Schema& schema) {
  JsonObject out;
  if (!schema.description.empty()) out["description"] = schema.description;
  write_type(schema, out);
  write_members(schema, out);
  write_limits(schema, out);
  write_extensions(schema, out);
  return out;
}

void OpenApiSchemas::write_type(const Schema& schema, JsonObject& out) const {
  if (schema.int_or_string) {
    out["format"] = "int-or-string";
    out["oneOf"] = JsonArray{JsonObject{{"type", "integer"}}, JsonObject{{"type", "string"}}};
    out["x-kubernetes-int-or-string"] = true;
    return;
  }
  if (const std::string_view type = type_text(schema.type); !type.empty()) out["type"] = type;
  if (!schema.format.empty()) out["format"] = schema.format;
  if (schema.nullable) out["nullable"] = true;
  if (schema.default_value) out["default"] = *schema.default_value;
  if (!schema.allowed.empty())
    out["enum"] = JsonArray(schema.allowed.begin(), schema.allowed.end());
}

void OpenApiSchemas::write_members(const Schema& schema, JsonObject& out) {
  if (!schema.properties.empty()) {
    JsonObject properties;
    for (const auto& [name, member] : schema.properties) properties[name] = refer(*member, true);
    out["properties"] = std::move(properties);
  }
  if (schema.additional) out["additionalProperties"] = refer(*schema.additional, false);
  if (schema.items) out["items"] = refer(*schema.items, false);
  if (!schema.required.empty()) out["required"] = to_array(schema.required);
  const auto put_all = [&](std::string_view name, const std::vector<schema::SchemaPtr>& schemas) {
    if (schemas.empty()) return;
    JsonArray all;
    for (const auto& one : schemas) all.push_back(refer(*one, false));
    out[name] = std::move(all);
  };
  put_all("allOf", schema.all_of);
  put_all("anyOf", schema.any_of);
  if (!schema.int_or_string) put_all("oneOf", schema.one_of);
  if (schema.not_) out["not"] = refer(*schema.not_, false);
}

void OpenApiSchemas::write_limits(const Schema& schema, JsonObject& out) {
  if (!schema.pattern.empty()) out["pattern"] = schema.pattern;
  put_if(out, "minimum", schema.minimum);
  put_if(out, "maximum", schema.maximum);
  if (schema.exclusive_minimum) out["exclusiveMinimum"] = true;
  if (schema.exclusive_maximum) out["exclusiveMaximum"] = true;
  put_if(out, "multipleOf", schema.multiple_of);
  put_if(out, "minLength", schema.min_length);
  put_if(out, "maxLength", schema.max_length);
  put_if(out, "minItems", schema.min_items);
  put_if(out, "maxItems", schema.max_items);
  put_if(out, "minProperties", schema.min_properties);
  put_if(out, "maxProperties", schema.max_properties);
  if (schema.unique_items) out["uniqueItems"] = true;
}

void OpenApiSchemas::write_extensions(const Schema& schema, JsonObject& out) const {
  if (schema.type == Type::array) {
    out["x-kubernetes-list-type"] = schema.grain == Grain::set     ? "set"
                                    : schema.grain == Grain::keyed ? "map"
                                                                   : "atomic";
    if (schema.grain == Grain::keyed)
      out["x-kubernetes-list-map-keys"] = to_array(schema.list_keys);
  } else if (schema.grain == Grain::atomic) {
    out["x-kubernetes-map-type"] = "atomic";
  }
  if (!schema.patch_strategy.empty()) out["x-kubernetes-patch-strategy"] = schema.patch_strategy;
  if (!schema.patch_merge_key.empty()) out["x-kubernetes-patch-merge-key"] = schema.patch_merge_key;
  if (schema.preserve_unknown) out["x-kubernetes-preserve-unknown-fields"] = true;
  if (schema.embedded_resource) out["x-kubernetes-embedded-resource"] = true;
}

}  // namespace hearth::apiserver
