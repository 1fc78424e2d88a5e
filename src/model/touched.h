// What of an object a write can have changed, so that nobody looks at the rest again.
#pragma once

#include <optional>
#include <string_view>

#include "model/json.h"

namespace hearth::model {

// A merge patch says it by itself: an object names the members that it changes, anything else
// replaces all that was there.
class Touched {
 public:
  Touched() = default;  // everything
  // Borrows the patch.
  explicit Touched(const Json& patch) : names_(patch.if_object()) {}

  // The members that may have changed; null: any.
  const JsonObject* names() const { return names_; }
  // Below this member; nothing: it is as it was.
  std::optional<Touched> member(std::string_view name) const {
    if (!names_) return Touched();
    const Json* below = names_->if_contains(name);
    return below ? std::optional(Touched(*below)) : std::nullopt;
  }

 private:
  const JsonObject* names_ = nullptr;
};

// As is_same() of json.h, of objects that are the same where nothing was touched.
bool is_same_where(Touched touched, const Json& left, const Json& right);

}  // namespace hearth::model
