// Objects as text for people: tables that the server made, descriptions, claims.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/kube_cluster.h"
#include "cli/table.h"
#include "model/json.h"

namespace hearth::cli {

struct ObjectTable {
  Row heading;
  std::vector<Row> rows;
  std::string resource_version;
};

// A meta.k8s.io/v1 Table. Columns of lower priority are for `is_wide`. Throws Error(unavailable)
// for something else.
ObjectTable read_table(const model::Json& table, bool is_wide, bool with_namespace);

// Lines of a table that goes on: columns stay as wide as they have been once.
class Columns {
 public:
  std::string heading(const ObjectTable& table);
  std::string line(const Row& row);

 private:
  void widen(const Row& row);
  Row widest_;
};

// Name, labels, owner, what it shall be and is, what belongs to it, and its events.
std::string describe(client::Client& api, const ApiKind& kind, const model::Json& object, Time now);

// The claim that the options ask for.
model::Json make_claim(const ClaimOptions& options, const std::string& ns, Time now);

// What a claim's conditions mean for one who waits.
struct ClaimState {
  enum class Kind { pending, ready, lost };
  Kind kind = Kind::pending;  // lost: waiting does not help
  std::string reason;
  std::string message;
};
ClaimState read_claim(const model::Json& claim);

// The template that the options ask for. One in a file keeps its namespace, unless -n was said.
model::Json make_template(const TemplateCreateOptions& options, const std::string& ns);

}  // namespace hearth::cli
