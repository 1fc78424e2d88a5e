// What a container of a pod becomes: a sandbox, and the command that is started in it.
//
// Reads what the pod names (config maps, secrets, claims, tokens) through the API and never asks
// the runtime. What of a pod's spec is honoured, refused and ignored is in docs/pods.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "guest/protocol.h"
#include "image/image.h"
#include "model/json.h"
#include "runtime/spec.h"

namespace hearth::node {

using model::Json;

struct ContainerPlan {
  runtime::SandboxSpec sandbox;  // id, joins and hostname are the caller's to fill in
  // Detached. An empty command: nothing is run, the guest and its surfaces are the service.
  guest::ExecRequest command;

  // To be said between creating the sandbox and starting the command, which may have asked for the
  // pod's address. (Commands that are started later do not know variables that hold it.)
  void set_address(std::string_view address);
};

// Files of a running container that follow the objects they are made of, as they are now.
struct ChangingFiles {
  runtime::MountSpec mount;
  std::string problem;  // why they cannot be made, and those inside stay; empty: none
};

struct PlannerOptions {
  std::string node_name;
  std::string host_address;  // of this machine
  bool has_network = true;   // whether the runtime has one to give
  // For what containers do not limit themselves; more where they request more.
  runtime::Limits limits = {};
  // Of an emptyDir on disk without a sizeLimit; 0: as much as the engine's disk.
  std::uint64_t empty_dir_bytes = 0;
  // Of tokens that nobody asked for by name. They are renewed, but not while the engine is away, so
  // they live long; they end with their pod anyway.
  Duration token_life = std::chrono::hours(24 * 365);
  const Clock* clock = nullptr;  // must outlive the planner; null: the machine's
};

// Thread-safe. Keeps a watch on Services, for their variables.
class Planner {
 public:
  // The client must outlive it.
  Planner(client::Client& client, PlannerOptions options);
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;
  ~Planner();

  // `image` is what Images found for the container. Throws Error: not_found and invalid (the spec
  // names what is not there, or asks for what is not given: CreateContainerConfigError with this
  // text), unavailable (a volume is not there yet; the pod stays Pending).
  ContainerPlan plan(const Json& pod, const Json& container, const image::Image& image);
  // For a container that runs. Those of a subPath are not among them: they stay as they were.
  std::vector<ChangingFiles> plan_changing_files(const Json& pod, const Json& container);
  // A pod is gone, and so is what was kept for it.
  void forget(std::string_view pod_uid);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether a container of this image would run a command of its own.
bool runs_command(const Json& container, const image::Image& image);

// What the pod as a whole asks for that no container here can have (hostNetwork and the like).
// Nothing: it can run. For who admits pods, before anything is made.
std::optional<std::string> refusal_of(const Json& pod);

// Runtime volumes that live and go with a pod: those of its emptyDirs.
std::string pod_volume_name(std::string_view pod_uid, std::string_view volume);
std::vector<std::string> pod_volume_names(const Json& pod);
// The uid in such a name; nothing for other volumes.
std::optional<std::string> pod_uid_of_volume(std::string_view name);

// What the pod is called inside: spec.hostname, or the name as far as a label may go.
std::string hostname_of(const Json& pod);

}  // namespace hearth::node
