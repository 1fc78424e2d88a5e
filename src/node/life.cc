#include "node/life.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::node {
namespace {

constexpr Duration kFirstPause = std::chrono::seconds(10);

void add_containers(std::vector<Container>& found, const Json& pod, std::string_view list) {
  const auto* specs = model::array_at(pod, {"spec", list});
  if (specs == nullptr) return;
  const bool is_init = list == "initContainers";
  const bool is_ephemeral = list == "ephemeralContainers";
  for (const Json& spec : *specs) {
    Container container;
    container.name = model::text_at(spec, {"name"});
    if (is_init) {
      const bool stays = model::text_at(spec, {"restartPolicy"}) == "Always";
      container.kind = stays ? Kind::sidecar : Kind::init;
    }
    if (is_ephemeral) container.kind = Kind::ephemeral;
    container.image = model::text_at(spec, {"image"});
    found.push_back(std::move(container));
  }
}

std::string_view list_of(Kind kind) {
  if (kind == Kind::ephemeral) return "ephemeralContainers";
  return kind == Kind::regular ? "containers" : "initContainers";
}

bool is_done(const Container& container) {
  return container.stage == Stage::terminated && container.end && container.end->exit_code == 0;
}

// Whether what comes after this init container may begin.
bool lets_others_begin(const Container& container) {
  if (container.kind == Kind::init) return is_done(container);
  return container.stage == Stage::running && container.is_started;
}

bool is_startable(const Json& pod, const Container& container) {
  switch (container.stage) {
    case Stage::running:
      return false;
    case Stage::waiting:
      return !container.before || restarts(pod, container, *container.before);
    case Stage::terminated:
      return container.end && restarts(pod, container, *container.end);
  }
  return false;
}

// The end that counts for the phase: of this life, or of the last while the next one waits.
const Ending* counted_end(const Container& container) {
  if (container.stage == Stage::terminated && container.end) return &*container.end;
  if (container.stage == Stage::waiting && container.before) return &*container.before;
  return nullptr;
}

struct Tally {
  unsigned waiting = 0;
  unsigned running = 0;
  unsigned stopped = 0;
  unsigned for_good = 0;   // of these
  unsigned succeeded = 0;  // of these
};

Tally count(const Json& pod, const Pod& known) {
  Tally tally;
  for (const Container& container : known.containers) {
    if (container.kind == Kind::sidecar && container.stage == Stage::running) ++tally.running;
    if (container.kind != Kind::regular) continue;
    if (container.stage == Stage::running) {
      ++tally.running;
    } else if (const Ending* end = counted_end(container)) {
      ++tally.stopped;
      if (end->exit_code == 0) ++tally.succeeded;
      if (known.is_ending || !restarts(pod, container, *end)) ++tally.for_good;
    } else {
      ++tally.waiting;
    }
  }
  return tally;
}

// Once a regular container has run the beginning is over.
bool has_begun(const Pod& known) {
  return std::ranges::any_of(known.containers, [](const Container& container) {
    return container.kind == Kind::regular &&
           (container.stage != Stage::waiting || container.before);
  });
}

// Pending while an init container is not through, Failed when one never will be; else nothing.
std::string_view phase_of_beginning(const Json& pod, const Pod& known) {
  if (has_begun(known)) return {};
  for (const Container& container : known.containers) {
    if (container.kind == Kind::regular) break;
    if (container.kind == Kind::init) {
      const Ending* end = counted_end(container);
      if (end && end->exit_code != 0 && (known.is_ending || !restarts(pod, container, *end)))
        return "Failed";
      if (!is_done(container)) return "Pending";
    } else if (!lets_others_begin(container) && !counted_end(container)) {
      return "Pending";
    }
  }
  return {};
}

}  // namespace

std::vector<Container> containers_of(const Json& pod) {
  std::vector<Container> found;
  add_containers(found, pod, "initContainers");
  add_containers(found, pod, "containers");
  add_containers(found, pod, "ephemeralContainers");
  return found;
}

std::vector<Container> newcomers_of(const Json& pod, const Pod& known) {
  std::vector<Container> found;
  add_containers(found, pod, "ephemeralContainers");
  std::erase_if(found, [&](const Container& one) {
    return std::ranges::find(known.containers, one.name, &Container::name) !=
           known.containers.end();
  });
  return found;
}

const Json& spec_of(const Json& pod, const Container& container) {
  const auto* specs = model::array_at(pod, {"spec", list_of(container.kind)});
  if (specs != nullptr) {
    for (const Json& spec : *specs)
      if (model::text_at(spec, {"name"}) == container.name) return spec;
  }
  fail(Code::invalid, "the pod has no container '{}'", container.name);
}

Duration grace_of(const Json& pod) {
  constexpr std::int64_t kUsual = 30;
  return std::chrono::seconds(
      model::number_at(pod, {"spec", "terminationGracePeriodSeconds"}).value_or(kUsual));
}

bool restarts(const Json& pod, const Container& container, const Ending& ending) {
  if (container.kind == Kind::ephemeral) return false;
  if (container.kind == Kind::sidecar || container.is_replaced) return true;
  std::string_view policy = model::text_at(spec_of(pod, container), {"restartPolicy"});
  if (policy.empty()) policy = model::text_at(pod, {"spec", "restartPolicy"});
  if (policy == "Never") return false;
  // One that is through with its work stays through, whatever is said of the others.
  if (policy == "OnFailure" || container.kind == Kind::init) return ending.exit_code != 0;
  return true;
}

Duration pause_before_restart(unsigned streak) {
  if (streak == 0) return Duration(0);
  constexpr unsigned kEnough = 10;  // doublings
  return std::min<Duration>(kFirstPause * (1 << std::min(streak - 1, kEnough)), kLongestPause);
}

std::vector<std::size_t> startable(const Json& pod, const Pod& known) {
  std::vector<std::size_t> found;
  if (known.is_ending) return found;
  const bool is_begun = has_begun(known);  // then only sidecars of the init containers live again
  const auto first_ephemeral = static_cast<std::size_t>(
      std::ranges::find(known.containers, Kind::ephemeral, &Container::kind) -
      known.containers.begin());
  for (std::size_t i = 0; i < first_ephemeral; ++i) {
    const Container& container = known.containers[i];
    if (is_begun && container.kind == Kind::init) continue;
    if (is_startable(pod, container)) found.push_back(i);
    if (is_begun || container.kind == Kind::regular) continue;
    if (!lets_others_begin(container)) break;
  }
  // They wait for nobody: somebody wants to see why the others do not get on.
  for (std::size_t i = first_ephemeral; i < known.containers.size(); ++i)
    if (is_startable(pod, known.containers[i])) found.push_back(i);
  return found;
}

bool is_through(const Json& pod, const Pod& known) {
  if (!known.failure.empty()) return true;
  if (phase_of_beginning(pod, known) == "Failed") return true;
  return std::ranges::all_of(known.containers, [&](const Container& container) {
    return container.kind != Kind::regular ||
           (container.stage == Stage::terminated && !restarts(pod, container, *container.end));
  });
}

std::string_view phase_of(const Json& pod, const Pod& known) {
  // Not while something runs: whoever makes another one in its place would have two.
  const bool is_quiet = std::ranges::none_of(
      known.containers, [](const Container& each) { return each.stage == Stage::running; });
  if (!known.failure.empty() && is_quiet) return "Failed";
  if (const std::string_view beginning = phase_of_beginning(pod, known); !beginning.empty())
    return beginning;
  const Tally tally = count(pod, known);
  if (tally.waiting > 0) return "Pending";
  if (tally.running > 0 || tally.for_good < tally.stopped) return "Running";
  return tally.succeeded == tally.stopped ? "Succeeded" : "Failed";
}

bool is_terminal(std::string_view phase) {
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace hearth::node
