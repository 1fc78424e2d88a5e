// The names of containers' sandboxes: whoever finds one knows whose it is.
//
//   pod-UIDWITHOUTDASHES-HASHOFNAME-ATTEMPT
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::node {

struct SandboxName {
  std::string pod_uid;         // with its dashes
  std::string container_hash;  // model::name_hash
  unsigned attempt = 0;

  std::string id() const;
};

// Throws Error(invalid) for a uid that is none.
SandboxName name_sandbox(std::string_view pod_uid, std::string_view container, unsigned attempt);
// Nothing for the id of a sandbox that is no container's.
std::optional<SandboxName> parse_sandbox_name(std::string_view id);

}  // namespace hearth::node
