// Lists that merge item by item.
//
// Items are found by hash and placed in little more than linear time: lists come from outside and
// may be long.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/json.h"

namespace hearth::patch {

using model::Json;
using model::JsonArray;

// Throws as kube-apiserver does for what should have been a list.
const JsonArray& get_list(const Json& value);

struct Item {
  std::string key;  // what makes it the same as another: the merge key's value, or itself
  Json value;
};

// Without a merge key, items are scalars.
std::string key_of(const Json& value, const std::string& merge_key);

// Where keys are in a list; of equal ones the first counts.
using Positions = std::unordered_map<std::string, std::size_t>;
Positions positions_of(const JsonArray& list, const std::string& merge_key);

// Items that `order` names come in its order; the others stay before those that followed them in
// `live`.
JsonArray arrange(std::vector<Item> items, const Positions& order, const Positions& live);

enum class Elements { none, scalars, maps };
// What both lists are made of. Throws if that is not one thing.
Elements elements_of(const JsonArray& one, const JsonArray& other);

}  // namespace hearth::patch
