#include "e2b/view.h"

#include "base/error.h"
#include "controllers/sandbox_pod.h"
#include "e2b/network_wish.h"
#include "e2b/state.h"
#include "e2b/template_reference.h"
#include "e2b/words.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/quantity.h"
#include "model/read_json.h"

namespace hearth::e2b {
namespace {

constexpr std::int64_t kMib = 1 << 20;

std::optional<model::Quantity> limit_of(const Json& object, std::string_view name) {
  const auto* containers = model::array_at(object, {"spec", "podTemplate", "spec", "containers"});
  if (containers == nullptr || containers->empty()) return {};
  const Json* value = model::find(containers->front(), {"resources", "limits", name});
  if (value == nullptr) return {};
  return model::Quantity::parse(value->is_string() ? std::string(value->get_string())
                                                   : model::to_text(*value));
}

std::int64_t mib_of(const std::optional<model::Quantity>& amount, std::int64_t otherwise) {
  return amount ? (amount->units() + kMib - 1) / kMib : otherwise;
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

JsonObject to_json(const Texts& texts) {
  JsonObject all;
  for (const auto& [name, value] : texts) all[name] = value;
  return all;
}

JsonObject lifecycle_of(const Json& sandbox) {
  return {{"autoResume", model::annotation_of(sandbox, model::kAutoResumeAnnotation) == "true"},
          {"onTimeout", pauses_at_end(sandbox) ? "pause" : "kill"}};
}

}  // namespace

Size size_of(const Core& core, const Json& object) {
  Size size;
  const auto cpu = limit_of(object, "cpu");
  size.cpu_millis = cpu ? cpu->thousandths() : 0;
  size.cpu_count = cpu ? std::max<std::int64_t>(cpu->units(), 1) : core.options.cpu_count;
  size.memory_mib = mib_of(limit_of(object, "memory"), core.options.memory_mib);
  // Without a disk of its own what it writes is memory.
  size.disk_mib = mib_of(limit_of(object, "ephemeral-storage"), size.memory_mib);
  return size;
}

Texts metadata_of(const Json& sandbox) {
  const std::string_view text = model::annotation_of(sandbox, model::kMetadataAnnotation);
  if (text.empty()) return {};
  Texts all;
  try {
    const Json value = model::read_json(text);
    if (!value.is_object()) return {};
    for (const auto& [name, each] : value.get_object())
      if (each.is_string()) all.emplace(std::string(name), std::string(each.get_string()));
  } catch (const Error&) {
    // Somebody else wrote it: then there is none.
    return {};
  }
  return all;
}

std::string template_id_of(const Json& sandbox) {
  const std::string_view reference = model::annotation_of(sandbox, model::kTemplateRefAnnotation);
  return std::string(reference.empty() ? model::label_of(sandbox, model::kTemplateLabel)
                                       : reference);
}

std::string origin_of(const Json& sandbox) {
  const std::string_view origin = model::annotation_of(sandbox, kMadeOfAnnotation);
  return origin.empty() ? template_id_of(sandbox) : std::string(origin);
}

bool is_made_of(const Json& sandbox, const Json& sandbox_template) {
  const std::string origin = origin_of(sandbox);
  return origin == model::key_of(sandbox_template).text() ||
         origin == template_id(sandbox_template);
}

JsonObject sandbox_answer(const Core& core, const Json& sandbox) {
  const std::string_view id = model::name_of(sandbox);
  const std::string template_id = template_id_of(sandbox);
  JsonObject answer{{"templateID", template_id}, {"sandboxID", id},
                    {"clientID", kClientId},     {"envdVersion", core.options.envd_version},
                    {"alias", template_id},      {"domain", text_or_null(core.options.domain)}};
  if (is_secure(sandbox))
    answer["envdAccessToken"] = core.parts.tokens.envd_token(model::key_of(sandbox));
  if (model::annotation_of(sandbox, model::kTrafficAnnotation) == "token")
    answer["trafficAccessToken"] = core.parts.tokens.traffic_token(model::key_of(sandbox));
  return answer;
}

JsonObject listed_sandbox(const Core& core, const Json& sandbox) {
  const Size size = size_of(core, sandbox);
  const std::string template_id = template_id_of(sandbox);
  const Time started = started_at(sandbox).value_or(Time());
  return {{"templateID", template_id},
          {"sandboxID", model::name_of(sandbox)},
          {"clientID", kClientId},
          {"startedAt", time_text(started)},
          {"endAt", time_text(end_at(sandbox).value_or(started))},
          {"cpuCount", size.cpu_count},
          {"memoryMB", size.memory_mib},
          {"diskSizeMB", size.disk_mib},
          {"state", state_text(state_of(sandbox))},
          {"envdVersion", core.options.envd_version},
          {"alias", template_id},
          {"metadata", to_json(metadata_of(sandbox))}};
}

JsonObject sandbox_detail(const Core& core, const Json& sandbox) {
  JsonObject detail = listed_sandbox(core, sandbox);
  detail["domain"] = text_or_null(core.options.domain);
  detail["lifecycle"] = lifecycle_of(sandbox);
  if (state_of(sandbox) == State::paused)
    detail["pauseMode"] = controllers::is_suspended(sandbox) ? "filesystem" : "full";
  if (is_secure(sandbox))
    detail["envdAccessToken"] = core.parts.tokens.envd_token(model::key_of(sandbox));
  const std::string_view internet = model::annotation_of(sandbox, kInternetAnnotation);
  detail["allowInternetAccess"] = internet.empty() ? Json(nullptr) : Json(internet == "true");
  if (JsonObject network = network_of(sandbox); !network.empty())
    detail["network"] = std::move(network);
  return detail;
}

}  // namespace hearth::e2b
