// Who may talk to a sandbox through the gateway. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/key_owner.h"
#include "gateway/refusal.h"
#include "gateway/route.h"
#include "gateway/target.h"
#include "http/head_view.h"

namespace hearth::gateway {

struct AccessRules {
  std::function<KeyOwner(std::string_view key)> key_owner;
  std::string router_token;
  bool router_open = false;
};

// Before the sandbox is looked for: whether the dialect itself is open to this client.
std::optional<Refusal> check_dialect(const AccessRules& rules, const http::HeadView& head,
                                     const Target& target, bool is_local_client);
// Nothing: it may. The same for every dialect: another way in is no way around.
std::optional<Refusal> check_access(const AccessRules& rules, const http::HeadView& head,
                                    const Target& target, const Route& route);

}  // namespace hearth::gateway
