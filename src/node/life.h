// What is known of a pod and its containers, and what follows from it. Pure: no clock, no kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::node {

using model::Json;

enum class Kind {
  init,     // ends before the next one begins
  sidecar,  // an init container that stays: restartPolicy Always
  regular,
  ephemeral,  // came later, to look at the others; lives once, and nothing depends on it
};

enum class Stage { waiting, running, terminated };

// How one life of a container ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;
  std::string reason;   // "Completed", "Error", "OOMKilled", ...
  std::string message;  // the termination message
  Time started;         // zero: it never ran
  Time finished;
  std::string sandbox;
};

struct Container {
  std::string name;
  Kind kind = Kind::regular;
  unsigned attempt = 0;  // restartCount
  Stage stage = Stage::waiting;
  std::string sandbox;  // of this attempt; empty: there is none yet
  std::string image;    // that it was made of, as the spec had it
  std::string image_id;
  Time started;
  bool is_started = false;  // the startup probe, if any, and the hook are through
  bool is_ready = false;
  bool is_paused = false;        // it stands still; it runs nevertheless
  bool has_main = true;          // else the guest is all that runs
  bool has_lived = false;        // `attempt` had, or has, a sandbox
  bool is_replaced = false;      // it ends so that one with another image can live
  std::optional<Ending> end;     // when terminated
  std::optional<Ending> before;  // of the attempt before this one
  std::string reason;            // why it waits
  std::string message;
  // How often in a row it was restarted without having run for long.
  unsigned streak = 0;
};

// Why all of a pod failed, where the machine was short of what it used.
inline constexpr std::string_view kEvicted = "Evicted";

struct Pod {
  std::vector<Container>
      containers;       // init containers, regular, ephemeral; in the order of the spec
  std::string address;  // empty: no sandbox yet
  std::string host_address;
  Time started;
  bool is_ending = false;  // nothing is started any more
  bool is_paused = false;  // everything that runs of it stands still, as it was told to
  // Why all of it failed (kEvicted, "DeadlineExceeded"); empty: it did not.
  std::string failure;
  std::string failure_message;
};

// Of the spec, as a pod that nobody has begun with.
std::vector<Container> containers_of(const Json& pod);
// Ephemeral containers that the spec has beyond those that are known.
std::vector<Container> newcomers_of(const Json& pod, const Pod& known);
// The container's own spec.
const Json& spec_of(const Json& pod, const Container& container);

// How long its containers may take to end.
Duration grace_of(const Json& pod);

// Whether it is to live again after this end.
bool restarts(const Json& pod, const Container& container, const Ending& ending);

inline constexpr Duration kLongestPause = std::chrono::minutes(5);
// Whoever ran for this long begins with a clean slate.
inline constexpr Duration kLongRun = std::chrono::minutes(10);
// Before the next life of a container that was restarted `streak` times in a row: none at first,
// then 10 s, doubling.
Duration pause_before_restart(unsigned streak);

// Which containers are to run now, by index: init containers in their order, then all others; none
// that runs, and none that is not to live again.
std::vector<std::size_t> startable(const Json& pod, const Pod& known);

// Whether its work is over: what still runs of it (sidecars) is to be ended.
bool is_through(const Json& pod, const Pod& known);

// "Pending", "Running", "Succeeded" or "Failed".
std::string_view phase_of(const Json& pod, const Pod& known);
bool is_terminal(std::string_view phase);

}  // namespace hearth::node
