// What a request says about a pod: which container, which options. Throws model::StatusError in
// the words of a kube-apiserver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/json.h"
#include "net/words.h"
#include "remote/backend.h"

namespace hearth::remote {

// Query parameters as Kubernetes reads them.
class Query {
 public:
  explicit Query(const net::Request& request);

  std::string text(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  // Everything but "0" and "false" is true, once it is there.
  bool flag(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

std::string pod_name(const model::Json& pod);

// The container that is meant, by name: the only one, unless the request names one.
std::string choose_container(const Query& query, const model::Json& pod);

bool has_node(const model::Json& pod);
void expect_node(const model::Json& pod);

// The container as it runs, or ran; nothing where it never did.
std::optional<Container> find_container(const model::Json& pod, std::string_view name);
// Of any container of the pod that runs.
std::optional<Container> find_any_container(const model::Json& pod);
// Why a container that has no log has none: "ContainerCreating".
std::string waiting_reason(const model::Json& pod, std::string_view name);

struct LogQuery {
  LogOptions options;
  std::optional<std::uint64_t> limit_bytes;
};
LogQuery parse_log_query(const Query& query, const model::Json& pod);

Streams parse_streams(const Query& query);

}  // namespace hearth::remote
