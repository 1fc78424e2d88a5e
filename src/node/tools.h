// What the keepers of pods share.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "client/client.h"
#include "model/meta.h"
#include "node/ends.h"
#include "node/errands.h"
#include "node/images.h"
#include "node/plan.h"
#include "node/probes.h"
#include "reconcile/event_recorder.h"
#include "runtime/runtime.h"

namespace hearth::node {

// Everything outlives them.
struct Tools {
  client::Client& client;
  runtime::Runtime& runtime;
  Planner& planner;
  Images& images;
  Prober& prober;
  Errands& downloads;
  Errands& talks;  // probes and hooks
  Ends& ends;
  reconcile::EventRecorder& events;
  const Clock& clock;
  std::string host_address;
  std::function<void(const model::Key& key)> wake;  // thread-safe
  // The last touch on a container that is about to be made. Throws Error. None: as planned.
  std::function<void(const Json& pod, runtime::SandboxSpec& spec)> furnish = {};
  // The same for the first container of a pod with a kDressAnnotation.
  std::function<void(const Json& pod, runtime::SandboxSpec& spec)> dress = {};
};

}  // namespace hearth::node
