// What a Sandbox is to clients of E2B, from the object alone. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/json.h"

namespace hearth::e2b {

using model::Json;

enum class State {
  none,      // not handed out by this door, or on its way out
  running,   //
  paused,    //
  pausing,   // asked to stand still, and does not yet
  resuming,  // asked to go on, and does not yet
};

State state_of(const Json& sandbox);
// "running" or "paused", as clients see it: what it is until it is the other.
std::string_view state_text(State state);

// Whether its time is over and it is to be killed then; it may be there for another moment.
bool is_over(const Json& sandbox, Time now);

std::optional<Time> started_at(const Json& sandbox);
std::optional<Time> end_at(const Json& sandbox);
bool pauses_at_end(const Json& sandbox);
bool is_secure(const Json& sandbox);
// What was asked for at first, in seconds; 300 where nothing says so.
std::int64_t timeout_of(const Json& sandbox);

// Times on objects: microseconds, which clients compare.
std::string time_text(Time time);

// The merge patch parts of an end: annotation and, where it kills, spec.shutdownTime. Without a
// time (it is paused) there is no shutdownTime.
void put_end(Json& patch, Time end, bool kills);

// "a,b" to "a" and "b"; empty parts are left out.
std::vector<std::string> split_list(std::string_view text);

}  // namespace hearth::e2b
