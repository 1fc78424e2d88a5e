#include "gateway/table.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "http/head.h"
#include "http/target.h"
#include "metrics/registry.h"
#include "model/agent_sandbox.h"
#include "model/front_door.h"
#include "model/names.h"

namespace hearth::gateway {
namespace {

// How many sandboxes that went are remembered: news of them is late by seconds, not by thousands.
constexpr std::size_t kGraves = 4096;

constexpr std::size_t kMostHostBytes = 255;

std::uint64_t version_of(const model::Json& sandbox) {
  return http::parse_number(model::resource_version_of(sandbox)).value_or(0);
}

RouteState state_of(const model::Json& sandbox) {
  const bool stands = !model::annotation_of(sandbox, model::kPauseAnnotation).empty() ||
                      model::text_at(sandbox, {"spec", "operatingMode"}) == "Suspended";
  if (stands) return RouteState::paused;
  const bool is_left_over = model::is_condition_true(sandbox, model::kPausedCondition) ||
                            model::is_condition_true(sandbox, "Suspended");
  if (is_left_over) return RouteState::turning;
  return RouteState::running;
}

Access access_of(const model::Json& sandbox, bool has_front) {
  const std::string_view said = model::annotation_of(sandbox, model::kAccessAnnotation);
  if (said == "open") return Access::open;
  if (said == "team-key") return Access::team_key;
  // A word that we do not know must not open anything.
  if (!said.empty() || has_front) return Access::token;
  return Access::open;
}

std::vector<std::uint16_t> read_ports(std::string_view list) {
  std::vector<std::uint16_t> ports;
  while (!list.empty() && ports.size() < model::kMostHttpsPorts) {
    const auto comma = std::min(list.find(','), list.size());
    const auto port = http::parse_number(list.substr(0, comma));
    if (port && *port > 0 && *port < 65536) ports.push_back(static_cast<std::uint16_t>(*port));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return ports;
}

// It becomes a header field: what could be more than one field, or none, is left out.
std::string read_mask(std::string_view text) {
  const bool is_good = text.size() <= kMostHostBytes && std::ranges::all_of(text, [](char c) {
                         return c > 0x20 && c < 0x7F && c != '/' && c != '\\' && c != '@' &&
                                c != '?' && c != '#' && c != ',';
                       });
  return is_good ? std::string(text) : std::string();
}

// A member of a pool whose pods wear what E2B's sandboxes do.
bool is_spare(const model::Json& sandbox) {
  return !model::label_of(sandbox, model::kPoolLabel).empty() &&
         !model::text_at(
              sandbox, {"spec", "podTemplate", "metadata", "annotations", model::kDressAnnotation})
              .empty() &&
         model::is_condition_true(sandbox, "Ready");
}

std::string pod_name_of(const model::Json& sandbox) {
  const std::string_view said = model::annotation_of(sandbox, model::kPodNameAnnotation);
  return std::string(said.empty() ? model::name_of(sandbox) : said);
}

std::vector<std::string> pod_ips_of(const model::Json& sandbox) {
  std::vector<std::string> ips;
  if (const auto* list = model::array_at(sandbox, {"status", "podIPs"})) {
    for (const model::Json& item : *list) {
      if (item.is_string()) ips.emplace_back(item.get_string());
      const std::string_view ip = model::text_at(item, {"ip"});
      if (!ip.empty()) ips.emplace_back(ip);
    }
  }
  return ips;
}

}  // namespace

void read_route(const model::Json& sandbox, Route& route) {
  route.key = model::key_of(sandbox);
  route.uid = model::uid_of(sandbox);
  route.created = model::text_at(sandbox, {"metadata", "creationTimestamp"});
  route.version = version_of(sandbox);
  const bool has_front = !model::label_of(sandbox, model::kFrontLabel).empty();
  route.is_e2b = model::label_of(sandbox, model::kFrontLabel) == "e2b";
  route.state = state_of(sandbox);
  route.is_spare = !has_front && route.state == RouteState::running && is_spare(sandbox);
  route.wakes = model::annotation_of(sandbox, model::kAutoResumeAnnotation) == "true";
  route.access = access_of(sandbox, has_front);
  const std::string_view traffic = model::annotation_of(sandbox, model::kTrafficAnnotation);
  route.needs_traffic_token = !traffic.empty() && traffic != "open";
  route.mask_host = read_mask(model::annotation_of(sandbox, model::kMaskHostAnnotation));
  route.https_ports = read_ports(model::annotation_of(sandbox, model::kHttpsPortsAnnotation));
  route.pod_name = pod_name_of(sandbox);
  route.pod_ips = pod_ips_of(sandbox);
}

Table::Table(TableOptions options) : options_(std::move(options)) {}

bool Table::is_stale(const Route& next, const RoutePtr& before) const {
  if (before && before->uid == next.uid && before->version >= next.version) return true;
  return buried_uids_.contains(next.uid);
}

void Table::bury(Grave grave) {
  if (!buried_uids_.insert(grave.uid).second) return;
  if (!grave.id.empty()) buried_ids_.insert(grave.id);
  graves_.push_back(std::move(grave));
  if (graves_.size() <= kGraves) return;
  buried_uids_.erase(graves_.front().uid);
  buried_ids_.erase(graves_.front().id);
  graves_.pop_front();
}

// A sandbox of another namespace that bears the same id must not be able to take its place, in
// whatever order the two are heard of: whoever is older has it. That is the server's word, in whole
// seconds; ids are random, so that nobody can be there before somebody whose id he has learnt.
void Table::put_id(const RoutePtr& next) {
  const auto at = by_id_.find(next->key.name);
  if (at == by_id_.end()) {
    if (next->is_e2b) by_id_.emplace(next->key.name, next);
  } else if (at->second->key == next->key) {
    if (next->is_e2b) {
      at->second = next;
    } else {
      by_id_.erase(at);
    }
  } else if (next->is_e2b) {
    const bool is_older = next->created < at->second->created;
    const RoutePtr ignored = is_older ? std::exchange(at->second, next) : next;
    log::warning("two sandboxes with one id",
                 {{"kept", at->second->key.text()}, {"ignored", ignored->key.text()}});
  }
}

bool Table::exchange(const std::shared_ptr<Route>& next, RoutePtr& before) {
  const std::lock_guard lock(mutex_);
  const std::string key = next->key.text();
  if (const auto at = by_key_.find(key); at != by_key_.end()) before = at->second;
  if (is_stale(*next, before)) return false;
  const bool is_same = before && before->uid == next->uid;
  const bool is_same_life =
      is_same && before->state == next->state && before->pod_name == next->pod_name;
  next->serial = is_same_life ? before->serial : ++last_serial_;
  next->activity = is_same ? before->activity : std::make_shared<Activity>();
  by_key_[key] = next;
  put_id(next);
  if (options_.entries != nullptr) options_.entries->set(static_cast<double>(by_key_.size()));
  return true;
}

// Tokens are made of names, and a create waits for this: that of a spare one is there already.
void Table::put_tokens(Route& next, const RoutePtr& known) const {
  if ((next.is_e2b || next.is_spare) && options_.envd_token)
    next.envd_token =
        known && !known->envd_token.empty() ? known->envd_token : options_.envd_token(next.key);
  if (next.is_e2b && next.needs_traffic_token && options_.traffic_token)
    next.traffic_token = options_.traffic_token(next.key);
}

bool Table::put(const model::Json& sandbox) {
  if (model::is_deleting(sandbox)) return remove(sandbox);
  const RoutePtr known = find(model::namespace_of(sandbox), model::name_of(sandbox));
  // Whoever wrote it has told of it mostly.
  if (known && known->uid == model::uid_of(sandbox) && known->version >= version_of(sandbox))
    return false;
  const auto next = std::make_shared<Route>();
  read_route(sandbox, *next);
  put_tokens(*next, known);
  RoutePtr before;
  if (!exchange(next, before)) return false;
  if (before) before->is_superseded = true;
  const bool is_news = !before || before->serial != next->serial ||
                       before->is_e2b != next->is_e2b || before->is_spare != next->is_spare;
  if (is_news && options_.on_change) options_.on_change(before, next);
  return true;
}

bool Table::remove(const model::Json& last) {
  const model::Key key = model::key_of(last);
  const std::string uid(model::uid_of(last));
  const bool is_e2b = model::label_of(last, model::kFrontLabel) == "e2b";
  RoutePtr before;
  {
    const std::lock_guard lock(mutex_);
    bury({.uid = uid, .id = is_e2b ? key.name : std::string()});
    const auto at = by_key_.find(key.text());
    if (at == by_key_.end() || at->second->uid != uid) return false;
    before = at->second;
    by_key_.erase(at);
    const auto id = by_id_.find(key.name);
    if (id != by_id_.end() && id->second->key == key) by_id_.erase(id);
    if (options_.entries != nullptr) options_.entries->set(static_cast<double>(by_key_.size()));
  }
  before->is_superseded = true;
  if (options_.on_change) options_.on_change(before, nullptr);
  return true;
}

bool Table::is_gone(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  return buried_ids_.contains(id) && !by_id_.contains(id);
}

RoutePtr Table::find_e2b(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

RoutePtr Table::find(std::string_view ns, std::string_view name) const {
  std::string key;
  key.reserve(ns.size() + 1 + name.size());
  key.append(ns).append("/").append(name);
  const std::lock_guard lock(mutex_);
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? nullptr : at->second;
}

RoutePtr Table::find_signer(const Signature& signature) const {
  std::vector<RoutePtr> all;
  {
    const std::lock_guard lock(mutex_);
    all.reserve(by_id_.size());
    for (const auto& [id, route] : by_id_) all.push_back(route);
  }
  for (const RoutePtr& route : all) {
    if (route->envd_token.empty()) continue;
    if (signature.is_of(route->envd_token)) return route;
  }
  return nullptr;
}

std::size_t Table::size() const {
  const std::lock_guard lock(mutex_);
  return by_key_.size();
}

}  // namespace hearth::gateway
