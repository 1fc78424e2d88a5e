#include "controllers/claim_outfit.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "client/kinds.h"
#include "controllers/claim_adoption.h"
#include "controllers/claim_cold.h"
#include "controllers/claim_files.h"
#include "model/agent_sandbox.h"
#include "model/meta.h"

namespace hearth::controllers {
namespace {

using model::array_at;
using model::JsonObject;
using model::text_at;

const JsonArray kNone;

const JsonArray& items_at(const Json& value, model::Path path) {
  const JsonArray* items = array_at(value, path);
  return items ? *items : kNone;
}

Json get_claimable(const client::ResourceId& kind, std::string_view name, const ReadObject& read) {
  const bool is_secret = kind.plural == client::kSecrets.plural;
  const std::string_view word = is_secret ? "Secret" : "ConfigMap";
  auto found = read(kind, name);
  if (!found) fail(Code::not_found, "{} '{}' not found", word, name);
  if (is_secret && model::label_of(*found, kClaimableLabel) != "true")
    fail(Code::forbidden, "Secret '{}' is not for claims: it has no label {}=true", name,
         kClaimableLabel);
  return std::move(*found);
}

std::string decoded(std::string_view text, std::string_view name, std::string_view key) {
  auto bytes = base64_decode(text);
  if (!bytes) fail(Code::invalid, "'{}' of '{}' is no base64", key, name);
  return std::move(*bytes);
}

// What is under a key of a Secret or ConfigMap.
std::string value_of(const Json& object, std::string_view key) {
  const bool is_secret = text_at(object, {"kind"}) == "Secret";
  if (const Json* plain = model::find(object, {"data", key}); plain && plain->is_string()) {
    const std::string_view text = plain->get_string();
    return is_secret ? decoded(text, model::name_of(object), key) : std::string(text);
  }
  if (const Json* binary = model::find(object, {"binaryData", key}); binary && binary->is_string())
    return decoded(binary->get_string(), model::name_of(object), key);
  fail(Code::not_found, "'{}' has no key '{}'", model::name_of(object), key);
}

std::string content_of(const Json& file, const ReadObject& read) {
  if (const auto name = text_at(file, {"secretKeyRef", "name"}); !name.empty())
    return value_of(get_claimable(client::kSecrets, name, read),
                    text_at(file, {"secretKeyRef", "key"}));
  if (const auto name = text_at(file, {"configMapKeyRef", "name"}); !name.empty())
    return value_of(get_claimable(client::kConfigMaps, name, read),
                    text_at(file, {"configMapKeyRef", "key"}));
  return std::string(text_at(file, {"content"}));
}

using Variables = std::map<std::string, std::string, std::less<>>;

bool is_variable_name(std::string_view name) {
  return !name.empty() && name.find('=') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Everything in the sources, a later one before an earlier one.
void add_sources(Variables& variables, const Json& claim, const ReadObject& read) {
  for (const Json& source : items_at(claim, {"spec", "envFrom"})) {
    const std::string_view secret = text_at(source, {"secretRef", "name"});
    const std::string_view map = text_at(source, {"configMapRef", "name"});
    if (secret.empty() && map.empty()) continue;
    const Json object = secret.empty() ? get_claimable(client::kConfigMaps, map, read)
                                       : get_claimable(client::kSecrets, secret, read);
    const JsonObject* data = model::object_at(object, {"data"});
    if (!data) continue;
    for (const auto& [key, value] : *data) {
      const std::string name = fmt::format("{}{}", text_at(source, {"prefix"}), key);
      if (is_variable_name(name)) variables[name] = value_of(object, key);
    }
  }
}

// As in a pod: what the template's container sets itself is stronger than any source.
void drop_set_by_template(Variables& variables, const Json& sandbox) {
  const JsonArray& containers = items_at(sandbox, {"spec", "podTemplate", "spec", "containers"});
  if (containers.empty()) return;
  for (const Json& variable : items_at(containers.front(), {"env"}))
    if (const auto found = variables.find(text_at(variable, {"name"})); found != variables.end())
      variables.erase(found);
}

std::map<std::string, Variables> environments_of(const Json& claim, const Json& sandbox,
                                                 const ReadObject& read) {
  std::map<std::string, Variables> environments;
  if (!items_at(claim, {"spec", "envFrom"}).empty()) {
    add_sources(environments[""], claim, read);
    drop_set_by_template(environments[""], sandbox);
  }
  for (const Json& variable : items_at(claim, {"spec", "env"})) {
    const std::string_view name = text_at(variable, {"name"});
    if (!is_variable_name(name)) fail(Code::invalid, "'{}' is no name of a variable", name);
    environments[std::string(text_at(variable, {"containerName"}))][std::string(name)] =
        text_at(variable, {"value"});
  }
  return environments;
}

std::string volume_claim_name(const Json& volume, const Json& sandbox) {
  return fmt::format("{}-{}", text_at(volume, {"metadata", "name"}), model::name_of(sandbox));
}

bool runs(const Json& sandbox_template, std::string_view container) {
  if (container.empty()) return true;
  const JsonArray& all = items_at(sandbox_template, {"spec", "podTemplate", "spec", "containers"});
  return std::ranges::any_of(
      all, [&](const Json& each) { return text_at(each, {"name"}) == container; });
}

bool has_volume(const Json& sandbox_template, std::string_view name) {
  const JsonArray& all = items_at(sandbox_template, {"spec", "volumeClaimTemplates"});
  return std::ranges::any_of(
      all, [&](const Json& each) { return text_at(each, {"metadata", "name"}) == name; });
}

}  // namespace

bool has_outfit(const Json& claim) {
  for (const std::string_view list : {"env", "envFrom", "files", "volumeClaimTemplates"})
    if (!items_at(claim, {"spec", list}).empty()) return true;
  return !text_at(claim, {"spec", "workingDir"}).empty();
}

bool is_outfit_for_warm(const Json& claim, const Json& sandbox_template) {
  for (const Json& volume : items_at(claim, {"spec", "volumeClaimTemplates"})) {
    if (text_at(volume, {"mountPath"}).empty()) return false;
    if (has_volume(sandbox_template, text_at(volume, {"metadata", "name"}))) return false;
  }
  return std::ranges::all_of(items_at(claim, {"spec", "env"}), [&](const Json& variable) {
    return runs(sandbox_template, text_at(variable, {"containerName"}));
  });
}

void check_references(const Json& claim, const ReadObject& read) {
  for (const Json& file : items_at(claim, {"spec", "files"})) {
    check_file_path(text_at(file, {"path"}));
    content_of(file, read);
  }
  Variables ignored;
  add_sources(ignored, claim, read);
}

std::vector<pool::Outfit> outfits_of(const Json& claim, const Json& sandbox,
                                     const ReadObject& read) {
  pool::Outfit first;
  first.directory = text_at(claim, {"spec", "workingDir"});
  for (const Json& file : items_at(claim, {"spec", "files"})) {
    check_file_path(text_at(file, {"path"}));
    const auto mode = model::number_at(file, {"mode"}).value_or(0644) & 0777;
    first.files.push_back({.path = std::string(text_at(file, {"path"})),
                           .content = content_of(file, read),
                           .mode = static_cast<std::uint32_t>(mode)});
  }
  for (const Json& volume : items_at(claim, {"spec", "volumeClaimTemplates"}))
    first.volumes.push_back({.claim_name = volume_claim_name(volume, sandbox),
                             .path = std::string(text_at(volume, {"mountPath"}))});
  first.drops_token = model::annotation_of(sandbox, kOutfitAnnotation) == kUndress;
  std::vector<pool::Outfit> outfits;
  for (auto& [container, variables] : environments_of(claim, sandbox, read)) {
    pool::Outfit other;
    pool::Outfit& outfit = container.empty() ? first : other;
    outfit.container = container;
    for (const auto& [name, value] : variables)
      outfit.environment.push_back(fmt::format("{}={}", name, value));
    if (!container.empty()) outfits.push_back(std::move(other));
  }
  if (!first.is_empty()) outfits.insert(outfits.begin(), std::move(first));
  return outfits;
}

std::vector<Json> outfit_volume_claims(const Json& claim, const Json& sandbox) {
  std::vector<Json> claims;
  for (const Json& volume : items_at(claim, {"spec", "volumeClaimTemplates"})) {
    JsonObject metadata;
    if (const JsonObject* own = model::object_at(volume, {"metadata"})) metadata = *own;
    metadata["name"] = volume_claim_name(volume, sandbox);
    metadata["namespace"] = model::namespace_of(sandbox);
    metadata["ownerReferences"] = JsonArray{model::controller_reference(sandbox)};
    Json object = JsonObject{
        {"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", std::move(metadata)}};
    if (const Json* spec = model::find(volume, {"spec"})) object.get_object()["spec"] = *spec;
    model::make_object_at(object, {"metadata", "labels"})[model::kNameHashLabel] =
        model::name_hash(model::name_of(sandbox));
    claims.push_back(std::move(object));
  }
  return claims;
}

std::string shown_text(std::string_view error, const std::vector<pool::Outfit>& outfits) {
  const auto holds = [&](std::string_view secret) {
    return !secret.empty() && error.find(secret) != std::string_view::npos;
  };
  for (const pool::Outfit& outfit : outfits) {
    for (const std::string& variable : outfit.environment)
      if (holds(std::string_view(variable).substr(variable.find('=') + 1)))
        return "the reason is withheld: it holds a value of the claim";
    for (const pool::OutfitFile& file : outfit.files)
      if (holds(file.content)) return "the reason is withheld: it holds a value of the claim";
  }
  return std::string(error);
}

}  // namespace hearth::controllers
