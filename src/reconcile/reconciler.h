// The engine of controllers: keys in, deeds out. No product words.
//
// Level-triggered: a call names an object, never an event. It reads the present state, takes the
// next step if one is due, and says when to look again. Calling it twice is always safe.
#pragma once

#include <optional>

#include "base/clock.h"
#include "model/meta.h"

namespace hearth::reconcile {

// When to look again, if nothing changes before; nothing: only then.
using Next = std::optional<Duration>;
inline constexpr Next kWhenChanged = std::nullopt;

class Reconciler {
 public:
  Reconciler() = default;
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;
  virtual ~Reconciler() = default;

  // An object that is gone is success. Throws Error: the key is tried again after its pause, which
  // grows with each failure; Error(invalid) that is no StatusError is not tried again before
  // something changes. Workers share one instance; one key is never with two of them at once.
  virtual Next reconcile(const model::Key& key) = 0;
};

}  // namespace hearth::reconcile
