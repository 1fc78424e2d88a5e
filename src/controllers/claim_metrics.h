// Numbers about claims, under the names that the original's dashboards know.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "metrics/registry.h"
#include "model/json.h"

namespace hearth::controllers {

using model::Json;

class ClaimMetrics {
 public:
  // The registry must outlive it.
  explicit ClaimMetrics(metrics::Registry& registry) : registry_(registry) {}

  // A claim got its sandbox. `pool` may be empty.
  void count_creation(const Json& claim, const Json& sandbox, std::string_view pool);
  // A claim became Ready for the first time.
  void observe_ready(const Json& claim, const Json& sandbox, Time first_seen, Time now);

 private:
  void observe(std::string_view name, std::string_view help, const Json& sandbox, Duration time);

  metrics::Registry& registry_;
};

// "python-client" and so on; "unknown" for what we do not know: people must not make up time
// series.
std::string_view known_creator(std::string_view creator);

}  // namespace hearth::controllers
