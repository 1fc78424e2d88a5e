// Outfits pods over the network, where no node agent of this process reaches into them: envd's own
// POST /init, on the pod's address. Variables and token only.
#pragma once

#include <cstdint>

#include "pool/outfit.h"

namespace hearth::e2b {

inline constexpr std::uint16_t kEnvdPort = 49'983;

class InitOutfitter final : public pool::Outfitter {
 public:
  explicit InitOutfitter(std::uint16_t port = kEnvdPort) : port_(port) {}

  // Whether it runs and has an address.
  bool can_outfit(const model::Json& pod) override;
  // Blocks, for seconds if need be: envd may be about to start. Throws Error(unavailable).
  void outfit(const model::Json& pod, const pool::Outfit& outfit) override;

 private:
  const std::uint16_t port_;
};

}  // namespace hearth::e2b
