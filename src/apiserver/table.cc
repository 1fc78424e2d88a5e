#include "apiserver/table.h"

#include <fmt/format.h>

#include "apiserver/builtin_columns.h"
#include "base/error.h"
#include "model/age.h"

namespace hearth::apiserver {
namespace {

using model::array_at;
using model::JsonArray;
using model::JsonObject;
using model::text_at;

const JsonArray* items_of(const Json& value) {
  return array_at(value, {"items"});
}

std::string meta_api_version(std::string_view version) {
  return fmt::format("meta.k8s.io/{}", version);
}

// What a list says of itself; of an object its resourceVersion.
Json list_metadata(const Json& value) {
  JsonObject metadata;
  for (const std::string_view name : {"resourceVersion", "continue", "remainingItemCount"})
    if (const Json* member = model::find(value, {"metadata", name})) metadata[name] = *member;
  return metadata;
}

Json partial_metadata(const Json& object, std::string_view version) {
  JsonObject partial{{"kind", "PartialObjectMetadata"}, {"apiVersion", meta_api_version(version)}};
  const Json* metadata = model::find(object, {"metadata"});
  partial["metadata"] = metadata ? *metadata : Json(JsonObject());
  return partial;
}

Json definition(std::string_view name, std::string_view type, std::string_view format,
                std::string_view description, int priority) {
  return JsonObject{{"name", name},
                    {"type", type},
                    {"format", format},
                    {"description", description},
                    {"priority", priority}};
}

// A cell of a custom column: of the type that the column has, or null.
Json custom_cell(const Json& value, std::string_view type, Time now) {
  if (value.is_null()) return nullptr;
  const auto* text = value.if_string();
  if (type == "string") return text ? value : Json(model::to_text(value));
  if (type == "date")
    return text ? Json(model::age_since({text->data(), text->size()}, now)) : Json();
  if (type == "integer") {
    if (const double* number = value.if_double())
      return *number > -9e18 && *number < 9e18 ? Json(static_cast<std::int64_t>(*number)) : Json();
    return value.is_number() ? value : Json();
  }
  if (type == "number") return value.is_number() ? value : Json();
  if (type == "boolean") return value.is_bool() ? value : Json();
  return nullptr;
}

// Kinds that compute no cells and declare no columns.
std::vector<Column> usual_columns(const Resource& resource) {
  if (resource.built_in)
    return {{.name = "Created At", .type = "date", .json_path = ".metadata.creationTimestamp"}};
  return {{.name = "Age", .type = "date", .json_path = ".metadata.creationTimestamp"}};
}

std::string describe(const Column& column) {
  if (!column.description.empty()) return column.description;
  return fmt::format("Custom resource definition column (in JSONPath format): {}",
                     column.json_path);
}

// Items of built-in lists go without their type, which those who sort rows cannot do.
Json with_type(const Json& object, const Resource& resource) {
  Json typed = object;
  if (!typed.is_object()) return typed;
  typed.as_object()["kind"] = resource.kind;
  typed.as_object()["apiVersion"] = resource.api_version();
  return typed;
}

}  // namespace

RowObject parse_row_object(std::string_view text) {
  if (text == "None") return RowObject::none;
  if (text == "Object") return RowObject::object;
  if (text.empty() || text == "Metadata") return RowObject::metadata;
  model::throw_bad_request(
      fmt::format("includeObject: Invalid value: '{}': must be None, Metadata or Object", text));
}

TablePrinter::TablePrinter(const Resource& resource)
    : resource_(resource),
      builtin_(resource.built_in || resource.measured
                   ? find_builtin_columns(resource.group, resource.kind)
                   : nullptr) {
  if (builtin_) return;
  columns_ = resource.columns.empty() ? usual_columns(resource) : resource.columns;
  for (const Column& column : columns_) {
    Custom custom{column.type, std::nullopt};
    try {
      custom.path = model::JsonPath::parse(column.json_path);
    } catch (const Error&) {
      // The CRD was accepted with it; the rest of its table is still worth printing.
    }
    custom_.push_back(std::move(custom));
  }
}

JsonArray TablePrinter::definitions() const {
  JsonArray all;
  if (builtin_) {
    for (const Column& column : builtin_->columns)
      all.push_back(
          definition(column.name, column.type, column.format, column.description, column.priority));
    return all;
  }
  all.push_back(definition("Name", "string", "name", "Name of the object", 0));
  for (const Column& column : columns_)
    all.push_back(
        definition(column.name, column.type, column.format, describe(column), column.priority));
  return all;
}

JsonArray TablePrinter::cells(const Json& object, Time now) const {
  JsonArray all;
  if (builtin_) {
    builtin_->cells(object, now, all);
    return all;
  }
  all.reserve(1 + custom_.size());
  all.emplace_back(text_at(object, {"metadata", "name"}));
  for (const Custom& column : custom_) {
    const Json* value = column.path ? column.path->find_first(object) : nullptr;
    // Built-in kinds without cells of their own show the time itself.
    const bool is_time = resource_.built_in && column.type == "date";
    if (!value)
      all.emplace_back(nullptr);
    else
      all.push_back(is_time ? *value : custom_cell(*value, column.type, now));
  }
  return all;
}

Json TablePrinter::row(const Json& object, const TableOptions& options) const {
  JsonObject row{{"cells", cells(object, options.now)}};
  if (options.object == RowObject::object)
    row["object"] = with_type(object, resource_);
  else if (options.object == RowObject::metadata)
    row["object"] = partial_metadata(object, options.meta_version);
  else
    row["object"] = nullptr;
  return row;
}

Json TablePrinter::print(const Json& value, const TableOptions& options) const {
  JsonArray rows;
  if (const JsonArray* items = items_of(value)) {
    rows.reserve(items->size());
    for (const Json& item : *items) rows.push_back(row(item, options));
  } else {
    rows.push_back(row(value, options));
  }
  JsonObject table{{"kind", "Table"},
                   {"apiVersion", meta_api_version(options.meta_version)},
                   {"metadata", list_metadata(value)}};
  table["columnDefinitions"] = options.has_columns ? Json(definitions()) : Json();
  table["rows"] = std::move(rows);
  return table;
}

Json to_partial_metadata(const Json& value, std::string_view meta_version) {
  const JsonArray* items = items_of(value);
  if (!items) return partial_metadata(value, meta_version);
  JsonArray partial;
  partial.reserve(items->size());
  for (const Json& item : *items) partial.push_back(partial_metadata(item, meta_version));
  JsonObject list{{"kind", "PartialObjectMetadataList"},
                  {"apiVersion", meta_api_version(meta_version)},
                  {"metadata", list_metadata(value)}};
  list["items"] = std::move(partial);
  return list;
}

}  // namespace hearth::apiserver
