#include "controllers/template_reconciler.h"

#include <string>

#include "base/error.h"
#include "client/kinds.h"
#include "controllers/blueprint.h"
#include "controllers/pass_span.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using client::PatchKind;
using model::JsonArray;
using model::JsonObject;

std::string policy_name(const Json& sandbox_template) {
  return std::string(model::name_of(sandbox_template)) + "-network-policy";
}

// Only the router reaches in, on any port.
JsonArray default_ingress() {
  const Json router = {
      {"namespaceSelector",
       {{"matchLabels", {{"kubernetes.io/metadata.name", "agent-sandbox-system"}}}}},
      {"podSelector", {{"matchLabels", {{"app", "sandbox-router"}}}}}};
  return {JsonObject{{"from", JsonArray{router}}}};
}

// The public internet: not the cluster, its nodes' networks, or the cloud's metadata service.
JsonArray default_egress() {
  const auto block = [](std::string_view cidr, JsonArray except) {
    return JsonObject{{"ipBlock", JsonObject{{"cidr", cidr}, {"except", std::move(except)}}}};
  };
  return {JsonObject{{"to", JsonArray{block("0.0.0.0/0", {"10.0.0.0/8", "172.16.0.0/12",
                                                          "192.168.0.0/16", "169.254.0.0/16"}),
                                      block("::/0", {"fc00::/7", "fe80::/10"})}}}};
}

// As the server will keep them, so that a comparison does not find its defaults.
JsonArray with_protocols(JsonArray rules) {
  for (Json& rule : rules) {
    Json* ports = model::find(rule, {"ports"});
    if (ports == nullptr || !ports->is_array()) continue;
    for (Json& port : ports->get_array())
      if (port.is_object() && !port.get_object().contains("protocol"))
        port.get_object()["protocol"] = "TCP";
  }
  return rules;
}

void set_rules(JsonObject& spec, std::string_view direction, const Json& policy) {
  const JsonArray* rules = model::array_at(policy, {direction});
  if (rules != nullptr && !rules->empty()) spec[direction] = with_protocols(*rules);
}

}  // namespace

Json network_policy_spec(const Json& sandbox_template) {
  JsonObject spec{{"podSelector",
                   JsonObject{{"matchLabels",
                               JsonObject{{model::kTemplateRefHashLabel,
                                           model::name_hash(model::name_of(sandbox_template))}}}}},
                  {"policyTypes", JsonArray{"Ingress", "Egress"}}};
  const Json* custom = model::find(sandbox_template, {"spec", "networkPolicy"});
  if (custom != nullptr && custom->is_object()) {
    set_rules(spec, "ingress", *custom);
    set_rules(spec, "egress", *custom);
  } else {
    spec["ingress"] = default_ingress();
    spec["egress"] = default_egress();
  }
  return spec;
}

void TemplateReconciler::watch(reconcile::Controller& controller) {
  controller.watch(templates_);
  controller.watch_owned(network_policies_, model::kExtensionsGroup, "SandboxTemplate");
}

reconcile::Next TemplateReconciler::reconcile(const model::Key& key) {
  const client::Object found = templates_.find(key.ns, key.name);
  // Its policy goes with it: the garbage collector follows the owner.
  if (found == nullptr || model::is_deleting(*found)) return reconcile::kWhenChanged;
  tracing::Span span(tracer_, "ReconcileSandboxTemplate", tracing::context_of(*found));
  describe(span, "sandbox.template", *found);
  traced(span, [&] {
    label(*found);
    if (is_network_unmanaged(*found))
      remove_policy(*found);
    else
      keep_policy(*found);
  });
  return reconcile::kWhenChanged;
}

void TemplateReconciler::label(const Json& sandbox_template) {
  const std::string hash = model::name_hash(model::name_of(sandbox_template));
  if (model::label_of(sandbox_template, model::kTemplateRefHashLabel) == hash) return;
  const Json patch = {{"metadata", {{"labels", {{model::kTemplateRefHashLabel, hash}}}}}};
  client_.patch(client::kSandboxTemplates, model::namespace_of(sandbox_template),
                model::name_of(sandbox_template), PatchKind::merge, patch);
}

void TemplateReconciler::remove_policy(const Json& sandbox_template) {
  const auto ns = model::namespace_of(sandbox_template);
  const std::string name = policy_name(sandbox_template);
  const client::Object policy = network_policies_.find(ns, name);
  if (policy == nullptr || model::is_deleting(*policy)) return;
  if (!model::is_controlled_by(*policy, model::uid_of(sandbox_template))) return;
  try {
    client_.remove(client::kNetworkPolicies, ns, name,
                   {.uid = std::string(model::uid_of(*policy))});
  } catch (const model::StatusError& error) {
    if (error.code() != Code::not_found) throw;
  }
}

void TemplateReconciler::keep_policy(const Json& sandbox_template) {
  const auto ns = model::namespace_of(sandbox_template);
  const std::string name = policy_name(sandbox_template);
  Json spec = network_policy_spec(sandbox_template);
  const client::Object policy = network_policies_.find(ns, name);
  if (policy == nullptr) {
    const Json made = JsonObject{
        {"apiVersion", "networking.k8s.io/v1"},
        {"kind", "NetworkPolicy"},
        {"metadata",
         JsonObject{{"name", name},
                    {"namespace", ns},
                    {"ownerReferences", JsonArray{model::controller_reference(sandbox_template)}}}},
        {"spec", std::move(spec)}};
    client_.create(client::kNetworkPolicies, made);
    return;
  }
  if (!model::is_controlled_by(*policy, model::uid_of(sandbox_template)))
    fail(Code::conflict,
         "refusing to update NetworkPolicy \"{}\" as it is not controlled by SandboxTemplate "
         "\"{}\"",
         name, model::name_of(sandbox_template));
  const Json* present = model::find(*policy, {"spec"});
  if (present != nullptr && model::is_same(*present, spec)) return;
  Json changed = *policy;
  changed.as_object()["spec"] = std::move(spec);
  client_.update(client::kNetworkPolicies, changed);
}

}  // namespace hearth::controllers
