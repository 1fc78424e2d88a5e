// Layers that are not to be removed, see store.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace hearth::image {

// Layers that must stay while this or a copy of it lives: a sandbox stands on them, or an image is
// about to. May outlive the store.
class Lease {
 public:
  Lease() = default;

  // Diff ids, in the order they were asked for.
  const std::vector<std::string>& layers() const { return layers_; }
  explicit operator bool() const { return !layers_.empty(); }

 private:
  friend class Store;
  struct Pin {};

  std::vector<std::string> layers_;
  std::vector<std::shared_ptr<const Pin>> pins_;
};

}  // namespace hearth::image
