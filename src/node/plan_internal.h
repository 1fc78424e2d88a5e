// What the parts of planning share: see plan.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client.h"
#include "image/image.h"
#include "node/plan.h"
#include "node/tokens.h"

namespace hearth::node {

using model::JsonArray;
using model::JsonObject;

// Everything that one plan is made from.
struct PlanInput {
  client::Client& client;
  const PlannerOptions& options;
  Tokens& tokens;
  const Json& pod;
  const Json& container;
  const image::Image& image;
};

// In the order in which they were said; a name comes once.
using Variables = std::vector<std::pair<std::string, std::string>>;

// Stands for the pod's address in texts, as long as nobody knows it.
inline constexpr std::string_view kAddressMark = "\x01pod-address\x01";

// Who commands run as.
struct Identity {
  std::string user;                    // for the runtime; empty: whom the image says
  std::optional<std::uint32_t> group;  // that files of volumes are to be given to
  bool widens_files = false;           // to that group: fsGroup was said
  guest::ProcessRights rights = {};    // of every command
};

// security.cc. Throws Error(invalid) for what is refused.
Identity plan_identity(const PlanInput& input);
// Only what of it concerns files; nothing is checked but the ids.
Identity plan_file_owner(const PlanInput& input);

// Variables of Services, by namespace; kept up to date by a watch.
class ServiceVariables {
 public:
  explicit ServiceVariables(client::Client& client);
  ServiceVariables(const ServiceVariables&) = delete;
  ServiceVariables& operator=(const ServiceVariables&) = delete;
  ~ServiceVariables();

  // Those of the namespace, if `links`, and always those of the API server.
  Variables of(std::string_view ns, bool links) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// env.cc
Variables plan_variables(const PlanInput& input, const ServiceVariables& services);
// "$(NAME)" becomes its value where there is one, "$$" a dollar.
std::string expand(std::string_view text, const Variables& variables);
// What a fieldRef or resourceFieldRef means. Both throw Error(invalid).
std::string field_text(const PlanInput& input, std::string_view path);
std::string resource_text(const PlanInput& input, const Json& reference);

// limits.cc
runtime::Limits plan_limits(const PlanInput& input);

// volumes.cc
std::vector<runtime::MountSpec> plan_mounts(const PlanInput& input, const Identity& identity,
                                            const Variables& variables);

std::vector<ChangingFiles> plan_changing_files(const PlanInput& input, const Identity& identity);

// volume_files.cc. By path.
using Files = std::map<std::string, runtime::MountFile, std::less<>>;
inline constexpr std::string_view kTokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount";
// Nothing for a volume of another kind.
std::optional<Files> plan_volume_files(const PlanInput& input, const Identity& identity,
                                       const Json& volume);
// What is in kTokenFolder unless the pod says otherwise; empty for nothing.
Files plan_token_files(const PlanInput& input, const Identity& identity);

// The data of a ConfigMap or Secret as bytes, by key. Nothing for one that is not there.
using Data = std::map<std::string, std::string, std::less<>>;
std::optional<Data> find_config_map(const PlanInput& input, std::string_view name);
std::optional<Data> find_secret(const PlanInput& input, std::string_view name);

}  // namespace hearth::node
