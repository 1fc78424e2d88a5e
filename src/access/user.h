// Who asks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"
#include "pki/token.h"

namespace hearth::access {

using model::Json;
using model::JsonArray;
using model::JsonObject;

inline constexpr std::string_view kAnonymous = "system:anonymous";
inline constexpr std::string_view kAuthenticated = "system:authenticated";
inline constexpr std::string_view kUnauthenticated = "system:unauthenticated";
// Members may do everything, whatever roles say: the way back in after a mistake in them.
inline constexpr std::string_view kMasters = "system:masters";
inline constexpr std::string_view kNodes = "system:nodes";

struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;

  bool is_in(std::string_view group) const;
};

// Adds a group unless the user is in it.
void join(User& user, std::string_view group);

User anonymous_user();

// The name of a service account taken apart; nothing for other users.
struct AccountName {
  std::string ns;
  std::string name;
};
std::optional<AccountName> parse_account_name(std::string_view user);
std::string account_user_name(std::string_view ns, std::string_view name);
// The groups that every service account of a namespace is in.
std::vector<std::string> account_groups(std::string_view ns);

// As the claims of a token describe it.
User account_user(const pki::Claims& claims);

// UserInfo of authentication.k8s.io.
Json to_json(const User& user);

}  // namespace hearth::access
