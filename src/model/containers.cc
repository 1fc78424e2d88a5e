#include "model/containers.h"

namespace hearth::model {

std::string_view first_container_of(const Json& pod) {
  const JsonArray* containers = array_at(pod, {"spec", "containers"});
  if (containers == nullptr || containers->empty()) return {};
  return text_at(containers->front(), {"name"});
}

const Json* find_container_status(const Json& pod, std::string_view name) {
  const JsonArray* statuses = array_at(pod, {"status", "containerStatuses"});
  if (statuses == nullptr) return nullptr;
  for (const Json& status : *statuses)
    if (text_at(status, {"name"}) == name) return &status;
  return nullptr;
}

}  // namespace hearth::model
