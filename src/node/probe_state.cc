// When to ask a container, and what its answers amount to. Pure.
#include <algorithm>

#include "node/probes.h"

namespace hearth::node {
namespace {

using std::chrono::seconds;

constexpr Duration kFirstEager = std::chrono::milliseconds(50);

std::int64_t positive(const Json& probe, std::string_view member, std::int64_t usual) {
  const auto number = model::number_at(probe, {member});
  return number && *number > 0 ? *number : usual;
}

}  // namespace

std::string_view to_string(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup:
      return "Startup";
    case ProbeKind::readiness:
      return "Readiness";
    case ProbeKind::liveness:
      return "Liveness";
  }
  return "Probe";
}

ProbeState::ProbeState(const Json& container, Time started, bool has_begun) : started_(started) {
  constexpr std::array<std::string_view, 3> kMembers{"startupProbe", "readinessProbe",
                                                     "livenessProbe"};
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    Track& track = tracks_[i];
    const Json* probe = model::find(container, {kMembers[i]});
    if (!probe || !probe->is_object()) continue;
    track.probe = *probe;
    track.initial_delay = seconds(positive(*probe, "initialDelaySeconds", 0));
    track.period = seconds(positive(*probe, "periodSeconds", 10));
    track.success_threshold = positive(*probe, "successThreshold", 1);
    track.failure_threshold = positive(*probe, "failureThreshold", 3);
  }
  track(ProbeKind::startup).passed = has_begun;
  track(ProbeKind::liveness).passed = true;  // innocent until found otherwise
  for (Track& track : tracks_) begin(track, started);
}

// Not before its delay, which counts from the container's start.
void ProbeState::begin(Track& track, Time now) {
  track.next = std::max(now, started_ + track.initial_delay);
  track.next_counted = track.next;
  track.eager = std::min(kFirstEager, track.period);
}

bool ProbeState::has_probes() const {
  return std::ranges::any_of(tracks_, [](const Track& track) { return !track.probe.is_null(); });
}

bool ProbeState::is_started() const {
  const Track& startup = track(ProbeKind::startup);
  return startup.probe.is_null() || startup.passed;
}

bool ProbeState::is_ready() const {
  const Track& readiness = track(ProbeKind::readiness);
  return is_started() && !fatal_ && (readiness.probe.is_null() || readiness.passed);
}

std::optional<Duration> ProbeState::grace(ProbeKind kind) const {
  const auto own = model::number_at(track(kind).probe, {"terminationGracePeriodSeconds"});
  return own ? std::optional<Duration>(seconds(*own)) : std::nullopt;
}

// A startup probe comes alone, and never again once it has passed.
bool ProbeState::is_active(ProbeKind kind) const {
  if (track(kind).probe.is_null()) return false;
  return kind == ProbeKind::startup ? !is_started() : is_started();
}

std::optional<ProbeState::Due> ProbeState::next() const {
  if (fatal_) return std::nullopt;
  std::optional<Due> due;
  for (const ProbeKind kind : {ProbeKind::startup, ProbeKind::readiness, ProbeKind::liveness}) {
    if (!is_active(kind)) continue;
    const Track& candidate = track(kind);
    if (!due || candidate.next < due->at) due = Due{kind, candidate.next, &candidate.probe};
  }
  return due;
}

void ProbeState::record(ProbeKind kind, const ProbeResult& result, Time now) {
  Track& asked = track(kind);
  if (!is_active(kind) || fatal_) return;
  const bool counts = result.ok || now >= asked.next_counted;
  if (counts) {
    asked.run = asked.last_ok == result.ok ? asked.run + 1 : 1;
    asked.last_ok = result.ok;
    if (now >= asked.next_counted) asked.next_counted = now + asked.period;
  }
  if (result.ok && asked.run >= asked.success_threshold) asked.passed = true;
  if (counts && !result.ok && asked.run >= asked.failure_threshold) {
    asked.passed = false;
    if (kind != ProbeKind::readiness)
      fatal_ =
          result.message.empty() ? std::string(to_string(kind)) + " probe failed" : result.message;
  }
  asked.next = asked.next_counted;
  // Whoever is waited for is asked sooner.
  if (kind != ProbeKind::liveness && !asked.passed) {
    asked.next = std::min(asked.next, now + asked.eager);
    asked.eager = std::min(asked.eager * 2, asked.period);
  }
  if (kind == ProbeKind::startup && asked.passed)
    for (const ProbeKind waiting : {ProbeKind::readiness, ProbeKind::liveness})
      begin(track(waiting), now);
}

}  // namespace hearth::node
