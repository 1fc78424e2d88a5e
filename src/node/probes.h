// Whether a container is well: asking it, and what the answers amount to.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::runtime {
class Runtime;
}

namespace hearth::node {

using model::Json;

struct ProbeResult {
  bool ok = false;
  std::string message;  // why not, or what it said; bounded
};

struct ProbeTarget {
  std::string sandbox;    // id
  std::string address;    // of the pod; empty: it has no network
  const Json& container;  // for ports by name
};

// Thread-safe. Each call blocks for the probe's timeoutSeconds at most.
//
// Only the container itself is asked: a probe with a `host` of its own fails, since it would let
// whoever writes pods have this process knock at any door of its network.
class Prober {
 public:
  // The runtime must outlive it.
  explicit Prober(runtime::Runtime& runtime) : runtime_(runtime) {}

  // A probe of the spec: exec, httpGet, tcpSocket or grpc. Never throws for what the container
  // does; a sandbox that is gone is a failure too.
  ProbeResult probe(const Json& probe, const ProbeTarget& target);

  // A lifecycle handler: exec, httpGet, tcpSocket or sleep. `patience` is what is left of the
  // grace.
  ProbeResult run_hook(const Json& handler, const ProbeTarget& target, Duration patience);

 private:
  ProbeResult ask(const Json& handler, const ProbeTarget& target, Duration patience);

  runtime::Runtime& runtime_;
};

enum class ProbeKind : std::uint8_t { startup = 0, readiness = 1, liveness = 2 };
// "Startup", "Readiness", "Liveness": as in the events.
std::string_view to_string(ProbeKind kind);

// When to ask a container, and what is known of it. Pure: one for each life of a container, driven
// by its owner, who asks next(), probes, and says what came of it with record().
//
// The first answers are asked for eagerly, soon after the start and then less and less often, so
// that a container is ready when it is and not up to a period later; failures of these extra
// questions do not count.
class ProbeState {
 public:
  // Keeps the container's probes, not the container. One that `has_begun` was found started before:
  // that is not asked twice in a life.
  ProbeState(const Json& container, Time started, bool has_begun = false);

  struct Due {
    ProbeKind kind = ProbeKind::readiness;
    Time at;
    const Json* probe = nullptr;  // valid as long as the ProbeState
  };
  // The next question; nothing: there will be none. One at a time: not before the last was
  // recorded.
  std::optional<Due> next() const;
  void record(ProbeKind kind, const ProbeResult& result, Time now);

  // As containerStatuses say it.
  bool is_started() const;
  bool is_ready() const;
  // A startup or liveness probe has failed too often: the container is to be ended. Its message is
  // why. Stays so.
  const std::optional<std::string>& fatal() const { return fatal_; }
  // How long it may take then, if the probe says so itself.
  std::optional<Duration> grace(ProbeKind kind) const;
  bool has_probes() const;

 private:
  struct Track {
    Json probe;  // null: there is none
    Duration initial_delay{};
    Duration period{};
    std::int64_t success_threshold = 1;
    std::int64_t failure_threshold = 3;

    Time next;             // when to ask
    Time next_counted;     // failures before this do not count
    Duration eager{};      // the pause before the next extra question
    std::int64_t run = 0;  // answers of the same kind in a row
    bool last_ok = false;
    bool passed = false;  // what the answers amount to
  };
  void begin(Track& track, Time now);
  Track& track(ProbeKind kind) { return tracks_[static_cast<std::size_t>(kind)]; }
  const Track& track(ProbeKind kind) const { return tracks_[static_cast<std::size_t>(kind)]; }
  bool is_active(ProbeKind kind) const;

  std::array<Track, 3> tracks_;
  Time started_;
  std::optional<std::string> fatal_;
};

}  // namespace hearth::node
