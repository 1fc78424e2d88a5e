#include "cli/tenant_verbs.h"

#include <cstdio>

#include <fmt/format.h>

#include "base/error.h"
#include "base/time_text.h"
#include "cli/command.h"
#include "cli/json_object.h"
#include "cli/kube_cluster.h"
#include "cli/table.h"
#include "cli/values.h"
#include "client/http_client.h"
#include "tenants/api_keys.h"

namespace hearth::cli {
namespace {

using tenants::KeyInfo;
using tenants::Limits;
using tenants::Team;

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

std::string cpus_text(std::int64_t millis) {
  return fmt::format("{:g}", static_cast<double>(millis) / 1000);
}

Row row_of(const Team& team) {
  const Limits& limits = team.limits;
  return {team.name,
          std::to_string(limits.sandboxes),
          fmt::format("{}/s", limits.creates_per_second),
          format_age(std::chrono::seconds(limits.lifetime_seconds)),
          cpus_text(limits.cpu_millis),
          format_size(static_cast<std::uint64_t>(limits.memory_mib) << 20U)};
}

std::string json_of(const Team& team) {
  const Limits& limits = team.limits;
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  return JsonObject()
      .text("name", team.name)
      .text("namespace", team.ns)
      .number("sandboxes", number(limits.sandboxes))
      .number("creates_per_second", number(limits.creates_per_second))
      .number("lifetime_seconds", number(limits.lifetime_seconds))
      .number("cpu_millis", number(limits.cpu_millis))
      .number("memory_mib", number(limits.memory_mib))
      .str();
}

std::string format_teams(const std::vector<Team>& teams, Format format) {
  std::vector<std::string> elements;
  std::vector<Row> rows;
  std::string names;
  for (const Team& team : teams) {
    elements.push_back(json_of(team));
    rows.push_back(row_of(team));
    names += team.name + '\n';
  }
  if (format == Format::json) return json_array(elements);
  if (format == Format::id) return names;
  return format_table({"NAME", "SANDBOXES", "RATE", "LIFETIME", "CPUS", "MEMORY"}, rows);
}

std::string masked(const KeyInfo& key) {
  return fmt::format("{}{}...{}", tenants::kKeyPrefix, key.first, key.last);
}

std::string expiry_text(const KeyInfo& key, Time now) {
  if (!key.expires) return "never";
  return *key.expires <= now ? "expired" : "in " + format_age(*key.expires - now);
}

std::string json_of(const KeyInfo& key) {
  JsonObject object;
  object.text("id", key.id).text("name", key.name).text("team", key.team);
  object.text("key", masked(key));
  if (key.created) object.text("created", format_rfc3339(*key.created));
  if (key.expires) object.text("expires", format_rfc3339(*key.expires));
  return object.str();
}

std::string format_keys(const std::vector<KeyInfo>& keys, Format format) {
  const Time now = SystemClock().now();
  std::vector<std::string> elements;
  std::vector<Row> rows;
  std::string ids;
  for (const KeyInfo& key : keys) {
    elements.push_back(json_of(key));
    rows.push_back({key.id, key.name, key.team, masked(key),
                    key.created ? format_age(now - *key.created) : "-", expiry_text(key, now)});
    ids += key.id + '\n';
  }
  if (format == Format::json) return json_array(elements);
  if (format == Format::id) return ids;
  return format_table({"ID", "NAME", "TEAM", "KEY", "AGE", "EXPIRES"}, rows);
}

int create_team(const TeamCreateOptions& options) {
  Cluster cluster(options.cluster);
  say(tenants::create_team(*cluster.api, options.name, options.limits).name + '\n');
  return 0;
}

int list_teams(const TeamLsOptions& options) {
  Cluster cluster(options.cluster);
  say(format_teams(tenants::list_teams(*cluster.api), options.format));
  return 0;
}

Team find_team(Cluster& cluster, const std::string& name) {
  auto team = tenants::find_team(*cluster.api, name);
  if (!team) fail(Code::not_found, "there is no team '{}'; 'hearth team ls' lists them", name);
  return std::move(*team);
}

int limit_team(const TeamLimitsOptions& options) {
  Cluster cluster(options.cluster);
  const Team team = options.limits.is_empty()
                        ? find_team(cluster, options.name)
                        : tenants::change_limits(*cluster.api, options.name, options.limits);
  say(options.format == Format::json ? json_of(team) + '\n' : format_teams({team}, options.format));
  return 0;
}

// Every one that can be removed is, whatever becomes of the others.
template <typename Remove>
int remove_each(const char* verb, const std::vector<std::string>& names, Remove remove) {
  int code = 0;
  for (const std::string& name : names) {
    try {
      if (remove(name)) continue;
      complain(verb, fmt::format("there is no '{}'", name));
    } catch (const Error& error) {
      complain(verb, error.what());
    }
    code = kExitFailure;
  }
  return code;
}

int remove_teams(const TeamRmOptions& options) {
  Cluster cluster(options.cluster);
  return remove_each("team rm", options.names, [&](const std::string& name) {
    return tenants::remove_team(*cluster.api, name);
  });
}

int create_key(const KeyCreateOptions& options) {
  Cluster cluster(options.cluster);
  tenants::NewKey wanted{
      .team = options.team, .name = options.name, .limits = options.limits, .expires = {}};
  if (options.lifetime) wanted.expires = SystemClock().now() + *options.lifetime;
  const tenants::IssuedKey issued = tenants::issue_key(*cluster.api, wanted);
  say(issued.key + '\n');
  std::fputs(
      fmt::format("key {} of team '{}'; it is not shown again\n", issued.info.id, issued.info.team)
          .c_str(),
      stderr);
  return 0;
}

int list_keys(const KeyLsOptions& options) {
  Cluster cluster(options.cluster);
  if (!options.team.empty()) find_team(cluster, options.team);
  say(format_keys(tenants::list_keys(*cluster.api, options.team), options.format));
  return 0;
}

int remove_keys(const KeyRmOptions& options) {
  Cluster cluster(options.cluster);
  return remove_each("key rm", options.ids,
                     [&](const std::string& id) { return tenants::revoke_key(*cluster.api, id); });
}

}  // namespace

int perform(const TenantOrder& order) {
  struct Perform {
    int operator()(const TeamCreateOptions& options) const { return create_team(options); }
    int operator()(const TeamLsOptions& options) const { return list_teams(options); }
    int operator()(const TeamLimitsOptions& options) const { return limit_team(options); }
    int operator()(const TeamRmOptions& options) const { return remove_teams(options); }
    int operator()(const KeyCreateOptions& options) const { return create_key(options); }
    int operator()(const KeyLsOptions& options) const { return list_keys(options); }
    int operator()(const KeyRmOptions& options) const { return remove_keys(options); }
  };
  return std::visit(Perform{}, order);
}

}  // namespace hearth::cli
