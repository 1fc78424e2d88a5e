// Pods that run here and were made with what they would get (model::kDressAnnotation): noted when
// the cache tells of them. A create that finds its pod here does not look at the pod itself, whose
// tree nobody has touched for as long as it was warm.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::pool {
class Reach;
}

namespace hearth::e2b {

// Thread-safe.
class DressedPods {
 public:
  struct Pod {
    std::string sandbox_uid;  // whose it is
    std::string template_id;  // what it was dressed as
    std::string container;    // see container_of
  };

  // Both must outlive it, and the cache has not been started yet. Without a Reach none are known.
  DressedPods(client::WatchCache& pods, pool::Reach* reach);
  DressedPods(const DressedPods&) = delete;
  DressedPods& operator=(const DressedPods&) = delete;
  ~DressedPods() = default;

  std::optional<Pod> find(const model::Key& pod) const;

 private:
  void see(const model::Json& pod);
  void forget(const model::Json& pod);

  pool::Reach* const reach_;
  mutable std::mutex mutex_;  // guards pods_
  std::map<model::Key, Pod> pods_;
};

}  // namespace hearth::e2b
