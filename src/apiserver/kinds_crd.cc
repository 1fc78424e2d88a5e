// The strategy of CustomResourceDefinition: what one may define.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apiserver/crds.h"
#include "apiserver/kinds_strategies_internal.h"
#include "base/error.h"
#include "model/conversion.h"
#include "model/names.h"
#include "schema/schema.h"

namespace hearth::apiserver {
namespace {

constexpr std::string_view kApproval = "api-approved.kubernetes.io";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_flag(const JsonObject& object, std::string_view name) {
  const Json* flag = object.if_contains(name);
  return flag && flag->is_bool() && flag->get_bool();
}

void check_1035(Errors& errors, std::string field, std::string_view value, std::string_view checked,
                std::string_view introduction = {}) {
  const model::Problems problems = model::check_dns1035_label(checked);
  if (!problems.empty())
    errors.push_back(model::invalid(std::move(field), json_quote(value),
                                    fmt::format("{}{}", introduction, fmt::join(problems, ","))));
}

void check_list_of_names(Errors& errors, const JsonObject& names, std::string_view list) {
  const JsonArray* values = array_in(names, list);
  if (!values) return;
  for (std::size_t i = 0; i < values->size(); ++i)
    if (const auto* text = (*values)[i].if_string()) {
      const std::string_view value(text->data(), text->size());
      check_1035(errors, fmt::format("spec.names.{}[{}]", list, i), value, value);
    }
}

void check_names(Errors& errors, const JsonObject& names) {
  constexpr std::string_view kMixed = "may have mixed case, but should otherwise match: ";
  for (const std::string_view name : {"plural", "singular", "kind", "listKind"})
    check_required(errors, names, name, fmt::format("spec.names.{}", name));
  for (const std::string_view name : {"plural", "singular"})
    if (const std::string_view value = text_in(names, name); !value.empty())
      check_1035(errors, fmt::format("spec.names.{}", name), value, value);
  for (const std::string_view name : {"kind", "listKind"})
    if (const std::string_view value = text_in(names, name); !value.empty())
      check_1035(errors, fmt::format("spec.names.{}", name), value, lower(value), kMixed);
  const std::string_view kind = text_in(names, "kind");
  if (!kind.empty() && kind == text_in(names, "listKind"))
    errors.push_back(model::invalid("spec.names.listKind", json_quote(kind),
                                    "kind and listKind may not be the same"));
  check_list_of_names(errors, names, "shortNames");
  check_list_of_names(errors, names, "categories");
}

void check_group(Errors& errors, std::string_view group) {
  if (group.empty())
    errors.push_back(model::required("spec.group"));
  else if (group.find('.') == std::string_view::npos)
    errors.push_back(model::invalid("spec.group", json_quote(group),
                                    "should be a domain with at least one dot"));
  else
    check_dns_subdomain(errors, "spec.group", group);
}

// Groups of the Kubernetes community need a word that somebody looked at them.
void check_approval(Errors& errors, const Json& crd, std::string_view group) {
  const bool is_protected = group == "k8s.io" || group.ends_with(".k8s.io") ||
                            group == "kubernetes.io" || group.ends_with(".kubernetes.io");
  if (is_protected && is_unset(model::find(crd, {"metadata", "annotations", kApproval})))
    errors.push_back(
        model::required(fmt::format("metadata.annotations[{}]", kApproval),
                        fmt::format("protected groups must have approval annotation {}, see "
                                    "https://github.com/kubernetes/enhancements/pull/1111",
                                    json_quote(kApproval))));
}

void check_columns(Errors& errors, const Item& version) {
  for (const Item column : items_in(version.object, "additionalPrinterColumns",
                                    version.at("additionalPrinterColumns"))) {
    constexpr std::string_view kTypes = "must be one of boolean,date,integer,number,string";
    const std::string_view type = text_in(column.object, "type");
    check_required(errors, column.object, "name", column.at("name"));
    if (type.empty())
      errors.push_back(model::required(column.at("type"), kTypes));
    else if (type != "boolean" && type != "date" && type != "integer" && type != "number" &&
             type != "string")
      errors.push_back(model::invalid(column.at("type"), json_quote(type), kTypes));
    check_required(errors, column.object, "jsonPath", column.at("jsonPath"));
  }
}

void check_scale_path(Errors& errors, const std::string& field, std::string_view path,
                      std::string_view root) {
  if (path.empty())
    errors.push_back(model::required(field));
  else if (!path.starts_with(fmt::format("{}.", root)))
    errors.push_back(model::invalid(field, json_quote(path),
                                    fmt::format("should be a json path under {}", root)));
}

void check_scale(Errors& errors, const Item& version) {
  const JsonObject& subresources = as_object(version.object.if_contains("subresources"));
  const JsonObject* scale = object_in(subresources, "scale");
  if (!scale) return;
  const std::string field = version.at("subresources.scale");
  check_scale_path(errors, field + ".specReplicasPath", text_in(*scale, "specReplicasPath"),
                   ".spec");
  check_scale_path(errors, field + ".statusReplicasPath", text_in(*scale, "statusReplicasPath"),
                   ".status");
  const std::string_view selector = text_in(*scale, "labelSelectorPath");
  if (!selector.empty() && !selector.starts_with(".spec.") && !selector.starts_with(".status."))
    errors.push_back(model::invalid(field + ".labelSelectorPath", json_quote(selector),
                                    "should be a json path under either .spec or .status"));
}

void check_deprecation(Errors& errors, const Item& version) {
  const Json* warning = version.object.if_contains("deprecationWarning");
  if (!warning || !warning->is_string()) return;
  const std::string field = version.at("deprecationWarning");
  const std::string_view text = text_in(version.object, "deprecationWarning");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
  if (!is_flag(version.object, "deprecated"))
    errors.push_back(
        model::invalid(field, json_quote(text), "can only be set for deprecated versions"));
  if (text.size() > 256)
    errors.push_back(model::invalid(field, json_quote(text), "must be <= 256 characters long"));
  if (text.empty())
    errors.push_back(model::invalid(field, json_quote(text), "must not be an empty string"));
  // It becomes a header of every answer.
  if (std::any_of(text.begin(), text.end(), is_control))
    errors.push_back(
        model::invalid(field, json_quote(text), "must only contain printable UTF-8 characters"));
}

void check_schema(Errors& errors, const Item& version) {
  const std::string field = version.at("schema.openAPIV3Schema");
  const JsonObject& holder = as_object(version.object.if_contains("schema"));
  const Json* schema = holder.if_contains("openAPIV3Schema");
  if (!schema || schema->is_null()) {
    errors.push_back(model::required(field));
    return;
  }
  try {
    schema::parse_schema(*schema);
  } catch (const Error& error) {
    errors.push_back(model::invalid(field, "{...}", error.what()));
  }
}

std::string version_names(const JsonObject& spec) {
  JsonArray names;
  for (const Item version : items_in(spec, "versions", ""))
    names.push_back(Json(text_in(version.object, "name")));
  return model::to_text(names);
}

// Reading schemas takes milliseconds: `has_new_schemas` is whether there is anything to read.
void check_versions(Errors& errors, const JsonObject& spec, bool has_new_schemas) {
  std::set<std::string, std::less<>> names;
  std::size_t stored = 0;
  bool is_unique = true;
  for (const Item version : items_in(spec, "versions", "spec.versions")) {
    const std::string_view name = text_in(version.object, "name");
    stored += is_flag(version.object, "storage");
    is_unique &= names.emplace(name).second;
    check_1035(errors, version.at("name"), name, name);
    check_deprecation(errors, version);
    check_columns(errors, version);
    check_scale(errors, version);
    if (has_new_schemas) check_schema(errors, version);
  }
  if (!is_unique)
    errors.push_back(
        model::invalid("spec.versions", version_names(spec), "must contain unique version names"));
  if (stored != 1)
    errors.push_back(model::invalid("spec.versions", version_names(spec),
                                    "must have exactly one version marked as storage version"));
}

void check_conversion(Errors& errors, const JsonObject& spec) {
  const JsonObject& conversion = as_object(spec.if_contains("conversion"));
  const std::string_view strategy = text_in(conversion, "strategy");
  check_one_of(errors, "spec.conversion.strategy", strategy, {"None", "Webhook"});
  if (strategy == "None" && object_in(conversion, "webhook"))
    errors.push_back(model::forbidden("spec.conversion.webhook",
                                      "should not be set when strategy is not set to Webhook"));
  if (strategy != "Webhook") return;
  if (!object_in(conversion, "webhook"))
    errors.push_back(
        model::required("spec.conversion.webhook", "required when strategy is set to Webhook"));
  // No webhook is ever called. That is fine where there is nothing to convert, or where we know
  // how; elsewhere objects would silently be shown in a version that they do not have.
  std::size_t served = 0;
  for (const Item version : items_in(spec, "versions", ""))
    served += is_flag(version.object, "served");
  const std::string_view kind = text_in(as_object(spec.if_contains("names")), "kind");
  if (served > 1 && !model::has_conversion(text_in(spec, "group"), kind))
    errors.push_back(model::forbidden(
        "spec.conversion.strategy",
        "this server calls no conversion webhooks: serve one version, or use None"));
}

void check_crd_update(Errors& errors, const Json& next, const Json& old) {
  if (is_established(old)) {
    check_immutable(errors, next, old, {"spec", "scope"}, "spec.scope");
    check_immutable(errors, next, old, {"spec", "names", "kind"}, "spec.names.kind");
  }
  check_immutable(errors, next, old, {"spec", "group"}, "spec.group");
  check_immutable(errors, next, old, {"spec", "names", "plural"}, "spec.names.plural");
  // Objects may still be kept in these.
  const JsonArray* stored = model::array_at(old, {"status", "storedVersions"});
  if (!stored) return;
  for (std::size_t i = 0; i < stored->size(); ++i) {
    const std::string name = (*stored)[i].is_string() ? quantity_text((*stored)[i]) : "";
    bool is_there = false;
    for (const Item version : items_in(as_object(model::find(next, {"spec"})), "versions", ""))
      is_there |= text_in(version.object, "name") == name;
    if (!is_there)
      errors.push_back(model::invalid(
          fmt::format("status.storedVersions[{}]", i), json_quote(name),
          fmt::format("missing from spec.versions; {} was previously a storage version, and must "
                      "remain in spec.versions until a storage migration ensures no data remains "
                      "persisted in {} and removes {} from status.storedVersions",
                      name, name, name)));
  }
}

void check_crd(Errors& errors, const Json& crd, const Json* old) {
  const JsonObject& spec = as_object(model::find(crd, {"spec"}));
  const JsonObject& names = as_object(spec.if_contains("names"));
  const std::string_view group = text_in(spec, "group");
  const std::string name(model::text_at(crd, {"metadata", "name"}));
  if (name != fmt::format("{}.{}", text_in(names, "plural"), group))
    errors.push_back(model::invalid("metadata.name", json_quote(name),
                                    "must be spec.names.plural+\".\"+spec.group"));
  check_group(errors, group);
  if (is_unset(spec, "scope"))
    errors.push_back(model::required("spec.scope"));
  else
    check_one_of(errors, "spec.scope", text_in(spec, "scope"), {"Cluster", "Namespaced"});
  if (is_flag(spec, "preserveUnknownFields"))
    errors.push_back(model::invalid("spec.preserveUnknownFields", "true",
                                    "cannot set to true, set x-kubernetes-preserve-unknown-fields "
                                    "to true in spec.versions[*].schema instead"));
  const Json* versions = spec.if_contains("versions");
  const Json* before = old ? model::find(*old, {"spec", "versions"}) : nullptr;
  check_versions(errors, spec, !versions || !before || !model::is_same(*versions, *before));
  check_names(errors, names);
  check_conversion(errors, spec);
  if (!old) check_approval(errors, crd, group);
}

class CrdStrategy : public Strategy {
 public:
  void fill_in(Json& object) const override {
    JsonObject& names = model::make_object_at(object, {"spec", "names"});
    const std::string kind(text_in(names, "kind"));
    set_default(names, "singular", Json(lower(kind)));
    if (!kind.empty()) set_default(names, "listKind", Json(kind + "List"));
    JsonObject& spec = model::make_object_at(object, {"spec"});
    set_default(spec, "conversion", JsonObject{{"strategy", "None"}});
    constexpr int kHttps = 443;
    if (Json* service =
            model::find(object, {"spec", "conversion", "webhook", "clientConfig", "service"});
        service && service->is_object())
      set_default(service->get_object(), "port", kHttps);
  }
  void prepare_create(Json& object) const override {
    JsonArray stored;
    if (const std::string_view version = storage_version(object); !version.empty())
      stored.emplace_back(version);
    model::make_object_at(object, {})["status"] =
        JsonObject{{"conditions", JsonArray()},
                   {"acceptedNames", JsonObject{{"plural", ""}, {"kind", ""}}},
                   {"storedVersions", std::move(stored)}};
  }
  void prepare_update(Json& next, const Json& old) const override {
    keep_status(next, old);
    const std::string version(storage_version(next));
    if (version.empty()) return;
    JsonObject& status = model::make_object_at(next, {"status"});
    JsonArray* stored = array_in(status, "storedVersions");
    if (!stored) stored = &status["storedVersions"].emplace_array();
    for (const Json& one : *stored)
      if (one.is_string() && one.get_string() == version) return;
    stored->emplace_back(version);
  }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view subresource) const override {
    Errors errors;
    if (!subresource.empty()) return {};
    check_crd(errors, next, old);
    if (old) check_crd_update(errors, next, *old);
    return errors.take();
  }
};

}  // namespace

const Strategy& crd_strategy() {
  static const CrdStrategy kStrategy;
  return kStrategy;
}

}  // namespace hearth::apiserver
