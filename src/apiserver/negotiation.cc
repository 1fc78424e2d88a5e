#include "apiserver/negotiation.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "model/status.h"

namespace hearth::apiserver {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kYaml = "application/yaml";
constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
// Clients name some four; more are an attempt to make us sort.
constexpr std::size_t kMostClauses = 32;

std::string trimmed_lower(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// One of "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9".
struct Clause {
  std::string type;
  std::string as, group, version;
  double quality = 1;
  std::size_t place = 0;
};

// The text up to `separator`, which is taken away from `rest` with it.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

double parse_quality(const std::string& text) {
  double quality = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quality);
  return error == std::errc() && quality >= 0 && quality <= 1 ? quality : 1;
}

Clause parse_clause(std::string_view text) {
  Clause clause;
  clause.type = trimmed_lower(take_until(text, ';'));
  while (!text.empty()) {
    std::string_view value = take_until(text, ';');
    const std::string name = trimmed_lower(take_until(value, '='));
    const std::string plain = trimmed_lower(value);
    if (name == "as") clause.as = plain;
    if (name == "g") clause.group = plain;
    if (name == "v") clause.version = plain;
    if (name == "q") clause.quality = parse_quality(plain);
  }
  return clause;
}

// The most wanted first; what is wanted as much, in the order it came.
std::vector<Clause> parse_accept(std::string_view accept) {
  std::vector<Clause> clauses;
  while (!accept.empty() && clauses.size() < kMostClauses) {
    Clause clause = parse_clause(take_until(accept, ','));
    clause.place = clauses.size();
    if (!clause.type.empty() && clause.quality > 0) clauses.push_back(std::move(clause));
  }
  std::sort(clauses.begin(), clauses.end(), [](const Clause& left, const Clause& right) {
    return left.quality != right.quality ? left.quality > right.quality : left.place < right.place;
  });
  return clauses;
}

bool is_json(std::string_view type) {
  return type == kJson || type == "*/*" || type == "application/*";
}

std::optional<Wanted> wanted_from(const Clause& clause) {
  Wanted wanted;
  wanted.is_yaml = clause.type == kYaml;
  if (clause.as.empty()) return wanted;
  if (clause.group != "meta.k8s.io") return std::nullopt;
  if (clause.version != "v1" && clause.version != "v1beta1") return std::nullopt;
  wanted.meta_version = clause.version;
  if (clause.as == "table")
    wanted.shape = Shape::table;
  else if (clause.as == "partialobjectmetadata" || clause.as == "partialobjectmetadatalist")
    wanted.shape = Shape::metadata;
  else
    return std::nullopt;
  return wanted;
}

std::vector<std::string> body_types() {
  return {std::string(kJson), std::string(kYaml), std::string(kProtobuf)};
}

std::string media_type(std::string_view content_type) {
  return trimmed_lower(take_until(content_type, ';'));
}

}  // namespace

Wanted negotiate(std::string_view accept) {
  const std::vector<Clause> clauses = parse_accept(accept);
  if (clauses.empty() && trimmed_lower(accept).empty()) return {};
  for (const Clause& clause : clauses)
    if (is_json(clause.type) || clause.type == kYaml)
      if (auto wanted = wanted_from(clause)) return *wanted;
  // Nothing but protobuf: clients decode by the answer's type, so JSON does.
  for (const Clause& clause : clauses)
    if (clause.type == kProtobuf)
      if (auto wanted = wanted_from(clause)) return *wanted;
  model::throw_not_acceptable(body_types());
}

DiscoveryForm negotiate_discovery(std::string_view accept) {
  for (const Clause& clause : parse_accept(accept)) {
    if (!is_json(clause.type)) continue;
    if (clause.as.empty()) return DiscoveryForm::legacy;
    if (clause.as != "apigroupdiscoverylist" || clause.group != "apidiscovery.k8s.io") continue;
    if (clause.version == "v2") return DiscoveryForm::v2;
    if (clause.version == "v2beta1") return DiscoveryForm::v2beta1;
  }
  return DiscoveryForm::legacy;
}

BodyFormat body_format(std::string_view content_type) {
  const std::string type = media_type(content_type);
  if (type.empty() || type == kJson) return BodyFormat::json;
  if (type == kYaml) return BodyFormat::yaml;
  if (type == kProtobuf) return BodyFormat::protobuf;
  model::throw_unsupported_media_type(body_types());
}

PatchFormat patch_format(std::string_view content_type, bool is_built_in) {
  const std::string type = media_type(content_type);
  if (type == "application/json-patch+json") return PatchFormat::json_patch;
  if (type == "application/merge-patch+json") return PatchFormat::merge;
  if (type == "application/apply-patch+yaml") return PatchFormat::apply;
  if (is_built_in && type == "application/strategic-merge-patch+json")
    return PatchFormat::strategic;
  std::vector<std::string> known = {"application/json-patch+json", "application/merge-patch+json"};
  if (is_built_in) known.emplace_back("application/strategic-merge-patch+json");
  known.emplace_back("application/apply-patch+yaml");
  model::throw_unsupported_media_type(known);
}

bool wants_pretty(std::string_view pretty, std::string_view user_agent) {
  if (!pretty.empty())
    return pretty == "1" || pretty == "t" || pretty == "T" || pretty == "true" ||
           pretty == "True" || pretty == "TRUE";
  return user_agent.starts_with("curl") || user_agent.starts_with("Wget") ||
         user_agent.starts_with("Mozilla/5.0");
}

}  // namespace hearth::apiserver
