#include "model/touched.h"

#include <algorithm>

namespace hearth::model {

bool is_same_where(Touched touched, const Json& left, const Json& right) {
  const JsonObject* one = left.if_object();
  const JsonObject* other = right.if_object();
  if (!touched.names() || !one || !other) return is_same(left, right);
  return std::all_of(touched.names()->begin(), touched.names()->end(), [&](const auto& member) {
    const Json* here = one->if_contains(member.key());
    const Json* there = other->if_contains(member.key());
    if (!here || !there) return here == there;
    return is_same_where(Touched(member.value()), *here, *there);
  });
}

}  // namespace hearth::model
