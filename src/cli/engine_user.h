// Who the engine is once it needs root no more, and the step of no return to becoming it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace hearth::cli {

struct EngineUser {
  uid_t uid = 0;
  gid_t gid = 0;

  bool operator==(const EngineUser&) const = default;
};

// A uid that no account has, for machines without an account made for us: below the ids that
// sandboxes are given (they begin at 0x10000000), above those of accounts and of other engines.
// Nobody's files are its own, which an account such as `nobody` cannot promise.
inline constexpr uid_t kBareUid = 268369920;

// The account that packages make for the engine.
inline constexpr const char* kEngineAccount = "hearth";

struct EngineUserSources {
  std::string flag;      // --user: name or uid
  std::string sudo_uid;  // SUDO_UID
  std::string sudo_gid;  // SUDO_GID
  std::function<std::optional<EngineUser>(const std::string& name)> find_account;
  std::function<std::optional<EngineUser>(uid_t uid)> find_account_of_uid;
};

// For an engine that was started as root: the flag's, who called sudo, the engine's own account, or
// kBareUid. Throws Error(invalid) for an account that does not exist, and for root.
EngineUser choose_engine_user(const EngineUserSources& sources);

// The same, for this process: itself where it is not root. Throws Error(invalid) for a flag that
// asks for somebody else then.
EngineUser find_engine_user(const std::string& flag);

// Becomes the user for good, with no groups, no capabilities and no way to gain any, and makes sure
// that it worked. Throws Error; the caller must end then.
void give_up_root(EngineUser user);

}  // namespace hearth::cli
