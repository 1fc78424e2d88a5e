// Reaches into the sandboxes of this node's pods, through the runtime and their guests.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "client/client.h"
#include "guest/client.h"
#include "network/policy.h"
#include "pool/reach.h"

namespace hearth::runtime {
class Runtime;
}

namespace hearth::node {

class NodeReach final : public pool::Reach {
 public:
  // Has the pod's sandbox talk to whom the pod may, its annotation included. Throws Error.
  using Enforce = std::function<void(const model::Json& pod, const std::string& sandbox)>;

  // Both must outlive it.
  NodeReach(client::Client& client, runtime::Runtime& runtime, std::string node, Enforce enforce);

  bool can_outfit(const model::Json& pod) override { return is_here(pod); }
  // Besides: not_found (a claim), invalid (a volume that is none of ours), unavailable (a claim is
  // not bound).
  void outfit(const model::Json& pod, const pool::Outfit& outfit) override;
  bool is_here(const model::Json& pod) override;
  linux::Fd connect(const model::Json& pod, std::uint16_t port) override;
  void commit(const model::Json& pod, const std::string& image) override;
  bool remove_image(const std::string& image) override;
  std::vector<std::string> find_images(std::string_view prefix) override;
  void set_egress(const model::Json& pod, const pool::Egress& egress) override;
  pool::PodUsage usage(const model::Json& pod) override;

  // The pod is no more: neither is what was kept of it.
  void forget(const model::Json& pod);

 private:
  // Connections to the guest of a pod's first container that nobody uses just now. Making one takes
  // the runtime, and longer than what is asked over it.
  struct Doors {
    std::string sandbox;
    std::vector<guest::Connection> idle;
  };

  // Throws Error(unavailable).
  std::string sandbox_of(const model::Json& pod, std::string_view container = {}) const;
  std::optional<guest::Connection> take_door(std::string_view uid, const std::string& sandbox);
  void give_back(std::string_view uid, const std::string& sandbox, guest::Connection door);

  client::Client& client_;
  runtime::Runtime& runtime_;
  const std::string node_;
  const Enforce enforce_;
  Guarded<std::map<std::string, Doors, std::less<>>> doors_;  // by the pod's uid
};

}  // namespace hearth::node
