// What the gateway knows of one sandbox. Never changes: news make another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/meta.h"

namespace hearth::gateway {

// Of one sandbox, as long as it is known.
struct Activity {
  std::atomic<std::int64_t> last_milliseconds = 0;  // since 1970
  std::atomic<std::uint32_t> open = 0;              // requests and streams under way
};

enum class RouteState {
  running,
  paused,   // stands still, or its files are all that there is
  turning,  // on its way from or to that
};

enum class Access {
  open,
  token,     // its own token, on the port of envd
  team_key,  // a key of its team, on every port
};

struct Route {
  std::uint64_t serial = 0;  // of the Sandbox's life between two changes of state; kept
                             // connections are this one's
  model::Key key;
  std::string uid;
  std::string created;        // when, as the server wrote it
  std::uint64_t version = 0;  // resourceVersion
  bool is_e2b = false;
  bool is_spare = false;  // made for E2B and ready, and nobody's yet
  RouteState state = RouteState::running;
  bool wakes = false;  // when somebody knocks
  Access access = Access::open;
  bool needs_traffic_token = false;
  std::string envd_token;  // of a spare one, too: that which it will have
  std::string traffic_token;
  std::string mask_host;
  std::vector<std::uint16_t> https_ports;
  std::string pod_name;
  std::vector<std::string> pod_ips;

  std::shared_ptr<Activity> activity;
  // Whether there is another by now, or none. Set before `activity->open` is looked at: whoever
  // counts itself there first and then finds this false will be told.
  mutable std::atomic<bool> is_superseded = false;
};

using RoutePtr = std::shared_ptr<const Route>;

}  // namespace hearth::gateway
