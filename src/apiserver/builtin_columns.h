// The columns of kubectl get for built-in kinds, and how their cells are computed.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/resource.h"
#include "base/clock.h"

namespace hearth::apiserver {

struct BuiltinColumns {
  std::string_view group;
  std::string_view kind;
  std::vector<Column> columns;  // Name is one of them
  // One cell for each column, those of -o wide too.
  void (*cells)(const Json& object, Time now, model::JsonArray& cells);
};

// Null for kinds that have none of their own.
const BuiltinColumns* find_builtin_columns(std::string_view group, std::string_view kind);

// A pod's; they take more than a line each.
void pod_cells(const Json& pod, Time now, model::JsonArray& cells);
// Those of an EndpointSlice; the same.
void endpoint_slice_cells(const Json& slice, Time now, model::JsonArray& cells);

// The age of the object.
std::string object_age(const Json& object, Time now);
// `text`, or `otherwise` if it is empty.
std::string text_or(std::string_view text, std::string_view otherwise);

}  // namespace hearth::apiserver
