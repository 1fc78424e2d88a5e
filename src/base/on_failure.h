// Undo for a step that no destructor undoes: runs unless released.
//
//   OnFailure undo([&] { remove(folder); });
//   ...steps that may throw...
//   undo.release();
#pragma once

#include <utility>

namespace hearth {

template <typename F>
class OnFailure {
 public:
  explicit OnFailure(F undo) : undo_(std::move(undo)) {}
  OnFailure(const OnFailure&) = delete;
  OnFailure& operator=(const OnFailure&) = delete;
  ~OnFailure() {
    if (!armed_) return;
    try {
      undo_();
    } catch (...) {
      // The failure that brought us here is the one worth reporting.
    }
  }

  void release() { armed_ = false; }

 private:
  F undo_;
  bool armed_ = true;
};

}  // namespace hearth
