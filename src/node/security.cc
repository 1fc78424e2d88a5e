// Who a container runs as, and what it may not ask for.
#include <array>

#include "base/error.h"
#include "linux/capabilities.h"
#include "model/meta.h"
#include "node/plan_internal.h"

namespace hearth::node {
namespace {

using model::text_at;

constexpr std::int64_t kMostId = 65535;  // what a sandbox's range of ids can hold

// The container's own word, or the pod's.
const Json* find_setting(const PlanInput& input, std::string_view name) {
  const Json* own = model::find(input.container, {"securityContext", name});
  if (own && !own->is_null()) return own;
  const Json* shared = model::find(input.pod, {"spec", "securityContext", name});
  return shared && !shared->is_null() ? shared : nullptr;
}

std::uint32_t parse_id(const Json& setting, std::string_view name) {
  const auto id = model::as_integer(setting);
  if (!id || *id < 0 || *id > kMostId)
    fail(Code::invalid, "securityContext.{}: a sandbox has the ids 0 to {}", name, kMostId);
  return static_cast<std::uint32_t>(*id);
}

std::optional<std::uint32_t> find_id(const PlanInput& input, std::string_view name) {
  const Json* setting = find_setting(input, name);
  if (!setting) return std::nullopt;
  return parse_id(*setting, name);
}

bool is_set(const PlanInput& input, std::string_view name) {
  const Json* setting = find_setting(input, name);
  return setting && setting->is_bool() && setting->get_bool();
}

std::vector<std::string> capabilities_in(const PlanInput& input, std::string_view list) {
  std::vector<std::string> names;
  if (const JsonArray* all =
          model::array_at(input.container, {"securityContext", "capabilities", list}))
    for (const Json& name : *all)
      if (name.is_string()) names.emplace_back(std::string_view(name.get_string()));
  return names;
}

std::uint64_t bits_of(const std::string& capability) {
  return capability == "ALL" ? ~std::uint64_t{0} : linux::CapabilitySet::parse({capability}).bits();
}

// What is both dropped and added is kept.
std::uint64_t plan_dropped_capabilities(const PlanInput& input) {
  const std::uint64_t given = linux::default_capabilities().bits();
  std::uint64_t dropped = 0;
  for (const std::string& name : capabilities_in(input, "drop")) dropped |= bits_of(name);
  for (const std::string& name : capabilities_in(input, "add")) {
    if ((bits_of(name) & ~given) != 0)
      fail(Code::invalid, "capability '{}' is not given to sandboxes", name);
    dropped &= ~bits_of(name);
  }
  return dropped;
}

std::vector<std::uint32_t> plan_groups(const PlanInput& input) {
  std::vector<std::uint32_t> groups;
  if (const JsonArray* given =
          model::array_at(input.pod, {"spec", "securityContext", "supplementalGroups"}))
    for (const Json& group : *given) groups.push_back(parse_id(group, "supplementalGroups"));
  if (const auto files = find_id(input, "fsGroup")) groups.push_back(*files);
  return groups;
}

guest::ProcessRights plan_rights(const PlanInput& input) {
  const bool is_strict =
      text_at(input.pod, {"spec", "securityContext", "supplementalGroupsPolicy"}) == "Strict";
  return {.groups = plan_groups(input),
          .image_groups = is_strict ? guest::ImageGroups::never : guest::ImageGroups::always,
          .dropped_capabilities = plan_dropped_capabilities(input)};
}

// The filter that every sandbox has is the runtime's default. There are no others to load.
void check_seccomp(const PlanInput& input) {
  const Json* profile = find_setting(input, "seccompProfile");
  if (profile && text_at(*profile, {"type"}) == "Localhost")
    fail(Code::invalid, "cannot load seccomp profile \"{}\": this node has none of its own",
         text_at(*profile, {"localhostProfile"}));
}

void check_container(const PlanInput& input) {
  const std::string_view name = text_at(input.container, {"name"});
  if (is_set(input, "privileged"))
    fail(Code::invalid, "container '{}' asks to be privileged, which no sandbox can be", name);
  if (model::is_true_at(input.container, {"securityContext", "windowsOptions", "hostProcess"}))
    fail(Code::invalid, "container '{}' asks to be a process of the host", name);
  const std::string_view proc = text_at(input.container, {"securityContext", "procMount"});
  if (!proc.empty() && proc != "Default")
    fail(Code::invalid, "container '{}' asks for procMount '{}', which is not given", name, proc);
  if (const JsonArray* devices = model::array_at(input.container, {"volumeDevices"});
      devices && !devices->empty())
    fail(Code::invalid, "container '{}' asks for block devices, which are not given", name);
  check_seccomp(input);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A kubelet's words.
void check_not_root(const PlanInput& input, std::optional<std::uint32_t> user) {
  if (!is_set(input, "runAsNonRoot")) return;
  if (user && *user != 0) return;
  const std::string who = fmt::format("(pod: \"{}_{}({})\", container: {})",
                                      model::name_of(input.pod), model::namespace_of(input.pod),
                                      model::uid_of(input.pod), text_at(input.container, {"name"}));
  if (user) fail(Code::invalid, "container's runAsUser breaks non-root policy {}", who);
  const std::string_view own = input.image.config.user;
  const std::string_view name = own.substr(0, own.find(':'));
  if (name.empty() || name == "root" ||
      (is_number(name) && name.find_first_not_of('0') == std::string_view::npos))
    fail(Code::invalid, "container has runAsNonRoot and image will run as root {}", who);
  if (!is_number(name))
    fail(Code::invalid,
         "container has runAsNonRoot and image has non-numeric user ({}), cannot verify user is "
         "non-root {}",
         name, who);
}

}  // namespace

std::optional<std::string> refusal_of(const Json& pod) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kRefused{{
      {"hostNetwork", "the network of the host"},
      {"hostPID", "the processes of the host"},
      {"hostIPC", "the IPC of the host"},
      {"shareProcessNamespace", "one process namespace for all containers"},
  }};
  for (const auto& [field, what] : kRefused)
    if (model::is_true_at(pod, {"spec", field}))
      return fmt::format("spec.{}: {} is not given to sandboxes", field, what);
  if (text_at(pod, {"spec", "os", "name"}) == "windows")
    return std::string("spec.os.name: only linux runs here");
  return std::nullopt;
}

Identity plan_file_owner(const PlanInput& input) {
  const auto group = find_id(input, "runAsGroup");
  const auto files = find_id(input, "fsGroup");
  Identity identity;
  identity.widens_files = files.has_value();
  identity.group = files ? files : group;
  return identity;
}

Identity plan_identity(const PlanInput& input) {
  if (const auto refusal = refusal_of(input.pod)) fail(Code::invalid, "{}", *refusal);
  check_container(input);
  const auto user = find_id(input, "runAsUser");
  check_not_root(input, user);
  Identity identity = plan_file_owner(input);
  identity.rights = plan_rights(input);
  const auto group = find_id(input, "runAsGroup");
  const std::string own = input.image.config.user.empty() ? "0" : input.image.config.user;
  const std::string name = user ? std::to_string(*user) : std::string(own.substr(0, own.find(':')));
  if (group)
    identity.user = fmt::format("{}:{}", name, *group);
  else if (user)
    identity.user = name;
  return identity;
}

}  // namespace hearth::node
