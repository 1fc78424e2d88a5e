#include "controllers/pod_guest.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/front_door.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using model::JsonArray;
using model::JsonObject;

bool is_off(const Json& pod, const Json& sandbox) {
  return model::annotation_of(sandbox, model::kGuestAnnotation) == "off" ||
         model::annotation_of(pod, model::kGuestAnnotation) == "off" ||
         model::annotation_of(pod, model::kSurfacesAnnotation) == "none";
}

bool has_name(const Json& spec, std::string_view list, std::string_view name) {
  const JsonArray* items = model::array_at(spec, {list});
  return items != nullptr && std::ranges::any_of(*items, [&](const Json& each) {
           return model::text_at(each, {"name"}) == name;
         });
}

// Not on the ports of a machine, and not beside what is called as ours is: somebody did it by hand.
bool is_room_for_guest(const Json& spec) {
  return !model::is_true_at(spec, {"hostNetwork"}) &&
         model::text_at(spec, {"os", "name"}) != "windows" &&
         !has_name(spec, "containers", kGuestName) &&
         !has_name(spec, "initContainers", kGuestName) && !has_name(spec, "volumes", kGuestName);
}

bool has_words(const Json& container, std::string_view list) {
  const JsonArray* words = model::array_at(container, {list});
  return words != nullptr && !words->empty();
}

// Ports that containers say they listen on, as the guest is told of them.
std::string declared_ports(const Json& spec) {
  std::set<std::int64_t> ports;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const JsonArray* containers = model::array_at(spec, {list});
    if (containers == nullptr) continue;
    for (const Json& container : *containers) {
      const JsonArray* declared = model::array_at(container, {"ports"});
      if (declared == nullptr) continue;
      for (const Json& each : *declared) {
        const auto port = model::number_at(each, {"containerPort"});
        if (port && *port > 0 && *port <= 65535) ports.insert(*port);
      }
    }
  }
  return fmt::format("{}", fmt::join(ports, ","));
}

// What the init container may use is what the first container may: the two never run at once, so
// the pod needs no more than before, and its quality of service stays what it was.
Json resources_like(const Json& container) {
  Json resources = JsonObject();
  for (const std::string_view list : {"requests", "limits"}) {
    const JsonObject* given = model::object_at(container, {"resources", list});
    if (given == nullptr) continue;
    for (const auto& [name, amount] : *given)
      if (name == "cpu" || name == "memory" || name == "ephemeral-storage")
        model::make_object_at(resources, {list})[name] = amount;
  }
  return resources;
}

// As the strictest of the Pod Security Standards asks for.
JsonObject restricted() {
  constexpr std::int64_t kNobody = 65532;
  return {{"allowPrivilegeEscalation", false},
          {"capabilities", JsonObject{{"drop", JsonArray{"ALL"}}}},
          {"readOnlyRootFilesystem", true},
          {"runAsNonRoot", true},
          {"runAsUser", kNobody},
          {"runAsGroup", kNobody},
          {"seccompProfile", JsonObject{{"type", "RuntimeDefault"}}}};
}

Json installer(const Json& container, std::string_view image) {
  JsonObject made{
      {"name", kGuestName},
      {"image", image},
      {"command", JsonArray{"/hearth-guest", "install", kGuestFolder}},
      {"securityContext", restricted()},
      {"volumeMounts", JsonArray{JsonObject{{"name", kGuestName}, {"mountPath", kGuestFolder}}}}};
  if (Json resources = resources_like(container); !resources.get_object().empty())
    made["resources"] = std::move(resources);
  return made;
}

// The arguments stay where they are: they follow the command in any case.
JsonArray guest_command(const Json& pod, const Json& container) {
  JsonArray command{fmt::format("{}/hearth-guest", kGuestFolder), "serve"};
  if (const std::string_view words = model::annotation_of(pod, model::kSurfacesAnnotation);
      !words.empty()) {
    command.emplace_back(fmt::format("--surfaces={}", words));
  } else if (const std::string ports = declared_ports(pod.at("spec")); !ports.empty()) {
    command.emplace_back(fmt::format("--taken-ports={}", ports));
  }
  if (const JsonArray* given = model::array_at(container, {"command"});
      given != nullptr && !given->empty()) {
    command.emplace_back("--");
    command.insert(command.end(), given->begin(), given->end());
  }
  return command;
}

JsonArray& list_in(JsonObject& object, std::string_view name) {
  Json& list = object[name];
  if (!list.is_array()) list = JsonArray();
  return list.get_array();
}

}  // namespace

void add_guest(Json& pod, const Json& sandbox, std::string_view image) {
  if (image.empty() || is_off(pod, sandbox)) return;
  JsonObject& spec = model::make_object_at(pod, {"spec"});
  Json* containers = spec.if_contains("containers");
  if (containers == nullptr || !containers->is_array() || containers->get_array().empty()) return;
  Json& first = containers->get_array().front();
  if (!first.is_object() || !is_room_for_guest(pod.at("spec"))) return;
  // Arguments alone are for the image's own entrypoint, which nobody here knows.
  if (has_words(first, "args") && !has_words(first, "command")) return;

  JsonArray command = guest_command(pod, first);
  Json install = installer(first, image);
  JsonObject& container = first.get_object();
  container["command"] = std::move(command);
  list_in(container, "volumeMounts")
      .push_back(JsonObject{{"name", kGuestName}, {"mountPath", kGuestFolder}, {"readOnly", true}});
  JsonArray& init = list_in(spec, "initContainers");
  init.insert(init.begin(), std::move(install));
  list_in(spec, "volumes")
      .push_back(JsonObject{{"name", kGuestName}, {"emptyDir", JsonObject{{"sizeLimit", "64Mi"}}}});
}

}  // namespace hearth::controllers
