// Ephemeral containers: what a pod that runs may be given to look at it with.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "apiserver/kinds_strategies_internal.h"

namespace hearth::apiserver {
namespace {

// Nobody is to rely on them, so what serves others (ports, probes, resources, hooks) they have not.
constexpr std::array<std::string_view, 17> kAllowed = {"name",
                                                       "image",
                                                       "command",
                                                       "args",
                                                       "workingDir",
                                                       "envFrom",
                                                       "env",
                                                       "volumeMounts",
                                                       "volumeDevices",
                                                       "terminationMessagePath",
                                                       "securityContext",
                                                       "terminationMessagePolicy",
                                                       "stdin",
                                                       "imagePullPolicy",
                                                       "stdinOnce",
                                                       "tty",
                                                       "targetContainerName"};
constexpr std::string_view kNot = "cannot be set for an Ephemeral Container";

bool is_empty(const Json& value) {
  if (const auto* object = value.if_object()) return object->empty();
  if (const auto* array = value.if_array()) return array->empty();
  return is_unset(&value);
}

bool has_container(const JsonObject& spec, std::string_view name) {
  for (const std::string_view list : {"containers", "initContainers"})
    for (const Item container : items_in(spec, list, ""))
      if (text_in(container.object, "name") == name) return true;
  return false;
}

const JsonObject* find_ephemeral(const JsonObject& spec, std::string_view name) {
  for (const Item container : items_in(spec, "ephemeralContainers", ""))
    if (text_in(container.object, "name") == name) return &container.object;
  return nullptr;
}

}  // namespace

void check_ephemeral_containers(Errors& errors, const JsonObject& spec) {
  for (const Item container : items_in(spec, "ephemeralContainers", "spec.ephemeralContainers")) {
    for (const auto& [name, value] : container.object)
      if (std::ranges::find(kAllowed, std::string_view(name)) == kAllowed.end() && !is_empty(value))
        errors.push_back(model::forbidden(container.at(name), std::string(kNot)));
    const std::string mounts = container.at("volumeMounts");
    for (const Item mount : items_in(container.object, "volumeMounts", mounts))
      for (const std::string_view part : {"subPath", "subPathExpr"})
        if (!is_unset(mount.object, part))
          errors.push_back(model::forbidden(mount.at(part), std::string(kNot)));
    const std::string_view target = text_in(container.object, "targetContainerName");
    if (!target.empty() && !has_container(spec, target))
      errors.push_back(not_found(container.at("targetContainerName"), target));
  }
}

void check_ephemeral_update(Errors& errors, const JsonObject& next, const JsonObject& old) {
  for (const Item before : items_in(old, "ephemeralContainers", "")) {
    const std::string_view name = text_in(before.object, "name");
    const JsonObject* now = find_ephemeral(next, name);
    if (now && model::is_same(*now, before.object)) continue;
    errors.push_back(model::forbidden(
        "spec.ephemeralContainers", fmt::format("existing ephemeral containers {} may not be {}\n",
                                                json_quote(name), now ? "changed" : "removed")));
  }
}

void keep_only_ephemeral_containers(JsonObject& next, const JsonObject& old) {
  const Json* found = next.if_contains("ephemeralContainers");
  const Json kept = found ? *found : Json();
  next = old;
  if (kept.is_null())
    next.erase("ephemeralContainers");
  else
    next["ephemeralContainers"] = kept;
}

}  // namespace hearth::apiserver
