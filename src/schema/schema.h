// What objects of a kind look like: a structural OpenAPI v3 schema, and what follows from it.
//
// One description drives defaulting, pruning, validation, which lists merge by key (strategic
// merge, server-side apply), OpenAPI documents and, for built-in kinds, protobuf. Schemas are made
// once and shared; they never change afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"
#include "model/status.h"
#include "model/touched.h"

namespace hearth::schema {

using model::Json;

enum class Type { any, object, array, string, integer, number, boolean };

// How a list or a map is owned and merged (x-kubernetes-list-type, x-kubernetes-map-type).
enum class Grain {
  granular,  // of a map or struct: member by member
  atomic,    // as a whole
  set,       // of a list of scalars: value by value
  keyed,     // of a list of objects: by list_keys
};

struct Schema;
using SchemaPtr = std::shared_ptr<const Schema>;

class CelProgram;

struct Rule {  // x-kubernetes-validations
  std::string rule;
  std::string message;
  std::string field_path;
  std::string reason;
  std::shared_ptr<const CelProgram> program;
};

struct Schema {
  Type type = Type::any;
  std::string format;  // int32, int64, date-time, byte, ...
  std::string description;
  // The definition's name in OpenAPI documents ("io.k8s.api.core.v1.PodSpec"), for built-in types
  // that several kinds share; empty: written in place.
  std::string name;

  std::map<std::string, SchemaPtr, std::less<>> properties;
  SchemaPtr additional;  // what members that are not named look like; null: there are none
  SchemaPtr items;
  std::vector<std::string> required;

  std::optional<Json> default_value;
  std::vector<Json> allowed;  // enum; empty: anything
  std::string pattern;
  std::optional<double> minimum, maximum;
  bool exclusive_minimum = false, exclusive_maximum = false;
  std::optional<double> multiple_of;
  std::optional<std::uint64_t> min_length, max_length, min_items, max_items, min_properties,
      max_properties;
  bool unique_items = false;
  bool nullable = false;
  bool int_or_string = false;
  bool preserve_unknown = false;   // x-kubernetes-preserve-unknown-fields
  bool embedded_resource = false;  // x-kubernetes-embedded-resource
  std::vector<SchemaPtr> all_of, any_of, one_of;
  SchemaPtr not_;
  std::vector<Rule> rules;
  bool has_rules = false;  // here or anywhere below

  Grain grain = Grain::granular;       // lists are atomic unless they say otherwise
  std::vector<std::string> list_keys;  // of a keyed list
  // Built-in kinds only: "", 0, false, [] and {} say the same as nothing, and are not written.
  bool omits_zero = false;
  // Strategic merge, built-in kinds only: "merge", "replace", "retainKeys", "merge,retainKeys".
  std::string patch_strategy;
  std::string patch_merge_key;

  // The whole schema as it came, for OpenAPI documents; only at the root of a CRD's.
  std::optional<Json> source;
};

// A CRD version's openAPIV3Schema. apiVersion, kind and metadata of the object itself and of
// embedded resources are those of all kinds, whatever the schema says of them (metadata.name and
// metadata.generateName may be restricted). Throws Error(invalid) with the path of what is not
// structural or not supported.
SchemaPtr parse_schema(const Json& open_api_v3);

// The member's schema: the property, or what additional members look like; null for unknown ones.
const Schema* member_schema(const Schema& schema, std::string_view name);

// `touched`, here and below: the rest went through this before, with this schema.
//
// Fills in defaults, also below members that are there; null for a defaulted, not nullable member
// becomes the default; other nulls of not nullable members are dropped.
void apply_defaults(Json& value, const Schema& schema, model::Touched touched = {});

// Removes what a real server's types would not write again: see Schema::omits_zero. For built-in
// kinds, before defaults.
void drop_zero_values(Json& value, const Schema& schema);

// Removes members that the schema does not know, and tells their paths (a hundred of them), sorted,
// if asked: "spec.foo", "spec.containers[0].bar".
void prune(Json& object, const Schema& schema, std::vector<std::string>* unknown = nullptr,
           model::Touched touched = {});

// What is wrong with an object, in the words of kube-apiserver; the first hundred things. `old` is
// what it replaces, for rules that compare (null: it is new).
std::vector<model::FieldError> validate(const Json& object, const Schema& schema, const Json* old,
                                        model::Touched touched = {});

}  // namespace hearth::schema
