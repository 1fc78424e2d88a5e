#include "e2b/state.h"

#include <charconv>

#include "base/time_text.h"
#include "controllers/sandbox_pod.h"
#include "e2b/words.h"
#include "model/front_door.h"
#include "model/meta.h"

namespace hearth::e2b {
namespace {

constexpr std::int64_t kUsualTimeout = 300;

std::optional<Time> time_of(const Json& sandbox, std::string_view annotation) {
  return parse_rfc3339(model::annotation_of(sandbox, annotation));
}

}  // namespace

State state_of(const Json& sandbox) {
  if (model::is_deleting(sandbox)) return State::none;
  if (model::label_of(sandbox, model::kFrontLabel) != kFront) return State::none;
  const bool stands_still = model::is_condition_true(sandbox, model::kPausedCondition);
  const bool is_put_away = model::is_condition_true(sandbox, "Suspended");
  if (controllers::is_suspended(sandbox)) return is_put_away ? State::paused : State::pausing;
  if (!model::annotation_of(sandbox, model::kPauseAnnotation).empty())
    return stands_still ? State::paused : State::pausing;
  return stands_still || is_put_away ? State::resuming : State::running;
}

std::string_view state_text(State state) {
  return state == State::paused || state == State::resuming ? "paused" : "running";
}

bool is_over(const Json& sandbox, Time now) {
  if (pauses_at_end(sandbox)) return false;
  const State state = state_of(sandbox);
  if (state == State::paused || state == State::pausing) return false;
  const auto end = end_at(sandbox);
  return end && *end <= now;
}

std::optional<Time> started_at(const Json& sandbox) {
  const auto said = time_of(sandbox, model::kStartedAnnotation);
  return said ? said : model::created_at(sandbox);
}

std::optional<Time> end_at(const Json& sandbox) {
  return time_of(sandbox, model::kEndAnnotation);
}

bool pauses_at_end(const Json& sandbox) {
  return model::annotation_of(sandbox, model::kOnTimeoutAnnotation) == "pause";
}

bool is_secure(const Json& sandbox) {
  return model::annotation_of(sandbox, model::kAccessAnnotation) == "token";
}

std::int64_t timeout_of(const Json& sandbox) {
  const std::string_view text = model::annotation_of(sandbox, kTimeoutAnnotation);
  std::int64_t seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  return is_number && seconds > 0 ? seconds : kUsualTimeout;
}

std::string time_text(Time time) {
  return format_rfc3339(time, 6);
}

void put_end(Json& patch, Time end, bool kills) {
  model::make_object_at(patch, {"metadata", "annotations"})[model::kEndAnnotation] = time_text(end);
  model::JsonObject& spec = model::make_object_at(patch, {"spec"});
  if (kills) {
    // Other clients read whole seconds: never before its time.
    spec["shutdownTime"] = format_rfc3339(std::chrono::ceil<std::chrono::seconds>(end));
    spec["shutdownPolicy"] = "Delete";
  } else {
    spec["shutdownTime"] = nullptr;
  }
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace hearth::e2b
