#include "controllers/claim_finder.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/log.h"
#include "client/kinds.h"
#include "controllers/claim_adoption.h"
#include "model/agent_sandbox.h"

namespace hearth::controllers {
namespace {

using client::Object;
using model::text_at;

// How long a cache may be behind our own writes before the server is asked.
constexpr Duration kMostLag = std::chrono::seconds(5);
// How far the clocks of the server and this machine may be apart.
constexpr Duration kMostSkew = std::chrono::seconds(5);

bool is_of(const Json& sandbox, const Json& claim) {
  return model::is_controlled_by(sandbox, model::uid_of(claim));
}

bool has_uid(const std::vector<Object>& all, std::string_view uid) {
  return std::ranges::any_of(all, [&](const Object& each) { return model::uid_of(*each) == uid; });
}

// Deleting ones last, then the one in the status, then the oldest.
auto rank_of(const Json& sandbox, std::string_view in_status) {
  return std::tuple(model::is_deleting(sandbox), model::name_of(sandbox) != in_status,
                    model::created_at(sandbox).value_or(Time::max()), model::name_of(sandbox));
}

}  // namespace

ClaimFinder::ClaimFinder(client::Client& client, client::WatchCache& sandboxes, const Clock& clock)
    : client_(client), sandboxes_(sandboxes), clock_(clock), began_(clock.now()) {}

void ClaimFinder::begin(Time now) {
  began_ = now;
  const std::lock_guard lock(listing_);
  from_before_.reset();
}

Object ClaimFinder::find(const Json& claim, ClaimMemory& memory) {
  Object found = keep_one(claim, find_all(claim, memory));
  if (found) return found;
  // Our own name is taken: nothing may be made under it, and nothing adopted for a claim whose
  // name points people to another's sandbox.
  const Object other = sandboxes_.find(model::namespace_of(claim), model::name_of(claim));
  if (other && !is_of(*other, claim))
    fail(Code::conflict,
         "sandbox {0} is not controlled by claim {0}. Please use a different claim name or delete "
         "the sandbox manually",
         json_quote(model::name_of(claim)));
  return nullptr;
}

std::vector<Object> ClaimFinder::find_all(const Json& claim, ClaimMemory& memory) {
  std::vector<Object> own;
  for (Object& each : sandboxes_.find_by_index(kOwnerIndex, model::uid_of(claim)))
    if (is_of(*each, claim)) own.push_back(std::move(each));
  const Object bound = find_bound(claim, memory);
  if (bound && !has_uid(own, model::uid_of(*bound))) own.push_back(bound);
  drop_old_policy(claim, memory);
  if (own.empty()) own = ask_for_own(claim, memory);
  memory.is_asked = true;
  memory.is_in_doubt = false;
  if (!own.empty()) return own;
  for (const std::string_view name : {text_at(claim, {"status", "sandbox", "name"}),
                                      model::annotation_of(claim, model::kSandboxNameAnnotation),
                                      model::label_of(claim, model::kSandboxNameAnnotation)}) {
    if (name.empty()) continue;
    if (Object found = read_own(claim, name)) return {found};
  }
  return own;
}

Object ClaimFinder::find_bound(const Json& claim, ClaimMemory& memory) {
  if (!memory.bound) return nullptr;
  const std::string_view name = model::name_of(*memory.bound);
  Object cached = sandboxes_.find(model::namespace_of(claim), name);
  if (cached && is_of(*cached, claim)) {
    memory.bound = nullptr;
    return cached;
  }
  const Time now = clock_.now();
  if (cached && now < memory.bound_at + kMostLag) return memory.bound;
  memory.bound = read_own(claim, name);
  memory.bound_at = now;
  return memory.bound;
}

Object ClaimFinder::read_own(const Json& claim, std::string_view name) {
  auto read = client_.find(client::kSandboxes, model::namespace_of(claim), name);
  if (!read || !is_of(*read, claim)) return nullptr;
  return std::make_shared<const Json>(std::move(*read));
}

std::vector<Object> ClaimFinder::ask_for_own(const Json& claim, const ClaimMemory& memory) {
  if (memory.is_in_doubt) return list_own(claim);
  if (memory.is_asked || !is_from_before(claim)) return {};
  return find_from_before(claim);
}

bool ClaimFinder::is_from_before(const Json& claim) const {
  return model::created_at(claim).value_or(Time::min()) < began_.load() + kMostSkew;
}

std::vector<Object> ClaimFinder::list_own(const Json& claim) {
  const auto list = client_.list_all(
      client::kSandboxes,
      {.ns = std::string(model::namespace_of(claim)),
       .label_selector = fmt::format("{}={}", model::kClaimUidLabel, model::uid_of(claim))});
  std::vector<Object> own;
  for (const Json& sandbox : list.items)
    if (is_of(sandbox, claim)) own.push_back(std::make_shared<const Json>(sandbox));
  return own;
}

std::vector<Object> ClaimFinder::find_from_before(const Json& claim) {
  std::vector<std::string> names;
  {
    const std::lock_guard lock(listing_);
    if (!from_before_) from_before_ = list_from_before();
    const auto [first, last] = from_before_->equal_range(model::uid_of(claim));
    for (auto each = first; each != last; ++each) names.push_back(each->second);
  }
  std::vector<Object> own;
  for (const std::string& name : names)
    if (Object found = read_own(claim, name)) own.push_back(std::move(found));
  return own;
}

ClaimFinder::Names ClaimFinder::list_from_before() {
  const auto list =
      client_.list_all(client::kSandboxes, {.label_selector = std::string(model::kClaimUidLabel)});
  Names names;
  for (const Json& sandbox : list.items)
    names.emplace(model::label_of(sandbox, model::kClaimUidLabel), model::name_of(sandbox));
  return names;
}

// Early versions of the original made a NetworkPolicy for each claim. One list finds what is left
// of them, for all claims.
void ClaimFinder::list_old_policies() {
  for (const Json& policy : client_.list_all(client::kNetworkPolicies, {}).items) {
    const auto owner = model::controller_of(policy);
    if (owner && owner->kind == "SandboxClaim" && owner->group() == model::kExtensionsGroup &&
        model::name_of(policy) == fmt::format("{}-network-policy", owner->name))
      old_policies_[owner->uid] = model::key_of(policy);
  }
}

void ClaimFinder::drop_old_policy(const Json& claim, ClaimMemory& memory) {
  if (memory.is_tidied || !is_from_before(claim)) return;
  memory.is_tidied = true;
  try {
    std::call_once(are_policies_listed_, [this] { list_old_policies(); });
    const auto found = old_policies_.find(model::uid_of(claim));
    if (found == old_policies_.end()) return;
    client_.remove(client::kNetworkPolicies, found->second.ns, found->second.name);
  } catch (const Error& error) {
    log::debug("a claim's old network policy stays",
               {{"claim", model::key_of(claim).text()}, {"reason", error.what()}});
  }
}

Object ClaimFinder::keep_one(const Json& claim, std::vector<Object> own) {
  if (own.empty()) return nullptr;
  const std::string_view in_status = text_at(claim, {"status", "sandbox", "name"});
  std::ranges::sort(own, {}, [&](const Object& each) { return rank_of(*each, in_status); });
  for (std::size_t i = 1; i < own.size(); ++i) {
    if (model::is_deleting(*own[i])) continue;
    log::warning("a claim has two sandboxes, one goes", {{"claim", model::key_of(claim).text()},
                                                         {"stays", model::name_of(*own[0])},
                                                         {"goes", model::name_of(*own[i])}});
    try {
      client_.remove(client::kSandboxes, model::namespace_of(*own[i]), model::name_of(*own[i]),
                     {.uid = std::string(model::uid_of(*own[i]))});
    } catch (const model::StatusError& error) {
      if (error.code() != Code::not_found && error.code() != Code::conflict) throw;
    }
  }
  return own[0];
}

Object ClaimFinder::find_promised(const Json& claim) {
  for (const std::string_view name : {model::annotation_of(claim, model::kSandboxNameAnnotation),
                                      model::label_of(claim, model::kSandboxNameAnnotation)}) {
    if (name.empty()) continue;
    auto read = client_.find(client::kSandboxes, model::namespace_of(claim), name);
    if (read && is_offered_to(claim, *read)) return std::make_shared<const Json>(std::move(*read));
  }
  return nullptr;
}

}  // namespace hearth::controllers
