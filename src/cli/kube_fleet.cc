// `hearth pool` and `hearth template`: what claims take from.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/kube_text.h"
#include "client/http_client.h"
#include "client/kinds.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "model/template_ref.h"

namespace hearth::cli {
namespace {

using model::Json;

// As much as kube-apiserver takes in one request.
constexpr std::size_t kMostFileBytes = 3 << 20;

int say_name(const Json& object) {
  std::fputs(fmt::format("{}\n", model::name_of(object)).c_str(), stdout);
  return 0;
}

std::string read_text(std::istream& stream, const std::string& path) {
  std::string text(kMostFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMostFileBytes)
    fail(Code::exhausted, "'{}' is larger than {} bytes", path, kMostFileBytes);
  return text;
}

Json read_template(const std::string& path) {
  std::string text;
  if (path == "-") {
    text = read_text(std::cin, path);
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw_errno("open '{}'", path);
    text = read_text(file, path);
  }
  Json object;
  try {
    object = model::parse_yaml(text).value;
  } catch (const Error& error) {
    fail(Code::invalid, "'{}': {}", path, error.what());
  }
  if (model::text_at(object, {"kind"}) != "SandboxTemplate")
    fail(Code::invalid, "'{}' is no SandboxTemplate: its kind is '{}'", path,
         model::text_at(object, {"kind"}));
  // What 'show' prints can be made again.
  for (const std::string_view member :
       {"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"})
    model::erase_at(object, {"metadata", member});
  return object;
}

model::JsonObject container_of(const TemplateCreateOptions& options) {
  model::JsonObject container{{"name", "main"}, {"image", options.image}};
  if (!options.command.empty())
    container["command"] = model::JsonArray(options.command.begin(), options.command.end());
  model::JsonArray environment;
  for (const std::string& entry : options.environment) {
    const std::size_t equals = entry.find('=');
    environment.push_back(
        model::JsonObject{{"name", entry.substr(0, equals)}, {"value", entry.substr(equals + 1)}});
  }
  if (!environment.empty()) container["env"] = std::move(environment);
  model::JsonObject amounts;
  if (!options.cpu.empty()) amounts["cpu"] = options.cpu;
  if (!options.memory.empty()) amounts["memory"] = options.memory;
  if (!amounts.empty())
    container["resources"] = model::JsonObject{{"requests", amounts}, {"limits", amounts}};
  model::JsonArray ports;
  for (const std::uint16_t port : options.ports)
    ports.push_back(model::JsonObject{{"containerPort", port}});
  if (!ports.empty()) container["ports"] = std::move(ports);
  return container;
}

}  // namespace

Json make_template(const TemplateCreateOptions& options, const std::string& ns) {
  Json object =
      options.file.empty()
          ? Json(model::JsonObject{{"apiVersion", client::kSandboxTemplates.api_version()},
                                   {"kind", "SandboxTemplate"}})
          : read_template(options.file);
  model::JsonObject& metadata = model::make_object_at(object, {"metadata"});
  if (!options.name.empty()) metadata["name"] = options.name;
  const bool has_namespace = options.cluster.ns.empty() && metadata.contains("namespace");
  if (!has_namespace) metadata["namespace"] = ns;
  if (!options.file.empty()) return object;
  model::make_object_at(object, {"spec", "podTemplate", "spec"})["containers"] =
      model::JsonArray{container_of(options)};
  if (options.is_public)
    model::make_object_at(object, {"metadata", "labels"})[model::kPublicLabel] = "true";
  const auto annotate_pods = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    model::make_object_at(object, {"spec", "podTemplate", "metadata", "annotations"})[name] = value;
  };
  annotate_pods(model::kSurfacesAnnotation, options.surfaces);
  annotate_pods(model::kSudoAnnotation, options.sudoers);
  model::JsonObject& spec = model::make_object_at(object, {"spec"});
  if (!options.ports.empty()) spec["service"] = true;
  if (!options.env_policy.empty()) spec["envVarsInjectionPolicy"] = options.env_policy;
  return object;
}

int create_template(const TemplateCreateOptions& options) {
  Cluster cluster(options.cluster);
  return say_name(
      cluster.api->create(client::kSandboxTemplates, make_template(options, cluster.ns), {}));
}

int create_pool(const PoolCreateOptions& options) {
  Cluster cluster(options.cluster);
  Json pool = model::JsonObject{
      {"apiVersion", client::kSandboxWarmPools.api_version()},
      {"kind", "SandboxWarmPool"},
      {"metadata", model::JsonObject{{"name", options.name}, {"namespace", cluster.ns}}},
      {"spec", model::JsonObject{
                   {"replicas", options.replicas},
                   {"sandboxTemplateRef", model::JsonObject{{"name", options.sandbox_template}}}}}};
  if (options.names_ids)
    model::make_object_at(pool, {"metadata", "annotations"})[model::kNamesAnnotation] = "id";
  const model::Key wanted = model::template_key_of(pool);
  const auto found = cluster.api->find(client::kSandboxTemplates, wanted.ns, wanted.name);
  const bool has_template = found && model::is_usable_from(cluster.ns, *found);
  const int code = say_name(cluster.api->create(client::kSandboxWarmPools, pool, {}));
  if (!has_template)
    std::fputs(fmt::format("there is no {}template '{}' in the namespace '{}' yet: the pool waits "
                           "for it\n",
                           wanted.ns == cluster.ns ? "" : "public ", wanted.name, wanted.ns)
                   .c_str(),
               stderr);
  return code;
}

int scale_pool(const PoolScaleOptions& options) {
  Cluster cluster(options.cluster);
  const Json patch = model::JsonObject{{"spec", model::JsonObject{{"replicas", options.replicas}}}};
  return say_name(cluster.api->patch(client::kSandboxWarmPools, cluster.ns, options.name,
                                     client::PatchKind::merge, patch, {}));
}

}  // namespace hearth::cli
