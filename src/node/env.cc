// The variables of a container: Services, envFrom, env, and what they refer to.
#include <algorithm>

#include "base/base64.h"
#include "base/error.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "model/quantity.h"
#include "node/plan_internal.h"

namespace hearth::node {
namespace {

using model::text_at;

void set(Variables& variables, std::string_view name, std::string value) {
  const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
  if (found != variables.end())
    found->second = std::move(value);
  else
    variables.emplace_back(name, std::move(value));
}

// What execve(2) takes as a name.
bool is_variable_name(std::string_view name) {
  return !name.empty() && name.find('=') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

std::string checked_value(std::string_view name, std::string value) {
  if (value.find('\0') != std::string::npos)
    fail(Code::invalid, "the value of variable '{}' has a zero byte in it", name);
  return value;
}

enum class From { config_map, secret };

std::optional<Data> find_data(const PlanInput& input, From from, std::string_view name) {
  return from == From::secret ? find_secret(input, name) : find_config_map(input, name);
}

std::string_view word(From from) {
  return from == From::secret ? "secret" : "configmap";
}

Data need_data(const PlanInput& input, From from, const Json& reference) {
  const std::string_view name = text_at(reference, {"name"});
  auto data = find_data(input, from, name);
  if (data) return std::move(*data);
  if (model::is_true_at(reference, {"optional"})) return {};
  fail(Code::not_found, "{} \"{}\" not found", word(from), name);
}

void add_all(const PlanInput& input, Variables& variables, const Json& source) {
  const std::string prefix(text_at(source, {"prefix"}));
  for (const auto& [member, from] :
       {std::pair{"configMapRef", From::config_map}, std::pair{"secretRef", From::secret}}) {
    const Json* reference = model::find(source, {member});
    if (!reference) continue;
    for (auto& [key, value] : need_data(input, from, *reference)) {
      const std::string name = prefix + key;
      if (is_variable_name(name)) set(variables, name, checked_value(name, std::move(value)));
    }
  }
}

// Nothing: it is optional and not there.
std::optional<std::string> key_text(const PlanInput& input, From from, const Json& reference) {
  const Data data = need_data(input, from, reference);
  const std::string_view key = text_at(reference, {"key"});
  const auto found = data.find(key);
  if (found != data.end()) return found->second;
  if (model::is_true_at(reference, {"optional"})) return std::nullopt;
  fail(Code::not_found, "couldn't find key {} in {} {}/{}", key,
       from == From::secret ? "Secret" : "ConfigMap", model::namespace_of(input.pod),
       text_at(reference, {"name"}));
}

std::optional<std::string> source_text(const PlanInput& input, const Json& source) {
  if (const Json* field = model::find(source, {"fieldRef"}))
    return field_text(input, text_at(*field, {"fieldPath"}));
  if (const Json* resource = model::find(source, {"resourceFieldRef"}))
    return resource_text(input, *resource);
  if (const Json* key = model::find(source, {"configMapKeyRef"}))
    return key_text(input, From::config_map, *key);
  if (const Json* key = model::find(source, {"secretKeyRef"}))
    return key_text(input, From::secret, *key);
  fail(Code::invalid, "a variable's valueFrom names nothing that is known here");
}

void add_one(const PlanInput& input, Variables& variables, const Json& variable) {
  const std::string_view name = text_at(variable, {"name"});
  if (!is_variable_name(name)) fail(Code::invalid, "'{}' is no name of a variable", name);
  if (const Json* source = model::find(variable, {"valueFrom"})) {
    if (auto value = source_text(input, *source))
      set(variables, name, checked_value(name, std::move(*value)));
    return;
  }
  set(variables, name, checked_value(name, expand(text_at(variable, {"value"}), variables)));
}

// "key" of "metadata.labels['key']"; nothing for another path.
std::optional<std::string_view> subscript(std::string_view path, std::string_view member) {
  if (!path.starts_with(member)) return std::nullopt;
  path.remove_prefix(member.size());
  if (!path.starts_with("['") || !path.ends_with("']") || path.size() < 5) return std::nullopt;
  return path.substr(2, path.size() - 4);
}

// As files of the downward API have them: key="value", sorted, one a line.
std::string map_text(const JsonObject* map) {
  std::vector<std::string> lines;
  if (map)
    for (const auto& [key, value] : *map)
      lines.push_back(fmt::format("{}={}", std::string_view(key), model::to_text(value)));
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

const Json* find_container(const Json& pod, std::string_view name) {
  for (const std::string_view list : {"containers", "initContainers"})
    if (const JsonArray* containers = model::array_at(pod, {"spec", list}))
      for (const Json& container : *containers)
        if (text_at(container, {"name"}) == name) return &container;
  return nullptr;
}

model::Quantity limit_or_default(const PlanInput& input, const Json& container,
                                 std::string_view kind, std::string_view resource) {
  if (const auto given = model::Quantity::parse(text_at(container, {"resources", kind, resource})))
    return *given;
  if (kind == "requests") return {};
  const PlanInput other{input.client, input.options, input.tokens,
                        input.pod,    container,     input.image};
  const runtime::Limits limits = plan_limits(other);
  if (resource == "cpu") return *model::Quantity::parse(fmt::format("{}m", limits.cpu_millis));
  const std::uint64_t bytes = resource == "memory" ? limits.memory_bytes : limits.disk_bytes;
  return model::Quantity::of(static_cast<std::int64_t>(bytes));
}

}  // namespace

std::optional<Data> find_config_map(const PlanInput& input, std::string_view name) {
  const auto object = input.client.find(client::kConfigMaps, model::namespace_of(input.pod), name);
  if (!object) return std::nullopt;
  Data data;
  if (const JsonObject* texts = model::object_at(*object, {"data"}))
    for (const auto& [key, value] : *texts)
      if (value.is_string()) data[key] = std::string_view(value.get_string());
  if (const JsonObject* bytes = model::object_at(*object, {"binaryData"}))
    for (const auto& [key, value] : *bytes)
      if (value.is_string()) data[key] = base64_decode(value.get_string()).value_or("");
  return data;
}

std::optional<Data> find_secret(const PlanInput& input, std::string_view name) {
  const auto object = input.client.find(client::kSecrets, model::namespace_of(input.pod), name);
  if (!object) return std::nullopt;
  Data data;
  if (const JsonObject* bytes = model::object_at(*object, {"data"}))
    for (const auto& [key, value] : *bytes)
      if (value.is_string()) data[key] = base64_decode(value.get_string()).value_or("");
  return data;
}

std::string expand(std::string_view text, const Variables& variables) {
  std::string expanded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      expanded += text[i];
      continue;
    }
    const std::size_t end = text[i + 1] == '(' ? text.find(')', i) : std::string_view::npos;
    if (end != std::string_view::npos) {
      const std::string_view name = text.substr(i + 2, end - i - 2);
      const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
      if (found != variables.end())
        expanded += found->second;
      else
        expanded += text.substr(i, end - i + 1);
      i = end;
    } else if (text[i + 1] == '$') {
      expanded += '$';
      ++i;
    } else {
      expanded += '$';
    }
  }
  return expanded;
}

std::string field_text(const PlanInput& input, std::string_view path) {
  const Json& pod = input.pod;
  if (const auto key = subscript(path, "metadata.labels"))
    return std::string(model::label_of(pod, *key));
  if (const auto key = subscript(path, "metadata.annotations"))
    return std::string(model::annotation_of(pod, *key));
  if (path == "metadata.labels") return map_text(model::object_at(pod, {"metadata", "labels"}));
  if (path == "metadata.annotations")
    return map_text(model::object_at(pod, {"metadata", "annotations"}));
  if (path == "metadata.name") return std::string(model::name_of(pod));
  if (path == "metadata.namespace") return std::string(model::namespace_of(pod));
  if (path == "metadata.uid") return std::string(model::uid_of(pod));
  if (path == "spec.nodeName") return input.options.node_name;
  if (path == "spec.serviceAccountName") {
    const std::string_view name = text_at(pod, {"spec", "serviceAccountName"});
    return std::string(name.empty() ? "default" : name);
  }
  if (path == "status.hostIP" || path == "status.hostIPs") return input.options.host_address;
  if (path == "status.podIP" || path == "status.podIPs") {
    const std::string_view address = text_at(pod, {"status", "podIP"});
    return std::string(address.empty() ? kAddressMark : address);
  }
  fail(Code::invalid, "unsupported fieldPath: '{}'", path);
}

std::string resource_text(const PlanInput& input, const Json& reference) {
  const std::string_view resource = text_at(reference, {"resource"});
  const std::string_view name = text_at(reference, {"containerName"});
  const Json* container = name.empty() ? &input.container : find_container(input.pod, name);
  if (!container) fail(Code::not_found, "container {} not found", name);
  const std::size_t dot = resource.find('.');
  const std::string_view kind = resource.substr(0, dot);
  const std::string_view what =
      dot == std::string_view::npos ? std::string_view() : resource.substr(dot + 1);
  const bool is_known = (kind == "limits" || kind == "requests") &&
                        (what == "cpu" || what == "memory" || what == "ephemeral-storage");
  if (!is_known) fail(Code::invalid, "unsupported container resource : {}", resource);
  const auto amount = limit_or_default(input, *container, kind, what);
  const auto asked = model::Quantity::parse(text_at(reference, {"divisor"}));
  const auto divisor = asked && *asked > model::Quantity() ? *asked : model::Quantity::of(1);
  // Rounded up, as a kubelet does it: processors by thousandths, bytes by bytes.
  const bool is_cpu = what == "cpu";
  const std::int64_t top = is_cpu ? amount.thousandths() : amount.units();
  const std::int64_t bottom =
      std::max<std::int64_t>(1, is_cpu ? divisor.thousandths() : divisor.units());
  return std::to_string(top / bottom + (top % bottom != 0 ? 1 : 0));
}

Variables plan_variables(const PlanInput& input, const ServiceVariables& services) {
  const Json* links = model::find(input.pod, {"spec", "enableServiceLinks"});
  Variables variables =
      services.of(model::namespace_of(input.pod), !links || !links->is_bool() || links->get_bool());
  set(variables, "HOSTNAME", hostname_of(input.pod));
  if (const JsonArray* sources = model::array_at(input.container, {"envFrom"}))
    for (const Json& source : *sources) add_all(input, variables, source);
  if (const JsonArray* own = model::array_at(input.container, {"env"}))
    for (const Json& variable : *own) add_one(input, variables, variable);
  return variables;
}

}  // namespace hearth::node
