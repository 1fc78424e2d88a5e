// Events that tell people what a controller did and why (events.k8s.io/v1).
//
// Telling never holds up doing: events are written by a thread of their own, from a bounded queue,
// and not at once: the processor is wanted for what they tell of. What does not fit, or comes
// faster than `per_second`, is dropped and counted. The same event again within a few minutes
// becomes a series on the first instead of another object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "client/client.h"

namespace hearth::reconcile {

enum class EventType { normal, warning };

struct EventRecorderOptions {
  std::string controller;  // reportingController
  std::string instance;    // reportingInstance; empty: the controller and the host's name
  bool is_silent = false;  // nothing is written
  Duration pause = std::chrono::milliseconds(100);  // until the first of several is written
  unsigned most_waiting = 1000;
  unsigned per_second = 50;
  unsigned burst = 500;
};

class EventRecorder {
 public:
  // Both must outlive it.
  EventRecorder(client::Client& client, const Clock& clock, EventRecorderOptions options);
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  // Writes what waits, for a second at most.
  ~EventRecorder();

  // `about` is a whole object; only who it is is kept.
  void record(const model::Json& about, EventType type, std::string_view reason,
              std::string_view action, std::string note);
  // Returns when everything recorded so far has been written or dropped.
  void flush();
  std::uint64_t dropped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::reconcile
