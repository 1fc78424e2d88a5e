#include "node/plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/id.h"
#include "model/containers.h"
#include "model/front_door.h"
#include "model/meta.h"
#include "node/admission.h"
#include "node/plan_internal.h"
#include "node/pod_policy.h"

namespace hearth::node {
namespace {

using model::text_at;

constexpr std::string_view kSurfacesSource = "annotation hearth.dev/surfaces";
constexpr std::size_t kMostHostname = 63;
constexpr std::size_t kUidLength = 36;
constexpr std::size_t kHashLength = 8;

std::vector<std::string> texts_at(const Json& value, std::string_view member) {
  std::vector<std::string> texts;
  if (const JsonArray* array = model::array_at(value, {member}))
    for (const Json& text : *array)
      if (text.is_string()) texts.emplace_back(std::string_view(text.get_string()));
  return texts;
}

void append(std::vector<std::string>& all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// What is said in the container counts; its arguments alone go to the image's entrypoint.
std::vector<std::string> plan_command(const Json& container, const image::Config& image) {
  std::vector<std::string> command = texts_at(container, "command");
  const std::vector<std::string> arguments = texts_at(container, "args");
  if (!command.empty()) {
    append(command, arguments);
    return command;
  }
  command = image.entrypoint;
  append(command, arguments.empty() ? image.command : arguments);
  return command;
}

// Containers of a pod share its ports: only the first one's guest listens.
std::vector<guest::SurfacePort> plan_surfaces(const PlanInput& input, bool runs_something) {
  if (model::first_container_of(input.pod) != text_at(input.container, {"name"})) return {};
  const std::string_view words = model::annotation_of(input.pod, model::kSurfacesAnnotation);
  if (!words.empty()) return guest::parse_surfaces(words, kSurfacesSource);
  return runs_something ? std::vector<guest::SurfacePort>() : guest::every_surface();
}

// Whoever says that nobody in a container gains privileges means this way, too.
std::vector<std::string> plan_sudoers(const PlanInput& input) {
  const Json* escalation =
      model::find(input.container, {"securityContext", "allowPrivilegeEscalation"});
  if (escalation && escalation->is_bool() && !escalation->get_bool()) return {};
  std::vector<std::string> sudoers;
  std::string_view names = model::annotation_of(input.pod, model::kSudoAnnotation);
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) sudoers.emplace_back(name);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return sudoers;
}

// Those that hold the address come with the command, when it is known.
void put_variables(ContainerPlan& plan, const Variables& variables) {
  for (const auto& [name, value] : variables) {
    const bool is_late = value.find(kAddressMark) != std::string::npos;
    (is_late ? plan.command.environment : plan.sandbox.environment).push_back(name + "=" + value);
  }
}

guest::ExecRequest plan_request(const PlanInput& input, const Variables& variables) {
  guest::ExecRequest request;
  request.command = plan_command(input.container, input.image.config);
  // An image's own words are not for expansion, but none has "$(NAME)" in it by accident.
  for (std::string& word : request.command) word = expand(word, variables);
  request.detached = true;
  request.keep_input = model::is_true_at(input.container, {"stdin"});
  request.terminal = model::is_true_at(input.container, {"tty"});
  request.directory = text_at(input.container, {"workingDir"});
  return request;
}

void replace_mark(std::string& text, std::string_view address) {
  for (std::size_t at = text.find(kAddressMark); at != std::string::npos;
       at = text.find(kAddressMark, at + address.size()))
    text.replace(at, kAddressMark.size(), address);
}

}  // namespace

void ContainerPlan::set_address(std::string_view address) {
  for (std::string& word : command.command) replace_mark(word, address);
  for (std::string& line : command.environment) replace_mark(line, address);
}

struct Planner::State {
  State(client::Client& api, PlannerOptions given)
      : client(api),
        options(std::move(given)),
        tokens(api, options.clock ? *options.clock : machine_clock),
        services(api) {}

  client::Client& client;
  const PlannerOptions options;
  const SystemClock machine_clock = {};
  Tokens tokens;
  ServiceVariables services;
};

Planner::Planner(client::Client& client, PlannerOptions options)
    : state_(std::make_unique<State>(client, std::move(options))) {}

Planner::~Planner() = default;

ContainerPlan Planner::plan(const Json& pod, const Json& container, const image::Image& image) {
  const PlanInput input{state_->client, state_->options, state_->tokens, pod, container, image};
  const Identity identity = plan_identity(input);
  const Variables variables = plan_variables(input, state_->services);
  ContainerPlan plan;
  plan.command = plan_request(input, variables);
  put_variables(plan, variables);
  plan.sandbox.image = image.name;
  plan.sandbox.user = identity.user;
  plan.sandbox.rights = identity.rights;
  plan.sandbox.sysctls = sysctls_of(pod);
  plan.sandbox.directory = text_at(container, {"workingDir"});
  plan.sandbox.limits = plan_limits(input);
  plan.sandbox.read_only_root =
      model::is_true_at(container, {"securityContext", "readOnlyRootFilesystem"});
  // A disk in memory counts as memory: whoever asks for more of it needs a real one.
  const bool fits = plan.sandbox.limits.memory_bytes == 0 ||
                    plan.sandbox.limits.disk_bytes <= plan.sandbox.limits.memory_bytes;
  const bool asked = model::find(container, {"resources", "limits", "ephemeral-storage"}) ||
                     model::find(container, {"resources", "requests", "ephemeral-storage"});
  if (asked && !fits) plan.sandbox.disk_on = runtime::DiskPlace::disk;
  if (state_->options.has_network) plan.sandbox.network = pod_policy(pod);
  plan.sandbox.surfaces = plan_surfaces(input, !plan.command.command.empty());
  plan.sandbox.sudoers = plan_sudoers(input);
  plan.sandbox.mounts = plan_mounts(input, identity, variables);
  return plan;
}

std::vector<ChangingFiles> Planner::plan_changing_files(const Json& pod, const Json& container) {
  const image::Image unknown;  // says nothing about files
  const PlanInput input{state_->client, state_->options, state_->tokens, pod, container, unknown};
  return node::plan_changing_files(input, plan_file_owner(input));
}

void Planner::forget(std::string_view pod_uid) {
  state_->tokens.forget(pod_uid);
}

bool runs_command(const Json& container, const image::Image& image) {
  return !plan_command(container, image.config).empty();
}

std::string hostname_of(const Json& pod) {
  std::string name(text_at(pod, {"spec", "hostname"}));
  if (name.empty()) name = model::name_of(pod);
  std::ranges::replace(name, '.', '-');  // a label has none
  if (name.size() > kMostHostname) name.resize(kMostHostname);
  while (name.ends_with('-')) name.pop_back();
  return name;
}

std::string pod_volume_name(std::string_view pod_uid, std::string_view volume) {
  return fmt::format("{}-{}", pod_uid, model::name_hash(volume));
}

std::vector<std::string> pod_volume_names(const Json& pod) {
  std::vector<std::string> names;
  if (const JsonArray* volumes = model::array_at(pod, {"spec", "volumes"}))
    for (const Json& volume : *volumes)
      if (model::find(volume, {"emptyDir"}))
        names.push_back(pod_volume_name(model::uid_of(pod), text_at(volume, {"name"})));
  return names;
}

std::optional<std::string> pod_uid_of_volume(std::string_view name) {
  if (name.size() != kUidLength + 1 + kHashLength || name[kUidLength] != '-') return std::nullopt;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23 || i == kUidLength;
    const bool is_hex = (name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'f');
    if (is_dash ? name[i] != '-' : !is_hex) return std::nullopt;
  }
  return std::string(name.substr(0, kUidLength));
}

}  // namespace hearth::node
