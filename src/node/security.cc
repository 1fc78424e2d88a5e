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

std::optional<std::uint32_t> find_id(const PlanInput& input, std::string_view name) {
  const Json* setting = find_setting(input, name);
  if (!setting) return std::nullopt;
  const auto id = model::as_integer(*setting);
  if (!id || *id < 0 || *id > kMostId)
    fail(Code::invalid, "securityContext.{}: a sandbox has the ids 0 to {}", name, kMostId);
  return static_cast<std::uint32_t>(*id);
}

bool is_set(const PlanInput& input, std::string_view name) {
  const Json* setting = find_setting(input, name);
  return setting && setting->is_bool() && setting->get_bool();
}

void check_capabilities(const PlanInput& input) {
  const JsonArray* added =
      model::array_at(input.container, {"securityContext", "capabilities", "add"});
  if (!added) return;
  const linux::CapabilitySet given = linux::default_capabilities();
  for (const Json& one : *added) {
    const std::string name(one.is_string() ? std::string_view(one.get_string()) : "");
    const auto asked = name == "ALL" ? linux::CapabilitySet::from_bits(~std::uint64_t{0})
                                     : linux::CapabilitySet::parse({name});
    if ((asked.bits() & ~given.bits()) != 0)
      fail(Code::invalid, "capability '{}' is not given to sandboxes", name);
  }
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
  check_capabilities(input);
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
  identity.group = group ? group : files;
  return identity;
}

Identity plan_identity(const PlanInput& input) {
  if (const auto refusal = refusal_of(input.pod)) fail(Code::invalid, "{}", *refusal);
  check_container(input);
  const auto user = find_id(input, "runAsUser");
  check_not_root(input, user);
  Identity identity = plan_file_owner(input);
  // fsGroup is one more group of each process. There is room for one only, and what it is for, to
  // share files of volumes, works as well with the first.
  const std::string own = input.image.config.user.empty() ? "0" : input.image.config.user;
  const std::string name = user ? std::to_string(*user) : std::string(own.substr(0, own.find(':')));
  if (identity.group)
    identity.user = fmt::format("{}:{}", name, *identity.group);
  else if (user)
    identity.user = name;
  return identity;
}

}  // namespace hearth::node
