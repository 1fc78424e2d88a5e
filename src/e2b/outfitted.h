// Which container of which sandbox has its outfit, as far as this process knows.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "model/meta.h"

namespace hearth::e2b {

// Thread-safe.
class Outfitted {
 public:
  bool has(const model::Key& sandbox, std::string_view container) const;
  void remember(const model::Key& sandbox, std::string_view container);
  void forget(const model::Key& sandbox);

 private:
  mutable std::mutex mutex_;  // guards containers_
  std::map<model::Key, std::string> containers_;
};

}  // namespace hearth::e2b
