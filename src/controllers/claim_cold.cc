#include "controllers/claim_cold.h"

#include <set>
#include <string>

#include <fmt/format.h>

#include "base/json_text.h"
#include "controllers/blueprint.h"
#include "controllers/claim_files.h"
#include "controllers/claim_metadata.h"
#include "controllers/claim_problem.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using model::array_at;
using model::text_at;

const JsonArray kNone;

const JsonArray& items_at(const Json& value, model::Path path) {
  const JsonArray* items = array_at(value, path);
  return items ? *items : kNone;
}

JsonArray& make_array(JsonObject& in, std::string_view name) {
  Json& value = in[name];
  if (!value.is_array()) value = JsonArray();
  return value.get_array();
}

[[noreturn]] void refuse_volumes(const std::string& why) {
  throw ClaimProblem("VolumeClaimTemplatesError", why, Retry::when_changed);
}

[[noreturn]] void refuse_environment(std::string_view why) {
  throw ClaimProblem("EnvVarsInjectionRejected",
                     fmt::format("environment variable injection rejected: {}", why),
                     Retry::when_changed);
}

std::string_view volume_name(const Json& volume) {
  return text_at(volume, {"metadata", "name"});
}

void check_volume_names(const JsonArray& volumes, std::string_view before) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const std::string_view name = volume_name(volumes[i]);
    if (name.empty())
      refuse_volumes(
          fmt::format("{}invalid volume claim templates: name at index {} is empty", before, i));
    if (!seen.insert(name).second)
      refuse_volumes(fmt::format("{}invalid volume claim templates: duplicate name {}", before,
                                 json_quote(name)));
  }
}

// Sandboxes know no mountPath: that is the claim's word to its container.
Json without_mount_path(Json volume) {
  if (volume.is_object()) volume.get_object().erase("mountPath");
  return volume;
}

void put_volume(JsonArray& volumes, const Json& volume, bool may_override) {
  for (Json& each : volumes) {
    if (volume_name(each) != volume_name(volume)) continue;
    if (!may_override)
      refuse_volumes(fmt::format(
          "failed to merge volume claim templates: overriding volume claim templates is forbidden "
          "by the template: cannot override template volume {}",
          json_quote(volume_name(volume))));
    each = without_mount_path(volume);
    return;
  }
  volumes.push_back(without_mount_path(volume));
}

// The Allowed policy could not keep a variable from overriding one that nobody has read yet.
void check_environment_sources(const Json& container, std::string_view policy) {
  if (policy == "Allowed" && !items_at(container, {"envFrom"}).empty())
    refuse_environment(
        fmt::format("container {} uses EnvFrom sources; Allowed policy cannot safely prevent "
                    "overriding EnvFrom-provided variables",
                    json_quote(text_at(container, {"name"}))));
}

void put_variable(Json& container, std::string_view name, std::string_view value,
                  std::string_view policy) {
  JsonObject entry{{"name", name}, {"value", value}};
  JsonArray& variables = make_array(container.get_object(), "env");
  for (Json& each : variables) {
    if (text_at(each, {"name"}) != name) continue;
    if (policy != "Overrides")
      fail(Code::conflict,
           "environment variable override is not allowed by the template policy for variable {}",
           json_quote(name));
    each = std::move(entry);  // the whole of it: no valueFrom stays
    return;
  }
  variables.push_back(std::move(entry));
}

Json& target_of(Json& pod_spec, const Json& variable) {
  const std::string_view container = text_at(variable, {"containerName"});
  if (Json* found = find_container(pod_spec, container)) return *found;
  fail(Code::invalid, "target container {} not found in template for environment variable {}",
       json_quote(container), json_quote(text_at(variable, {"name"})));
}

void add_environment(const Json& claim, std::string_view policy, Json& pod_spec) {
  const JsonArray& variables = items_at(claim, {"spec", "env"});
  const JsonArray& sources = items_at(claim, {"spec", "envFrom"});
  const bool wants_more = !items_at(claim, {"spec", "files"}).empty() ||
                          !text_at(claim, {"spec", "workingDir"}).empty();
  if (variables.empty() && sources.empty() && !wants_more) return;
  if (policy != "Allowed" && policy != "Overrides")
    refuse_environment("environment variable injection is not allowed by the template policy");
  for (const Json& variable : variables)
    check_environment_sources(target_of(pod_spec, variable), policy);
  for (const Json& variable : variables)
    put_variable(target_of(pod_spec, variable), text_at(variable, {"name"}),
                 text_at(variable, {"value"}), policy);
  if (sources.empty()) return;
  Json* first = find_container(pod_spec, {});
  if (!first) fail(Code::invalid, "the template has no container");
  check_environment_sources(*first, policy);
  JsonArray& all = make_array(first->get_object(), "envFrom");
  all.insert(all.end(), sources.begin(), sources.end());
}

// What claims bring along besides the environment, for the first container.
void add_directory_and_mounts(const Json& claim, Json& pod_spec) {
  Json* first = find_container(pod_spec, {});
  if (!first) return;
  if (const auto directory = text_at(claim, {"spec", "workingDir"}); !directory.empty())
    first->get_object()["workingDir"] = directory;
  for (const Json& volume : items_at(claim, {"spec", "volumeClaimTemplates"})) {
    const std::string_view path = text_at(volume, {"mountPath"});
    if (path.empty()) continue;
    make_array(first->get_object(), "volumeMounts")
        .push_back(JsonObject{{"name", volume_name(volume)}, {"mountPath", path}});
  }
}

JsonObject cold_metadata(const Json& claim, const Json& sandbox_template) {
  const std::string_view name = model::name_of(sandbox_template);
  JsonObject annotations = access_rules_of(sandbox_template);
  annotations[model::kTemplateRefAnnotation] = name;
  if (const auto trace = model::annotation_of(claim, model::kTraceContextAnnotation);
      !trace.empty())
    annotations[model::kTraceContextAnnotation] = trace;
  JsonObject labels{{model::kClaimUidLabel, model::uid_of(claim)},
                    {model::kLaunchTypeLabel, "cold"},
                    {model::kTemplateRefHashLabel, model::name_hash(name)}};
  if (!creator_of(claim).empty()) labels[model::kCreatedByLabel] = creator_of(claim);
  return {{"name", model::name_of(claim)},
          {"namespace", model::namespace_of(claim)},
          {"labels", std::move(labels)},
          {"annotations", std::move(annotations)},
          {"ownerReferences", JsonArray{model::controller_reference(claim)}}};
}

}  // namespace

Json* find_container(Json& pod_spec, std::string_view name) {
  Json* regular = model::find(pod_spec, {"containers"});
  if (!regular || !regular->is_array() || regular->get_array().empty()) return nullptr;
  if (name.empty()) return &regular->get_array().front();
  for (const std::string_view list : {"initContainers", "containers"}) {
    Json* containers = model::find(pod_spec, {list});
    if (!containers || !containers->is_array()) continue;
    for (Json& each : containers->get_array())
      if (text_at(each, {"name"}) == name) return &each;
  }
  return nullptr;
}

JsonArray merged_volume_claims(const Json& claim, const Json& sandbox_template) {
  JsonArray merged = items_at(sandbox_template, {"spec", "volumeClaimTemplates"});
  const JsonArray& own = items_at(claim, {"spec", "volumeClaimTemplates"});
  check_volume_names(merged, own.empty() ? "invalid volume claim templates in template: "
                                         : "failed to merge volume claim templates: template: ");
  if (own.empty()) return merged;
  check_volume_names(own, "failed to merge volume claim templates: claim: ");
  const std::string_view policy = text_at(sandbox_template, {"spec", "volumeClaimTemplatesPolicy"});
  if (policy.empty() || policy == "Disallowed")
    refuse_volumes(
        "failed to merge volume claim templates: volume claim templates are disallowed by the "
        "template");
  for (const Json& volume : own) put_volume(merged, volume, policy == "Overrides");
  return merged;
}

void check_wishes(const Json& claim, const Json& sandbox_template) {
  merged_volume_claims(claim, sandbox_template);
  const Json* pod_spec = model::find(sandbox_template, {"spec", "podTemplate", "spec"});
  Json copy = pod_spec ? *pod_spec : Json(JsonObject());
  add_environment(claim, text_at(sandbox_template, {"spec", "envVarsInjectionPolicy"}), copy);
}

Json cold_sandbox(const Json& claim, const Json& sandbox_template) {
  Json spec = blueprint_of(sandbox_template).spec;
  JsonArray volumes = merged_volume_claims(claim, sandbox_template);
  if (!volumes.empty()) spec.get_object()["volumeClaimTemplates"] = std::move(volumes);
  Json& pod = spec.get_object()["podTemplate"];
  pod.get_object()["metadata"] = claimed_pod_metadata(claim, sandbox_template, &sandbox_template);
  model::make_object_at(pod, {"spec"});
  Json& pod_spec = pod.get_object()["spec"];
  add_environment(claim, text_at(sandbox_template, {"spec", "envVarsInjectionPolicy"}), pod_spec);
  add_directory_and_mounts(claim, pod_spec);
  add_files(claim, pod);
  return JsonObject{{"apiVersion", "agents.x-k8s.io/v1beta1"},
                    {"kind", "Sandbox"},
                    {"metadata", cold_metadata(claim, sandbox_template)},
                    {"spec", std::move(spec)}};
}

}  // namespace hearth::controllers
