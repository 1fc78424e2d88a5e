#include "tenants/default_templates.h"

#include <array>
#include <string_view>
#include <utility>

#include "client/kinds.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "tenants/made_internal.h"
#include "tenants/teams.h"

namespace hearth::tenants {
namespace {

using model::Json;
using model::JsonArray;
using model::JsonObject;

// Where commands of the image `host` run as: its account `user`, as in E2B's own templates.
constexpr int kUser = 1000;
// Who may become root there: whom agents expect to be, where the image has him.
constexpr std::string_view kSudoer = "user";

struct Kind {
  std::string_view name;
  std::string_view surfaces;
};
constexpr std::array<Kind, 2> kTemplates = {
    {{"base", "envd"}, {"code-interpreter-v1", "envd,code"}}};

// Limits are those of E2B's own. Requests are next to nothing: what waits uses next to nothing, and
// a machine may have hundreds.
JsonObject resources() {
  return {{"limits", JsonObject{{"cpu", "2"}, {"memory", "1Gi"}}},
          {"requests", JsonObject{{"cpu", "1m"}, {"memory", "4Mi"}}}};
}

// No command: the guest and its surfaces are the service.
JsonObject container(const std::string& image) {
  return {{"name", "main"}, {"image", image}, {"resources", resources()}};
}

JsonObject pod_spec(const std::string& image) {
  JsonObject spec{{"automountServiceAccountToken", false},
                  {"enableServiceLinks", false},
                  {"terminationGracePeriodSeconds", 0},
                  {"containers", JsonArray{container(image)}}};
  if (image == "host") spec["securityContext"] = JsonObject{{"runAsUser", kUser}};
  return spec;
}

JsonObject metadata(std::string_view name) {
  return {{"name", name}, {"namespace", kDefaultTeam}};
}

Json template_object(const Kind& kind, const std::string& image) {
  JsonObject meta = metadata(kind.name);
  meta["labels"] = JsonObject{{model::kPublicLabel, "true"}};
  const JsonObject pod_meta{{"annotations", JsonObject{{model::kSurfacesAnnotation, kind.surfaces},
                                                       {model::kSudoAnnotation, kSudoer}}}};
  return JsonObject{
      {"apiVersion", client::kSandboxTemplates.api_version()},
      {"kind", "SandboxTemplate"},
      {"metadata", std::move(meta)},
      {"spec",
       JsonObject{{"networkPolicyManagement", "Unmanaged"},
                  {"podTemplate", JsonObject{{"metadata", pod_meta}, {"spec", pod_spec(image)}}}}}};
}

Json pool_object(const Kind& kind, std::uint32_t replicas) {
  JsonObject meta = metadata(kind.name);
  meta["annotations"] = JsonObject{{model::kNamesAnnotation, "id"}};
  return JsonObject{{"apiVersion", client::kSandboxWarmPools.api_version()},
                    {"kind", "SandboxWarmPool"},
                    {"metadata", std::move(meta)},
                    {"spec", JsonObject{{"replicas", replicas},
                                        {"sandboxTemplateRef", JsonObject{{"name", kind.name}}}}}};
}

}  // namespace

void make_default_templates(client::Client& client, const DefaultTemplates& wanted) {
  std::uint32_t warm = wanted.warm;
  for (const Kind& kind : kTemplates) {
    settle_made(client, client::kSandboxTemplates, template_object(kind, wanted.image), true);
    settle_made(client, client::kSandboxWarmPools, pool_object(kind, warm), warm > 0);
    warm /= 4;
  }
}

}  // namespace hearth::tenants
