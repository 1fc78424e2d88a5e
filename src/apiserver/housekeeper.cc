#include "apiserver/housekeeper.h"

#include <algorithm>

#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "base/cancel.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/thread_rank.h"
#include "model/scratch.h"

namespace hearth::apiserver {
namespace {

constexpr std::size_t kChangesAtOnce = 1024;
// Between two rounds.
constexpr Duration kBreath = std::chrono::milliseconds(2);
constexpr std::string_view kNamespaces = "namespaces";
constexpr std::string_view kDefinitions = "customresourcedefinitions.apiextensions.k8s.io";

std::vector<std::string> split_uids(std::string_view text) {
  std::vector<std::string> uids;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    uids.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return uids;
}

}  // namespace

Housekeeper::Housekeeper(store::Store& store, Objects& objects,
                         std::function<CataloguePtr()> catalogue, const Clock& clock,
                         Options options)
    : store_(store),
      objects_(objects),
      catalogue_(std::move(catalogue)),
      clock_(clock),
      options_(std::move(options)) {}

Housekeeper::~Housekeeper() {
  stop();
}

void Housekeeper::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Housekeeper::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  watch_.reset();
}

void Housekeeper::run(const std::stop_token& stop) {
  name_thread("housekeeper");
  step_back();
  Time next_expiry = clock_.now();
  read_everything();
  while (!stop.stop_requested()) {
    follow();
    work();
    if (clock_.now() >= next_expiry) {
      expire_events();
      next_expiry = clock_.now() + std::chrono::minutes(1);
    }
    objects_.let_go_of_old_trees();
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_for(lock, stop, options_.retry, [&] { return woken_; });
    woken_ = false;
    lock.unlock();
    if (!woken) due_.merge(waiting_);
    // Changes come in bursts, and with them somebody who waits for an answer.
    if (woken) sleep_for(stop, kBreath);
  }
}

void Housekeeper::read_everything() {
  nodes_.clear();
  by_uid_.clear();
  dependents_.clear();
  const store::Revision since = store_.revision();
  for (const ResourcePtr& resource : catalogue_()->stored()) {
    store::ListQuery query;
    query.resource = resource->store_name;
    for (const store::ObjectPtr& object : store_.list(query).objects) note(*object);
  }
  // Owners may have been read after what they own.
  for (const auto& [key, node] : nodes_)
    if (!node.owners.empty() || node.ending || key.resource == kNamespaces) due_.insert(key);
  watch_ = store_.watch({}, since, [this] {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  });
}

void Housekeeper::follow() {
  while (true) {
    const store::Taken taken = watch_->take(kChangesAtOnce);
    if (taken.expired) {
      watch_.reset();
      read_everything();
      return;
    }
    if (taken.changes.empty()) return;
    for (const store::ChangePtr& change : taken.changes) {
      if (change->kind != store::ChangeKind::deleted) {
        note(*change->object);
        continue;
      }
      forget(change->object->key);
      if (change->object->key.resource == kDefinitions) options_.definitions_changed();
    }
  }
}

void Housekeeper::note(const store::Object& object) {
  Node node;
  node.uid = object.tags.find(kUidTag).value_or("");
  node.owners = split_uids(object.tags.find(kOwnersTag).value_or(""));
  node.ending = object.tags.find(kEndingTag).has_value();
  const auto [at, is_new] = nodes_.try_emplace(object.key);
  // Most changes are to what an object says of itself.
  if (!is_new && !node.ending && node == at->second) return;
  // Whoever goes brings those who depend on it; what still has the owners that it had needs no
  // look.
  const bool has_other_owners =
      !node.owners.empty() && (is_new || node.owners != at->second.owners);
  for (const std::string& owner : at->second.owners) dependents_[owner].erase(object.key);
  if (!is_new) by_uid_.erase(at->second.uid);
  by_uid_[node.uid] = object.key;
  for (const std::string& owner : node.owners) dependents_[owner].insert(object.key);
  const bool has_news =
      has_other_owners || node.ending || (is_new && object.key.resource == kNamespaces);
  at->second = std::move(node);
  if (has_news) due_.insert(object.key);
}

void Housekeeper::forget(const store::Key& key) {
  const auto at = nodes_.find(key);
  if (at == nodes_.end()) return;
  const Node node = std::move(at->second);
  nodes_.erase(at);
  by_uid_.erase(node.uid);
  for (const std::string& owner : node.owners) {
    dependents_[owner].erase(key);
    // An owner that waits for its dependents may be able to go now.
    if (const auto found = by_uid_.find(owner); found != by_uid_.end()) due_.insert(found->second);
  }
  if (const auto found = dependents_.find(node.uid); found != dependents_.end()) {
    due_.insert(found->second.begin(), found->second.end());
    if (found->second.empty()) dependents_.erase(found);
  }
  // So may a namespace, a definition, a claim: those are few, and wait by name.
  due_.merge(waiting_);
}

void Housekeeper::work() {
  while (!due_.empty()) {
    const std::set<store::Key> batch = std::exchange(due_, {});
    for (const store::Key& key : batch) attempt(key);
    follow();
  }
}

void Housekeeper::attempt(const store::Key& key) {
  try {
    look_at(key);
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return;
    waiting_.insert(key);
    log::warning("housekeeping failed; it is tried again", {{"resource", key.resource},
                                                            {"namespace", key.ns},
                                                            {"name", key.name},
                                                            {"why", error.what()}});
  }
}

std::optional<Place> Housekeeper::place_of(const CataloguePtr& catalogue,
                                           const store::Key& key) const {
  const ResourcePtr resource = catalogue->storage(key.resource);
  if (!resource) return std::nullopt;
  return Place{*resource, key.ns, key.name};
}

void Housekeeper::look_at(const store::Key& key) {
  const CataloguePtr catalogue = catalogue_();
  const auto place = place_of(catalogue, key);
  const auto node = nodes_.find(key);
  if (!place || node == nodes_.end()) return;
  if (key.resource == kNamespaces && !node->second.ending) furnish_namespace(key.name);
  if (!node->second.ending && node->second.owners.empty()) return;
  const store::ObjectPtr kept = store_.find(key);
  if (!kept) return;
  model::Scratch scratch;
  const JsonPtr seen = look(*kept, place->resource, scratch.storage());
  const Json& object = *seen;
  if (node->second.ending)
    end(*place, object);
  else
    collect(*place, object);
}

}  // namespace hearth::apiserver
