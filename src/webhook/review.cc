#include "webhook/review.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_text.h"
#include "model/conversion.h"
#include "model/json.h"
#include "model/meta.h"

namespace hearth::webhook {
namespace {

using model::Json;
using model::JsonArray;
using model::JsonObject;

constexpr std::string_view kReviewVersion = "apiextensions.k8s.io/v1";
constexpr std::string_view kReviewKind = "ConversionReview";
// It goes into a Status and into logs; what it quotes came from outside.
constexpr std::size_t kMostMessage = 1024;

struct GroupVersion {
  std::string group;
  std::string version;
};

// Only the two versions that there are.
GroupVersion parse_group_version(std::string_view text) {
  const std::size_t slash = text.find('/');
  GroupVersion parsed{std::string(text.substr(0, slash)), {}};
  if (slash != std::string_view::npos) parsed.version = text.substr(slash + 1);
  if (parsed.version != "v1alpha1" && parsed.version != "v1beta1")
    fail(Code::invalid, "'{}' is no version that is converted; v1alpha1 and v1beta1 are", text);
  return parsed;
}

// A conversion that set it right would hide the mistake from the server's own validation.
void check_part(const Json& object, model::Path path, std::string_view name) {
  const Json* part = model::find(object, path);
  if (part && !part->is_object() && !part->is_null()) fail(Code::invalid, "{} is no object", name);
}

void check_object(const Json& object, const GroupVersion& wanted) {
  if (!object.is_object()) fail(Code::invalid, "it is no object");
  const GroupVersion given = parse_group_version(model::text_at(object, {"apiVersion"}));
  const std::string_view kind = model::text_at(object, {"kind"});
  if (!model::has_conversion(given.group, kind))
    fail(Code::invalid, "there is no conversion for kind '{}' of group '{}'", kind, given.group);
  if (given.group != wanted.group)
    fail(Code::invalid, "it cannot become one of group '{}'", wanted.group);
  if (!model::object_at(object, {"metadata"})) fail(Code::invalid, "metadata is no object");
  check_part(object, {"metadata", "annotations"}, "metadata.annotations");
  check_part(object, {"spec"}, "spec");
  check_part(object, {"status"}, "status");
}

// "Sandbox 'team/box'"; the place in the list for what has no name.
std::string name_of(const Json& object, std::size_t place) {
  const std::string_view kind = model::text_at(object, {"kind"});
  const model::Key key = model::key_of(object);
  if (kind.empty() || key.name.empty()) return fmt::format("object {}", place);
  return fmt::format("{} '{}'", kind, key.ns.empty() ? key.name : key.text());
}

void convert(Json& object, const GroupVersion& wanted) {
  check_object(object, wanted);
  if (wanted.version == "v1beta1")
    model::to_v1beta1(object);
  else
    model::to_v1alpha1(object);
}

JsonArray convert_all(Json& request) {
  const GroupVersion wanted = parse_group_version(model::text_at(request, {"desiredAPIVersion"}));
  Json* objects = model::find(request, {"objects"});
  if (!objects || !objects->is_array()) fail(Code::invalid, "the review has no list of objects");
  JsonArray converted = std::move(objects->get_array());
  for (std::size_t i = 0; i < converted.size(); ++i) {
    try {
      convert(converted[i], wanted);
    } catch (const Error& error) {
      fail(error.code(), "{}: {}", name_of(converted[i], i), error.what());
    }
  }
  return converted;
}

JsonObject answer(Json& request) {
  JsonObject response{{"uid", model::text_at(request, {"uid"})}};
  try {
    response["convertedObjects"] = convert_all(request);
    response["result"] = JsonObject{{"status", "Success"}};
  } catch (const Error& error) {
    const std::string message = to_utf8(std::string_view(error.what()).substr(0, kMostMessage));
    response["convertedObjects"] = JsonArray();
    response["result"] = JsonObject{{"status", "Failed"}, {"message", message}};
  }
  return response;
}

}  // namespace

std::string answer_review(std::string_view review) {
  Json given = model::parse_json(review).value;
  if (model::text_at(given, {"apiVersion"}) != kReviewVersion ||
      model::text_at(given, {"kind"}) != kReviewKind)
    fail(Code::invalid, "expected a {} of {}", kReviewKind, kReviewVersion);
  Json* request = model::find(given, {"request"});
  if (!request || model::text_at(*request, {"uid"}).empty())
    fail(Code::invalid, "the review has no request with a uid");
  return model::to_text(JsonObject{
      {"apiVersion", kReviewVersion}, {"kind", kReviewKind}, {"response", answer(*request)}});
}

}  // namespace hearth::webhook
