// The verbs about who uses an engine: `hearth team` and `hearth key`.
//
// The cluster is the engine's own, unless --kubeconfig or --context name another.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/kube_verbs.h"
#include "tenants/teams.h"

namespace hearth::cli {

struct TeamCreateOptions {
  ClusterOptions cluster;
  std::string name;
  tenants::LimitChanges limits;
};

struct TeamLsOptions {
  ClusterOptions cluster;
  Format format = Format::table;
};

struct TeamLimitsOptions {
  ClusterOptions cluster;
  std::string name;
  tenants::LimitChanges limits;  // empty: they are shown
  Format format = Format::table;
};

struct TeamRmOptions {
  ClusterOptions cluster;
  std::vector<std::string> names;
};

struct KeyCreateOptions {
  ClusterOptions cluster;
  std::string team;
  std::string name;
  tenants::LimitChanges limits;
  std::optional<Duration> lifetime;
};

struct KeyLsOptions {
  ClusterOptions cluster;
  std::string team;  // empty: all
  Format format = Format::table;
};

struct KeyRmOptions {
  ClusterOptions cluster;
  std::vector<std::string> ids;
};

using TenantOrder = std::variant<TeamCreateOptions, TeamLsOptions, TeamLimitsOptions, TeamRmOptions,
                                 KeyCreateOptions, KeyLsOptions, KeyRmOptions>;

int perform(const TenantOrder& order);

}  // namespace hearth::cli
