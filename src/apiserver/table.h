// Objects as kubectl get shows them (Table), and without their content (PartialObjectMetadata).
//
// For the answer to a GET, of one object or of a list, and for the events of a watch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resource.h"
#include "base/clock.h"
#include "model/json_path.h"

namespace hearth::apiserver {

struct BuiltinColumns;

// What comes with each row: query parameter includeObject.
enum class RowObject { none, metadata, object };
// Throws StatusError 400 for other text; empty is Metadata.
RowObject parse_row_object(std::string_view text);

struct TableOptions {
  RowObject object = RowObject::metadata;
  std::string_view meta_version = "v1";  // of meta.k8s.io; or "v1beta1"
  bool has_columns = true;               // later events of a watch go without
  Time now{};
};

// The columns of one resource. Made for a request or a watch; borrows the resource.
class TablePrinter {
 public:
  explicit TablePrinter(const Resource& resource);

  // `value`: an object, or a list with items.
  Json print(const Json& value, const TableOptions& options) const;

 private:
  struct Custom {
    std::string type;
    std::optional<model::JsonPath> path;  // nothing if it does not parse: the cell is null
  };

  model::JsonArray definitions() const;
  model::JsonArray cells(const Json& object, Time now) const;
  Json row(const Json& object, const TableOptions& options) const;

  const Resource& resource_;
  const BuiltinColumns* builtin_ = nullptr;
  std::vector<Column> columns_;  // without Name; of kinds that compute nothing
  std::vector<Custom> custom_;
};

// The metadata of an object, or of each in a list.
Json to_partial_metadata(const Json& value, std::string_view meta_version);

}  // namespace hearth::apiserver
