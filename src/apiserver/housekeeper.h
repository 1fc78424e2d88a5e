// What the server does by itself, after the fact: garbage, namespaces that end, and what every
// namespace is given.
//
//   an owner is gone             its dependents go, or lose their reference to it
//   foregroundDeletion, orphan   dependents first; then the finalizer
//   a namespace is terminating   its content goes; then the namespace
//   a CRD is terminating         its objects go; then the CRD
//   a namespace is there         so are its ServiceAccount "default" and ConfigMap kube-root-ca.crt
//   a volume claim is deleted    it stays as long as a pod uses it
//   an event is an hour old      it goes
//
// One thread that follows the store's history. Level-triggered: what fails is tried again, and a
// restart begins by looking at everything.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "apiserver/objects.h"

namespace hearth::apiserver {

class Housekeeper {
 public:
  struct Options {
    std::string ca_pem;                         // for kube-root-ca.crt
    std::function<void()> definitions_changed;  // called when a CRD is gone
    Duration event_life = std::chrono::hours(1);
    Duration retry = std::chrono::seconds(1);
  };

  // All must outlive it.
  Housekeeper(store::Store& store, Objects& objects, std::function<CataloguePtr()> catalogue,
              const Clock& clock, Options options);
  Housekeeper(const Housekeeper&) = delete;
  Housekeeper& operator=(const Housekeeper&) = delete;
  ~Housekeeper();

  void start();
  // Returns when nothing of it runs any more. Idempotent.
  void stop();

 private:
  struct Node {
    std::string uid;
    std::vector<std::string> owners;
    bool ending = false;

    bool operator==(const Node&) const = default;
  };

  void run(const std::stop_token& stop);
  void read_everything();
  void follow();
  void note(const store::Object& object);
  void forget(const store::Key& key);
  void work();
  void attempt(const store::Key& key);
  void look_at(const store::Key& key);

  struct Owner {
    bool is_known = false;  // whether it can be told
    store::ObjectPtr object;
  };
  Owner find_owner(const Catalogue& catalogue, const std::string& ns, const Json& reference) const;
  void collect(const Place& place, const Json& object);
  void end(const Place& place, const Json& object);
  void orphan_dependents(const Place& place, const Json& object);
  void delete_in_foreground(const Place& place, const Json& object);
  void end_namespace(const Place& place);
  void end_definition(const Place& place, const Json& definition);
  void release_claim(const Place& place, const Json& claim);
  void furnish_namespace(const std::string& ns);
  void expire_events();
  void remove_all(const Resource& resource, const std::optional<std::string>& ns);
  std::optional<Place> place_of(const CataloguePtr& catalogue, const store::Key& key) const;

  store::Store& store_;
  Objects& objects_;
  const std::function<CataloguePtr()> catalogue_;
  const Clock& clock_;
  const Options options_;

  // Of the thread alone.
  std::map<store::Key, Node> nodes_;
  std::unordered_map<std::string, store::Key> by_uid_;
  std::unordered_map<std::string, std::set<store::Key>> dependents_;  // by the owner's uid
  std::set<store::Key> due_;
  std::set<store::Key> waiting_;  // looked at again at the next tick
  std::unique_ptr<store::Watch> watch_;

  std::mutex mutex_;  // guards woken_
  std::condition_variable_any changed_;
  bool woken_ = false;
  std::jthread thread_;
};

}  // namespace hearth::apiserver
