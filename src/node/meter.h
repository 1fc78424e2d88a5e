// What sandboxes and this machine use, for who asks now and then.
//
// Nothing is done while nobody asks. Averages are over the time since somebody last asked, or since
// the sandbox was made, and over no less than kLeastWindow where there is so much. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/guarded.h"
#include "remote/usage.h"
#include "runtime/runtime.h"

namespace hearth::node {

class Meter {
 public:
  static constexpr Duration kLeastWindow = std::chrono::seconds(10);
  // Who asks again within this time gets the same answer: a sandbox more is a file more to read.
  static constexpr Duration kFresh = std::chrono::seconds(1);

  // Both must outlive it.
  Meter(runtime::Runtime& runtime, const Clock& clock, std::string node_name);

  // Throws Error, where the runtime does not answer.
  remote::UsageReport measure();

 private:
  struct Sample {
    Time at;
    std::uint64_t cpu_microseconds = 0;
  };
  // `from` is what is compared with; `next` will be, once it is kLeastWindow old.
  struct Track {
    Sample from;
    Sample next;
  };
  struct State {
    Track machine;
    std::map<std::string, Track, std::less<>> sandboxes;
    remote::UsageReport last;
  };
  static remote::Usage use_of(Track& track, const Sample& now, std::uint64_t memory_bytes);
  remote::UsageReport measure_now(State& state, Time now);

  runtime::Runtime& runtime_;
  const Clock& clock_;
  const std::string node_name_;
  Guarded<State> state_;
};

// Of all processors together, since the machine started.
std::uint64_t read_busy_microseconds();
// The same in the text of /proc/stat, `hertz` ticks a second.
std::uint64_t busy_microseconds(std::string_view stat, std::uint64_t hertz);

}  // namespace hearth::node
