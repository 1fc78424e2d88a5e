// API keys of teams: `e2b_` and 40 hexadecimal digits, shown once, kept as their SHA-256.
//
// A key is a Secret in hearth-system of the type hearth.dev/api-key, named api-key-ID, where ID is
// the first 16 digits of the hash. It is valid from the moment a watch shows it until the watch
// shows it gone, it expires, or its team's namespace goes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "tenants/teams.h"

namespace hearth::tenants {

// Whoever shows a key.
struct KeyHolder {
  std::string id;    // of the key
  std::string name;  // of the key, for people
  std::string team;
  std::string ns;                            // where the team's sandboxes are
  Limits limits;                             // the team's, narrowed by the key's
  std::int64_t team_creates_per_second = 0;  // of all its keys together
};

// What may be told about a key.
struct KeyInfo {
  std::string id;
  std::string name;
  std::string team;
  std::string first;  // characters of the key behind the prefix, to tell one from another
  std::string last;
  LimitChanges limits;
  std::optional<Time> created;
  std::optional<Time> expires;
};

inline constexpr std::string_view kKeyPrefix = "e2b_";
inline constexpr std::size_t kKeyDigits = 40;
inline constexpr std::size_t kMostKeys = 1000;  // of a team: all are known by heart

struct NewKey {
  std::string team;
  std::string name;  // up to 128 bytes, no control characters
  LimitChanges limits;
  std::optional<Time> expires;
};

struct IssuedKey {
  std::string key;  // the only time that anybody sees it
  KeyInfo info;
};

// What follows asks the server; throws StatusError and Error.

// Error(not_found) for a team that is none, exhausted for one that has as many as it may.
IssuedKey issue_key(client::Client& client, const NewKey& wanted);
// Of one team, or of all (empty). Oldest first.
std::vector<KeyInfo> list_keys(client::Client& client, const std::string& team);
std::optional<KeyInfo> find_key(client::Client& client, const std::string& id);
KeyInfo rename_key(client::Client& client, const std::string& id, const std::string& name);
// False when there is none.
bool revoke_key(client::Client& client, const std::string& id);

// Which key belongs to whom, in memory: for those who are asked with every request.
class ApiKeys {
 public:
  // Both must outlive it. Two threads of its own keep it up to date, from start() on.
  ApiKeys(client::Client& client, const Clock& clock);
  ApiKeys(const ApiKeys&) = delete;
  ApiKeys& operator=(const ApiKeys&) = delete;
  ~ApiKeys();

  // Before it, and while nothing has been heard, no key is known.
  void start();
  // False: not all keys are known yet.
  bool wait_synced(Duration patience) const;
  // Idempotent; what was known stays known.
  void stop();

  // Nothing for a key that is none, revoked or expired, or whose team is gone. Does not block,
  // takes as long for a key that nearly exists as for any other.
  std::optional<KeyHolder> find(std::string_view key) const;
  // As issue_key, and known here when it returns.
  IssuedKey issue(const NewKey& wanted);
  // As revoke_key, and forgotten here when it returns.
  bool revoke(const std::string& id);

  std::optional<Team> find_team(std::string_view name) const;
  std::vector<Team> teams() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::tenants
