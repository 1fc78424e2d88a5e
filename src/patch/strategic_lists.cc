#include <algorithm>
#include <compare>

#include <fmt/format.h>

#include "patch/patch_internal.h"
#include "patch/strategic_internal.h"

namespace hearth::patch {
namespace {

std::string_view type_word(const Json& value) {
  if (value.is_object()) return "map[string]interface {}";
  if (value.is_array()) return "[]interface {}";
  if (value.is_string()) return "string";
  if (value.is_null()) return "%!s(<nil>)";
  if (value.is_bool()) return "bool";
  return value.is_double() ? "float64" : "int64";
}

std::size_t position_in(const Positions& positions, const std::string& key) {
  const auto found = positions.find(key);
  return found == positions.end() ? static_cast<std::size_t>(-1) : found->second;
}

struct Placed {
  std::size_t position = 0;
  std::size_t number = 0;  // items of one position keep their order
  Item* item = nullptr;

  auto operator<=>(const Placed& other) const {
    return std::pair(position, number) <=> std::pair(other.position, other.number);
  }
};

}  // namespace

const JsonArray& get_list(const Json& value) {
  if (!value.is_array())
    throw_plain_error(
        fmt::format("expected a []interface {{}}, but received a {}", type_word(value)));
  return value.get_array();
}

std::string key_of(const Json& value, const std::string& merge_key) {
  if (merge_key.empty()) return model::to_text(value);
  const model::JsonObject* object = value.if_object();
  if (!object)
    throw_plain_error(
        fmt::format("expected a map[string]interface {{}}, but received a {}", type_word(value)));
  const Json* key = object->if_contains(merge_key);
  if (!key)
    throw_plain_error(fmt::format("map: {} does not contain declared merge key: {}",
                                  model::to_text(value), merge_key));
  return model::to_text(*key);
}

Positions positions_of(const JsonArray& list, const std::string& merge_key) {
  Positions positions;
  for (std::size_t i = 0; i < list.size(); ++i) positions.emplace(key_of(list[i], merge_key), i);
  return positions;
}

JsonArray arrange(std::vector<Item> items, const Positions& order, const Positions& live) {
  std::vector<Placed> named;
  std::vector<Placed> others;
  for (Item& item : items) {
    const auto place = order.find(item.key);
    if (place != order.end())
      named.push_back({place->second, named.size(), &item});
    else
      others.push_back({position_in(live, item.key), others.size(), &item});
  }
  std::sort(named.begin(), named.end());
  std::sort(others.begin(), others.end());
  JsonArray out;
  out.reserve(items.size());
  auto other = others.begin();
  for (const Placed& placed : named) {
    const auto place = live.find(placed.item->key);
    while (place != live.end() && other != others.end() && other->position < place->second)
      out.push_back(std::move(other++->item->value));
    out.push_back(std::move(placed.item->value));
  }
  for (; other != others.end(); ++other) out.push_back(std::move(other->item->value));
  return out;
}

Elements elements_of(const JsonArray& one, const JsonArray& other) {
  const Json* first = nullptr;
  const auto check = [&](const Json& element) {
    if (!first) first = &element;
    if (element.is_array()) throw_patch_rejected();
    const bool is_same_type =
        first->is_number() ? element.is_number() : first->kind() == element.kind();
    if (!is_same_type || element.is_null())
      throw_plain_error("list element types are not identical");
  };
  std::for_each(one.begin(), one.end(), check);
  std::for_each(other.begin(), other.end(), check);
  if (!first) return Elements::none;
  return first->is_object() ? Elements::maps : Elements::scalars;
}

}  // namespace hearth::patch
