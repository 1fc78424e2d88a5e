#include "e2b/init_outfitter.h"

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "model/meta.h"
#include "net/client.h"

namespace hearth::e2b {
namespace {

constexpr int kMostTries = 20;
constexpr Duration kBetweenTries = std::chrono::milliseconds(100);
constexpr Duration kPatience = std::chrono::seconds(5);
// An answer of 204 has none; whatever else a pod says is not read.
constexpr std::uint64_t kMostAnswerBytes = 4096;

std::string init_body(const pool::Outfit& outfit) {
  model::JsonObject variables;
  for (const std::string_view each : outfit.environment) {
    const auto equals = each.find('=');
    variables[each.substr(0, equals)] = each.substr(equals + 1);
  }
  model::JsonObject body{{"envVars", std::move(variables)}};
  if (!outfit.token.empty()) body["accessToken"] = outfit.token;
  if (!outfit.user.empty()) body["defaultUser"] = outfit.user;
  if (!outfit.directory.empty()) body["defaultWorkdir"] = outfit.directory;
  return model::to_text(body);
}

}  // namespace

bool InitOutfitter::can_outfit(const model::Json& pod) {
  return model::text_at(pod, {"status", "phase"}) == "Running" &&
         !model::text_at(pod, {"status", "podIP"}).empty();
}

void InitOutfitter::outfit(const model::Json& pod, const pool::Outfit& outfit) {
  net::Client envd(
      net::Endpoint{.host = std::string(model::text_at(pod, {"status", "podIP"})), .port = port_});
  http::Request request;
  request.method = "POST";
  request.target = "/init";
  request.headers.set("Content-Type", "application/json");
  // Said again by somebody who knows it, it is accepted again.
  if (!outfit.token.empty()) request.headers.set("X-Access-Token", outfit.token);
  request.body = init_body(outfit);
  for (int tries = 1;; ++tries) {
    unsigned status = 0;
    try {
      status =
          envd.fetch(request, {.timeout = kPatience, .max_body_bytes = kMostAnswerBytes}).status;
    } catch (const Error& error) {
      // Nobody listens yet.
      if (error.code() != Code::unavailable || tries == kMostTries) throw;
      std::this_thread::sleep_for(kBetweenTries);
      continue;
    }
    if (status / 100 == 2) return;
    fail(Code::unavailable, "envd in pod '{}' refuses its settings with status {}",
         model::key_of(pod).text(), status);
  }
}

}  // namespace hearth::e2b
