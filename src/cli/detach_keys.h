// Ctrl-p ctrl-q among what somebody types: the way out of an attached terminal.
#pragma once

#include <string>
#include <string_view>

namespace hearth::cli {

class DetachKeys {
 public:
  // What of it is for the command. A ctrl-p waits for the next key, to tell what it was.
  std::string pass(std::string_view typed);

  // Both were typed; what came behind them is for nobody.
  bool detached() const { return detached_; }

 private:
  bool half_ = false;
  bool detached_ = false;
};

}  // namespace hearth::cli
