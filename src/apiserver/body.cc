#include "apiserver/body.h"

#include <algorithm>

#include <fmt/format.h>

#include "apiserver/negotiation.h"
#include "apiserver/object_meta.h"
#include "base/json_text.h"
#include "model/scratch.h"
#include "schema/builtin.h"

namespace hearth::apiserver {
namespace {

const model::GroupKind kDeleteOptions{"meta.k8s.io", "DeleteOptions"};

model::ParsedJson decode(const Call& call, std::string_view kind, model::Storage storage = {}) {
  const std::string& body = call.request.body;
  const BodyFormat format = body_format(call.request.headers.value("Content-Type"));
  try {
    if (call.body) return {model::checked_copy(*call.body, std::move(storage)), {}};
    switch (format) {
      case BodyFormat::protobuf:
        return {schema::decode_protobuf(body), {}};
      case BodyFormat::yaml:
        return model::parse_yaml(body);
      default:
        return model::parse_json(body, std::move(storage));
    }
  } catch (const model::StatusError&) {
    throw;
  } catch (const Error& error) {
    // Bodies may be long and hold secrets: no more than their beginning goes back.
    constexpr std::size_t kShown = 64;
    const std::string shown = body.size() <= kShown ? body : body.substr(0, kShown) + " ...";
    model::throw_bad_request(fmt::format(
        "the object provided is unrecognized (must be of type {}): couldn't get version/kind; "
        "json parse error: {} ({})",
        kind, error.what(), format == BodyFormat::protobuf ? "protobuf" : shown));
  }
}

// Of built-in kinds the path says enough: the Python client leaves the type out.
void fill_in_type(Json& value, std::string_view api_version, std::string_view kind) {
  if (!value.is_object()) return;
  for (const auto& [name, text] : {std::pair("kind", kind), std::pair("apiVersion", api_version)}) {
    Json& said = value.as_object()[name];
    // What is something else than text is a mistake, not an omission.
    if (said.is_null() || (said.is_string() && said.get_string().empty())) said = text;
  }
}

void check_type(const Json& object, std::string_view api_version, std::string_view kind,
                const std::string& body) {
  const std::string_view said_kind = model::text_at(object, {"kind"});
  const std::string_view said_version = model::text_at(object, {"apiVersion"});
  constexpr std::size_t kShown = 256;
  const std::string shown = body.size() <= kShown ? body : body.substr(0, kShown) + "...";
  if (!object.is_object())
    model::throw_bad_request(
        fmt::format("the object provided is unrecognized (must be of type {}): couldn't get "
                    "version/kind; json parse "
                    "error: json: cannot unmarshal {} into Go value of type struct ({})",
                    kind, object.is_array() ? "array" : "value", shown));
  if (said_kind.empty())
    model::throw_bad_request(
        fmt::format("the object provided is unrecognized (must be of type {0}): Object 'Kind' is "
                    "missing in '{1}' ({1})",
                    kind, shown));
  if (said_version.empty())
    model::throw_bad_request(
        fmt::format("the object provided is unrecognized (must be of type {0}): Object "
                    "'apiVersion' is missing in '{1}' ({1})",
                    kind, shown));
  if (said_version != api_version)
    model::throw_bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    said_version, api_version));
  if (said_kind != kind)
    model::throw_bad_request(
        fmt::format("{} in version \"{}\" cannot be handled as a {}: no kind \"{}\" is "
                    "registered for this path",
                    said_kind, said_version, kind, said_kind));
}

std::string manager_of(const Call& call) {
  const std::string_view asked = call.query.text("fieldManager");
  if (!asked.empty()) return to_utf8(asked);
  const std::string_view agent = call.request.headers.value("User-Agent");
  const std::string_view name = agent.substr(0, agent.find('/'));
  return name.empty() ? "unknown" : to_utf8(name);
}

void check_manager(std::string_view manager, const model::GroupKind& options) {
  constexpr std::size_t kMost = 128;
  if (manager.size() > kMost)
    model::throw_invalid(options, "",
                         {{model::FieldProblem::too_long, "fieldManager",
                           fmt::format("Too long: may not be more than {} bytes", kMost)}});
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (const auto odd = std::ranges::find_if(manager, is_control); odd != manager.end())
    model::throw_invalid(
        options, "",
        {model::invalid("fieldManager", json_quote(manager),
                        fmt::format("invalid character U+{:04X} (at position {})",
                                    static_cast<unsigned>(*odd), odd - manager.begin()))});
}

bool dry_run_of(const std::vector<std::string>& values, const model::GroupKind& options) {
  if (values.empty()) return false;
  for (const std::string& value : values) {
    if (value == "All") continue;
    std::string quoted;
    for (const std::string& one : values)
      quoted.append(quoted.empty() ? "" : ",").append(json_quote(one));
    model::throw_invalid(options, "",
                         {model::not_supported("dryRun", "[" + quoted + "]", {"All"})});
  }
  return true;
}

FieldValidation validation_of(std::string_view text, const model::GroupKind& options) {
  if (text.empty() || text == "Warn") return FieldValidation::warn;
  if (text == "Ignore") return FieldValidation::ignore;
  if (text == "Strict") return FieldValidation::strict;
  model::throw_invalid(options, "",
                       {model::not_supported("fieldValidation", json_quote(text),
                                             {"", "Ignore", "Strict", "Warn"})});
}

// A misunderstood option must not cost an object.
void check_delete_body(const Json& body) {
  const auto refuse = [](std::string_view what, std::string_view type) {
    model::throw_bad_request(fmt::format("DeleteOptions: {} must be {}", what, type));
  };
  const auto check = [&](std::initializer_list<std::string_view> path, bool (*fits)(const Json&),
                         std::string_view type) {
    const Json* value = model::find(body, path);
    if (value && !value->is_null() && !fits(*value)) refuse(*std::prev(path.end()), type);
  };
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const auto is_flag = [](const Json& value) { return value.is_bool(); };
  const auto is_object = [](const Json& value) { return value.is_object(); };
  const auto is_number = [](const Json& value) { return model::as_integer(value).has_value(); };
  const auto are_texts = [](const Json& value) {
    return value.is_array() &&
           std::ranges::all_of(value.get_array(), [](const Json& one) { return one.is_string(); });
  };
  if (!body.is_object()) refuse("the body", "an object");
  check({"kind"}, is_text, "a string");
  check({"apiVersion"}, is_text, "a string");
  check({"gracePeriodSeconds"}, is_number, "a whole number");
  check({"propagationPolicy"}, is_text, "a string");
  check({"orphanDependents"}, is_flag, "true or false");
  check({"dryRun"}, are_texts, "a list of strings");
  check({"preconditions"}, is_object, "an object");
  check({"preconditions", "uid"}, is_text, "a string");
  check({"preconditions", "resourceVersion"}, is_text, "a string");
  const std::string_view kind = model::text_at(body, {"kind"});
  if (!kind.empty() && kind != "DeleteOptions")
    model::throw_bad_request(fmt::format("{} cannot be handled as a DeleteOptions", kind));
}

void check_propagation(const DeleteOptions& options, std::optional<bool> orphans) {
  const std::string value = json_quote(options.propagation);
  if (!options.propagation.empty() && options.propagation != "Foreground" &&
      options.propagation != "Background" && options.propagation != "Orphan")
    model::throw_invalid(kDeleteOptions, "",
                         {model::not_supported("propagationPolicy", value,
                                               {"Foreground", "Background", "Orphan", "nil"})});
  if (!options.propagation.empty() && orphans)
    model::throw_invalid(
        kDeleteOptions, "",
        {model::invalid("propagationPolicy", value,
                        "orphanDependents and deletionPropagation cannot be both set")});
}

}  // namespace

model::ParsedJson read_object(const Call& call, model::Storage storage) {
  const Resource& resource = *call.resource;
  model::ParsedJson parsed = decode(call, resource.kind, std::move(storage));
  if (resource.built_in) fill_in_type(parsed.value, resource.api_version(), resource.kind);
  check_type(parsed.value, resource.api_version(), resource.kind, call.request.body);
  if (resource.namespaced && call.path->ns) check_namespace_of(parsed.value, *call.path->ns);
  return parsed;
}

model::ParsedJson read_any(const Call& call, std::string_view api_version, std::string_view kind) {
  model::ParsedJson parsed = decode(call, kind);
  fill_in_type(parsed.value, api_version, kind);
  check_type(parsed.value, api_version, kind, call.request.body);
  return parsed;
}

WriteOptions read_write_options(const Call& call, std::string_view options_kind) {
  const model::GroupKind kind{"meta.k8s.io", std::string(options_kind)};
  WriteOptions options;
  options.manager = manager_of(call);
  check_manager(options.manager, kind);
  options.dry_run = dry_run_of(call.query.all("dryRun"), kind);
  options.validation = validation_of(call.query.text("fieldValidation"), kind);
  options.force = call.query.flag("force");
  return options;
}

DeleteOptions read_delete_options(const Call& call) {
  DeleteOptions options;
  std::optional<bool> orphans;
  std::vector<std::string> dry_run = call.query.all("dryRun");
  if (call.query.has("gracePeriodSeconds"))
    options.grace_seconds = call.query.number("gracePeriodSeconds");
  options.propagation = call.query.text("propagationPolicy");
  orphans = call.query.optional_flag("orphanDependents");
  if (call.body || !call.request.body.empty()) {
    const Json body = decode(call, "DeleteOptions").value;
    check_delete_body(body);
    if (const auto grace = model::number_at(body, {"gracePeriodSeconds"}))
      options.grace_seconds = grace;
    if (const std::string_view policy = model::text_at(body, {"propagationPolicy"});
        !policy.empty())
      options.propagation = policy;
    if (const Json* orphan = model::find(body, {"orphanDependents"}); orphan && orphan->is_bool())
      orphans = orphan->get_bool();
    if (const std::string_view uid = model::text_at(body, {"preconditions", "uid"}); !uid.empty())
      options.uid = uid;
    if (const std::string_view at = model::text_at(body, {"preconditions", "resourceVersion"});
        !at.empty())
      options.resource_version = at;
    if (const model::JsonArray* values = model::array_at(body, {"dryRun"}))
      for (const Json& value : *values)
        if (value.is_string()) dry_run.emplace_back(value.get_string());
  }
  check_propagation(options, orphans);
  options.dry_run = dry_run_of(dry_run, kDeleteOptions);
  if (orphans) options.propagation = *orphans ? "Orphan" : "Background";
  if (options.grace_seconds && *options.grace_seconds < 0) options.grace_seconds = 1;
  return options;
}

}  // namespace hearth::apiserver
