#include "bench/claim_engines.h"

#include "bench/hearth_up.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

class RealEngine final : public ClaimEngine {
 public:
  ApiAddress address() const override { return engine_.kube(); }
  std::string image() const override { return kImage; }

 private:
  HearthUp engine_{{"--no-e2b"}};
};

}  // namespace

std::unique_ptr<ClaimEngine> start_hearth_up() {
  return std::make_unique<RealEngine>();
}

}  // namespace hearth::bench
