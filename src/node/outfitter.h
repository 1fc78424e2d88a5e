// Dresses sandboxes that were made ahead of time, through their guests.
#pragma once

#include <string>

#include "client/client.h"
#include "pool/outfit.h"

namespace hearth::runtime {
class Runtime;
}

namespace hearth::node {

class NodeOutfitter final : public pool::Outfitter {
 public:
  // Both must outlive it.
  NodeOutfitter(client::Client& client, runtime::Runtime& runtime, std::string node)
      : client_(client), runtime_(runtime), node_(std::move(node)) {}

  bool can_outfit(const model::Json& pod) override;
  // Throws Error: not_found (a claim), invalid (a volume that is none of ours), unavailable (the
  // container does not run, a claim is not bound).
  void outfit(const model::Json& pod, const pool::Outfit& outfit) override;

 private:
  client::Client& client_;
  runtime::Runtime& runtime_;
  const std::string node_;
};

}  // namespace hearth::node
