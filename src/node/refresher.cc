#include "node/refresher.h"

#include "base/error.h"
#include "base/log.h"
#include "client/kinds.h"
#include "model/container_id.h"
#include "model/meta.h"
#include "node/life.h"
#include "node/pod_status.h"

namespace hearth::node {
namespace {

using model::JsonArray;
using model::text_at;

constexpr std::string_view kSources = "file-sources";  // the index of pods
constexpr std::string_view kConfigMap = "configmap";
constexpr std::string_view kSecret = "secret";
constexpr unsigned kWorkers = 2;
// As often as kubelets look. Pods take their turns: each has a moment of its own.
constexpr Duration kPeriod = std::chrono::minutes(1);

Duration moment_of(const Json& pod) {
  constexpr std::size_t kParts = 600;
  return kPeriod * (std::hash<std::string_view>()(model::uid_of(pod)) % kParts) / kParts;
}

std::string source_name(std::string_view kind, std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}/{}", kind, ns, name);
}

const JsonArray& volumes_of(const Json& pod) {
  static const JsonArray none;
  const JsonArray* volumes = model::array_at(pod, {"spec", "volumes"});
  return volumes ? *volumes : none;
}

// Those of all kinds of volumes, projected ones included.
void for_each_source(const Json& volume, const std::function<void(const Json& source)>& call) {
  call(volume);
  if (const JsonArray* sources = model::array_at(volume, {"projected", "sources"}))
    for (const Json& source : *sources) call(source);
}

std::vector<std::string> sources_of(const Json& pod) {
  std::vector<std::string> names;
  const std::string_view ns = model::namespace_of(pod);
  for (const Json& volume : volumes_of(pod))
    for_each_source(volume, [&](const Json& source) {
      if (const std::string_view map = text_at(source, {"configMap", "name"}); !map.empty())
        names.push_back(source_name(kConfigMap, ns, map));
      for (const std::string_view member : {"secretName", "name"})
        if (const std::string_view name = text_at(source, {"secret", member}); !name.empty())
          names.push_back(source_name(kSecret, ns, name));
    });
  return names;
}

bool shows_itself(const Json& pod) {
  bool does = false;
  for (const Json& volume : volumes_of(pod))
    for_each_source(volume, [&](const Json& source) {
      does |= model::find(source, {"downwardAPI"}) != nullptr;
    });
  return does;
}

bool has_files(const Json& pod) {
  const Json* token = model::find(pod, {"spec", "automountServiceAccountToken"});
  if (!token || !token->is_bool() || token->get_bool()) return true;
  for (const Json& volume : volumes_of(pod))
    if (model::find(volume, {"projected"})) return true;
  return shows_itself(pod) || !sources_of(pod).empty();
}

bool differs(const Json& before, const Json& now, std::string_view member) {
  const Json* left = model::find(before, {"metadata", member});
  const Json* right = model::find(now, {"metadata", member});
  if (!left || !right) return left != right;
  return !model::is_same(*left, *right);
}

const Json* find_container(const Json& pod, std::string_view name) {
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"})
    if (const JsonArray* all = model::array_at(pod, {"spec", list}))
      for (const Json& one : *all)
        if (text_at(one, {"name"}) == name) return &one;
  return nullptr;
}

}  // namespace

Refresher::Refresher(client::Client& client, runtime::Runtime& runtime, Planner& planner,
                     client::WatchCache& pods, reconcile::EventRecorder& events)
    : runtime_(runtime),
      planner_(planner),
      pods_(pods),
      events_(events),
      config_maps_(client, client::kConfigMaps),
      secrets_(client, client::kSecrets),
      controller_(*this, {.name = "node-files", .workers = kWorkers, .is_background = true}) {
  pods_.add_index(std::string(kSources), sources_of);
  pods_.add_handlers({
      .on_add =
          [this](const client::Object& pod) {
            if (has_files(*pod))
              controller_.queue().add_after(model::key_of(*pod), moment_of(*pod));
          },
      .on_update =
          [this](const client::Object& before, const client::Object& now) {
            const bool is_news =
                differs(*before, *now, "labels") || differs(*before, *now, "annotations");
            if (is_news && shows_itself(*now)) controller_.queue().add(model::key_of(*now));
          },
      .on_delete = [this](const client::Object& pod) { planner_.forget(model::uid_of(*pod)); },
  });
  follow(config_maps_, kConfigMap);
  follow(secrets_, kSecret);
}

void Refresher::follow(client::WatchCache& objects, std::string_view kind) {
  controller_.watch_mapped(objects, [this, kind](const Json& object) {
    std::vector<model::Key> keys;
    const std::string source =
        source_name(kind, model::namespace_of(object), model::name_of(object));
    for (const client::Object& pod : pods_.find_by_index(kSources, source))
      keys.push_back(model::key_of(*pod));
    return keys;
  });
}

void Refresher::start() {
  config_maps_.start();
  secrets_.start();
  controller_.start();
}

void Refresher::stop() {
  controller_.stop();
  config_maps_.stop();
  secrets_.stop();
}

reconcile::Next Refresher::reconcile(const model::Key& key) {
  const client::Object seen = pods_.find(key.ns, key.name);
  if (!seen || model::is_deleting(*seen) || !has_files(*seen)) return reconcile::kWhenChanged;
  const Json& pod = *seen;
  if (is_terminal(text_at(pod, {"status", "phase"}))) return reconcile::kWhenChanged;
  for (const std::string_view list :
       {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    const JsonArray* all = model::array_at(pod, {"status", list});
    if (!all) continue;
    for (const Json& status : *all) {
      const auto id = model::sandbox_of_container(text_at(status, {"containerID"}));
      if (!model::find(status, {"state", "running"}) || id.empty()) continue;
      if (const Json* container = find_container(pod, text_at(status, {"name"})))
        refresh(pod, *container, std::string(id));
    }
  }
  return kPeriod;
}

void Refresher::refresh(const Json& pod, const Json& container, const std::string& sandbox) {
  for (const ChangingFiles& one : planner_.plan_changing_files(pod, container)) {
    try {
      if (!one.problem.empty())
        note(pod, one.problem);
      else
        runtime_.replace_files(sandbox, one.mount);
    } catch (const Error& error) {
      // It has ended, or began when there was nothing to mount: the next one will have it.
      const bool is_gone = error.code() == Code::not_found || error.code() == Code::unavailable;
      if (!is_gone) note(pod, error.what());
    }
  }
}

void Refresher::note(const Json& pod, const std::string& problem) {
  events_.record(pod, reconcile::EventType::warning, "FailedMount", "Mounting", problem);
}

}  // namespace hearth::node
