// Whether a pod may be and can be on a node: what of a scheduler's filters counts where there is
// one node. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "model/json.h"

namespace hearth::node {

// What a pod asks for, or a node has.
struct Resources {
  std::int64_t cpu_millis = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t pods = 0;

  Resources& operator+=(const Resources& other);
  Resources& operator-=(const Resources& other);
};

// The larger of its containers together and each of its init containers; sidecars count with
// both. A limit is asked for, too, unless it says otherwise. What is no quantity counts for
// nothing.
Resources requests_of(const model::Json& pod);
Resources allocatable_of(const model::Json& node);

// Whether it waits for somebody else's word: another scheduler's, or the end of its gates.
bool is_left_to_others(const model::Json& pod);

// Empty: it fits. Otherwise a scheduler's words, without the count of nodes: "Insufficient cpu",
// "node(s) didn't match Pod's node affinity/selector".
std::string why_not(const model::Json& pod, const model::Json& node, const Resources& used);

}  // namespace hearth::node
