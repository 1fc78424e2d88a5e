// The engines of the page `claims`: a real `hearth up`, and its controllers with a node that only
// says that pods run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/claim_client.h"
#include "bench/process.h"

namespace hearth::bench {

class ClaimEngine {
 public:
  ClaimEngine() = default;
  ClaimEngine(const ClaimEngine&) = delete;
  ClaimEngine& operator=(const ClaimEngine&) = delete;
  // Leaves nothing behind.
  virtual ~ClaimEngine() = default;

  virtual ApiAddress address() const = 0;
  // One that pods of the benchmark can be made from.
  virtual std::string image() const = 0;
};

// Needs root. Throws Error: not_found when it is not built, unavailable when it does not start.
std::unique_ptr<ClaimEngine> start_hearth_up();

// In this process.
std::unique_ptr<ClaimEngine> start_simulation();

}  // namespace hearth::bench
