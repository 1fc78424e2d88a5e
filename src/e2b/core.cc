#include "e2b/core.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/id.h"
#include "client/kinds.h"
#include "controllers/sandbox_pod.h"
#include "e2b/answers.h"
#include "e2b/init_outfitter.h"
#include "e2b/state.h"
#include "e2b/words.h"
#include "model/front_door.h"
#include "model/status.h"
#include "pool/reach.h"
#include "reconcile/manager.h"

namespace hearth::e2b {
namespace {

constexpr std::string_view kByTeam = "e2b-team";

std::vector<std::string> team_of(const Json& sandbox) {
  if (model::label_of(sandbox, model::kFrontLabel) != kFront) return {};
  return {std::string(model::namespace_of(sandbox))};
}

client::WatchCache& indexed(client::WatchCache& cache) {
  cache.add_index(std::string(kByTeam), team_of);
  return cache;
}

Options completed(Options options) {
  if (options.cpu_count == 0) options.cpu_count = std::max(1U, std::thread::hardware_concurrency());
  if (options.memory_mib == 0)
    options.memory_mib = ::sysconf(_SC_PHYS_PAGES) / 1024 * (::sysconf(_SC_PAGESIZE) / 1024);
  return options;
}

bool is_id_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

Core::Core(const Parts& given, Options wanted)
    : parts(given),
      options(completed(std::move(wanted))),
      sandboxes(indexed(given.manager.cache(client::kSandboxes))),
      pods(given.manager.cache(client::kPods)),
      templates(given.manager.cache(client::kSandboxTemplates)),
      pools(given.manager.cache(client::kSandboxWarmPools)),
      census(sandboxes),
      dressed(pods, given.reach),
      sandbox_waits(sandboxes),
      pod_waits(pods),
      template_waits(templates),
      rates(given.clock),
      own_outfitter_(given.reach ? nullptr : std::make_unique<InitOutfitter>(options.envd_port)),
      outfitter_(given.reach ? static_cast<pool::Outfitter*>(given.reach) : own_outfitter_.get()) {}

Core::~Core() = default;

void Core::listen() {
  for (CacheWaits* each : {&sandbox_waits, &pod_waits, &template_waits}) each->listen();
}

Object Core::find_sandbox(std::string_view ns, std::string_view name) const {
  Object found = sandboxes.find(ns, name);
  if (!found || state_of(*found) == State::none || is_over(*found, now())) return nullptr;
  return found;
}

Object Core::get_sandbox(std::string_view ns, std::string_view id) const {
  Object found = find_sandbox(ns, parse_sandbox_id(id));
  if (!found) refuse_unknown_sandbox(id);
  return found;
}

std::vector<Object> Core::list_sandboxes(std::string_view ns) const {
  std::vector<Object> all = sandboxes.find_by_index(kByTeam, ns);
  std::erase_if(all, [&](const Object& each) {
    return state_of(*each) == State::none || is_over(*each, now());
  });
  return all;
}

Object Core::find_pod(const Json& sandbox) const {
  Object pod = pods.find(model::namespace_of(sandbox), controllers::pod_name_of(sandbox));
  if (!pod || !model::is_controlled_by(*pod, model::uid_of(sandbox))) return nullptr;
  return pod;
}

Json Core::patch_sandbox(const Json& sandbox, Json patch, std::string_view version) {
  JsonObject& metadata = model::make_object_at(patch, {"metadata"});
  // Another one of the same name is another sandbox.
  metadata["uid"] = model::uid_of(sandbox);
  if (!version.empty()) metadata["resourceVersion"] = version;
  Json written;
  try {
    written = parts.client.patch(client::kSandboxes, model::namespace_of(sandbox),
                                 model::name_of(sandbox), client::PatchKind::merge, patch);
  } catch (const model::StatusError& error) {
    if (error.status().code == 404) refuse_unknown_sandbox(model::name_of(sandbox));
    throw;
  }
  settle(written);
  return written;
}

void Core::tell(const Json& sandbox) const {
  if (parts.wrote) parts.wrote(sandbox);
}

void Core::tell_deleted(const Json& last) const {
  if (parts.deleted) parts.deleted(last);
}

void Core::settle(const Json& written) {
  tell(written);
  sandbox_waits.until(model::key_of(written), has_version_of(written), options.settle_patience);
}

void Core::announce(const Json& written) {
  tell(written);
  const std::uint64_t version = version_number(written);
  std::uint64_t before = announced_;
  while (before < version && !announced_.compare_exchange_weak(before, version)) {
  }
}

void Core::catch_up() {
  if (parts.hurry_news && !sandbox_waits.has_told(announced_)) parts.hurry_news();
  sandbox_waits.catch_up(announced_, options.settle_patience);
}

std::string parse_sandbox_id(std::string_view text) {
  const std::string_view id = text.substr(0, text.find('-'));
  if (id.empty() || !std::ranges::all_of(id, is_id_character))
    refuse(400, "'{}' is no id of a sandbox", text);
  return std::string(id);
}

bool is_sandbox_id(std::string_view name) {
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, is_id_character);
}

std::string new_sandbox_id() {
  return "i" + random_alphanumeric(20);
}

}  // namespace hearth::e2b
