// Teams: who shares sandboxes, templates and limits. A team is a Namespace of its name with the
// label hearth.dev/team; the namespace `default` is a team in any case.
//
// Limits are annotations: of the namespace for the team, of a key's Secret for that key alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"

namespace hearth::tenants {

inline constexpr std::string_view kDefaultTeam = "default";

// What a team may use. Defaults are generous: they keep one team from taking everything by mistake.
struct Limits {
  std::int64_t sandboxes = 10'000;         // at the same time
  std::int64_t creates_per_second = 500;   // over some seconds; a burst of as many is allowed
  std::int64_t lifetime_seconds = 86'400;  // of one sandbox, from now; extending starts anew
  std::int64_t cpu_millis = 64'000;        // of one sandbox; 1000 is one core
  std::int64_t memory_mib = 262'144;       // of one sandbox

  bool operator==(const Limits&) const = default;
};

// What is said about limits: members that are not set leave them as they are.
struct LimitChanges {
  std::optional<std::int64_t> sandboxes;
  std::optional<std::int64_t> creates_per_second;
  std::optional<std::int64_t> lifetime_seconds;
  std::optional<std::int64_t> cpu_millis;
  std::optional<std::int64_t> memory_mib;

  bool operator==(const LimitChanges&) const = default;
  bool is_empty() const { return *this == LimitChanges{}; }
};

// From an object's annotations. What is no number from 0 on counts as 0: nothing is allowed, rather
// than everything.
LimitChanges limits_on(const model::Json& object);
// The same as annotations.
model::JsonObject annotations_of(const LimitChanges& limits);
// As they are said, over `limits`.
Limits replaced(Limits limits, const LimitChanges& by);
// The smaller ones: a key can do no more than its team.
Limits narrowed(Limits limits, const LimitChanges& by);

struct Team {
  std::string name;
  std::string ns;
  Limits limits;
};

// The team whose namespace this is; nothing for a namespace that is no team's or on its way out.
std::optional<Team> team_of(const model::Json& ns);

// What follows asks the server; throws StatusError, and Error(invalid) for a name that can be none.

// The namespace is made; one that is there already becomes the team's. Error(already_exists) if it
// is one.
Team create_team(client::Client& client, const std::string& name, const LimitChanges& limits);
std::optional<Team> find_team(client::Client& client, const std::string& name);
// By name.
std::vector<Team> list_teams(client::Client& client);
Team change_limits(client::Client& client, const std::string& name, const LimitChanges& limits);
// With its namespace and everything in it, and its keys. False when there is none. Not `default`.
bool remove_team(client::Client& client, const std::string& name);

}  // namespace hearth::tenants
