// POST /sandboxes/{id}/fork: sandboxes with the same files, each with a life of its own.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "e2b/answers.h"
#include "e2b/birth.h"
#include "e2b/kept_images.h"
#include "e2b/outfitting.h"
#include "e2b/routes.h"
#include "e2b/state.h"
#include "e2b/view.h"
#include "e2b/words.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "net/workers.h"

namespace hearth::e2b {
namespace {

constexpr std::int64_t kUsualTimeout = 15;
constexpr std::int64_t kMostForks = 100;
// Each waits for one sandbox to start; the machine starts no more of them at a time.
constexpr std::size_t kMostAtOnce = 8;

// What a fork has from its source; the rest is its own.
constexpr std::array<std::string_view, 11> kInherited = {model::kTemplateRefAnnotation,
                                                         model::kMetadataAnnotation,
                                                         model::kOnTimeoutAnnotation,
                                                         model::kAutoResumeAnnotation,
                                                         model::kAccessAnnotation,
                                                         model::kTrafficAnnotation,
                                                         model::kMaskHostAnnotation,
                                                         model::kHttpsPortsAnnotation,
                                                         model::kEgressAnnotation,
                                                         kTimeoutPauseAnnotation,
                                                         kMadeOfAnnotation};

bool is_inherited_label(std::string_view key) {
  return key == model::kFrontLabel || key == model::kTemplateLabel ||
         key.starts_with(model::kMetadataLabelPrefix);
}

// A merge patch, as marks_of makes it of a request.
Json marks_like(const Json& sandbox, std::int64_t timeout) {
  JsonObject labels;
  if (const JsonObject* all = model::object_at(sandbox, {"metadata", "labels"}))
    for (const auto& [key, value] : *all)
      if (is_inherited_label(key)) labels[key] = value;
  JsonObject annotations{{kTimeoutAnnotation, std::to_string(timeout)}};
  const auto inherit = [&](std::string_view key) {
    if (const auto value = model::annotation_of(sandbox, key); !value.empty())
      annotations[key] = value;
  };
  std::ranges::for_each(kInherited, inherit);
  inherit(kInternetAnnotation);
  return JsonObject{{"metadata", JsonObject{{"labels", std::move(labels)},
                                            {"annotations", std::move(annotations)}}}};
}

Json fork_once(Core& core, const Call& call, const Birth& birth) {
  try {
    core.rates.admit(call.holder);
    Census::Place place = core.census.admit(call.holder);
    return JsonObject{{"sandbox", sandbox_answer(core, *give_birth(core, birth, place))}};
  } catch (...) {
    // The others may come all the same.
    const http::Response problem = answer_current_exception(call.request);
    return JsonObject{{"error", model::parse_json(problem.body).value}};
  }
}

// `one` is called on several threads.
model::JsonArray fork_all(std::size_t count, const std::function<Json()>& one) {
  std::vector<Json> results(count);
  std::atomic<std::size_t> next = 0;
  {
    const net::Workers::Aside aside;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(count, kMostAtOnce); ++i)
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < count; at = next++) results[at] = one();
      });
  }
  return model::JsonArray(results.begin(), results.end());
}

http::Response fork(Core& core, KeptImages& images, const Call& call) {
  const Body body = call.body();
  const std::int64_t timeout =
      body.number("timeout", 1, std::numeric_limits<std::int32_t>::max()).value_or(kUsualTimeout);
  const std::int64_t count = body.number("count", 1, kMostForks).value_or(1);
  check_timeout(call.holder, timeout);
  const KeptFiles kept = keep_files(core, images, call);
  const Json& source = *kept.sandbox;
  const Birth birth{.ns = call.holder.ns,
                    .template_id = template_id_of(source),
                    .spec = [&] { return spec_from_image(source, *kept.pod, kept.image.name()); },
                    .pool = {},
                    .tenant = call.holder.team,
                    .marks = marks_like(source, timeout),
                    .timeout_seconds = timeout,
                    .environment = read_environment(core, source)};
  return answer_json(
      201, fork_all(static_cast<std::size_t>(count), [&] { return fork_once(core, call, birth); }));
}

}  // namespace

void add_fork_routes(Routes& routes, Core& core, KeptImages& images) {
  routes.add("POST", "/sandboxes/{id}/fork",
             [&core, &images](const Call& call) { return fork(core, images, call); });
}

}  // namespace hearth::e2b
