// What two objects differ in, as sets of fields.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "model/member.h"
#include "patch/typed_internal.h"

namespace hearth::patch {
namespace {

using model::JsonArray;
using model::JsonObject;
using model::Touched;

const JsonObject* object_in(const Json* value) {
  return value ? value->if_object() : nullptr;
}
const JsonArray* array_in(const Json* value) {
  return value ? value->if_array() : nullptr;
}

// Items of both sides under one element. More than one of a side share their key by mistake, and
// are looked at as one thing.
struct Pair {
  std::vector<const Json*> before;
  std::vector<const Json*> after;
};

class Comparison {
 public:
  // Either side may be missing, not both.
  void node(const Json* before, const Json* after, Typing type, Level level, Touched touched,
            Changes& out) const {
    const Shape before_shape = shape_of(type, before);
    const Shape after_shape = shape_of(type, after);
    if (before && after && before_shape != after_shape)
      as_shape(before_shape, before, after, type, level, {}, out);
    if (as_shape(after ? after_shape : before_shape, before, after, type, level, touched, out))
      return;
    if (!before) out.set.self = true;
    if (!after) out.removed.self = true;
  }

 private:
  // Whether the value was looked at as a whole.
  bool as_shape(Shape shape, const Json* before, const Json* after, Typing type, Level level,
                Touched touched, Changes& out) const {
    if (shape == Shape::map) {
      const JsonObject* old_members = object_in(before);
      const JsonObject* new_members = object_in(after);
      if ((old_members && !old_members->empty()) || (new_members && !new_members->empty())) {
        members(old_members, new_members, type, level, touched, out);
        return false;
      }
    } else if (shape == Shape::set || shape == Shape::keyed) {
      const JsonArray* old_items = array_in(before);
      const JsonArray* new_items = array_in(after);
      if ((old_items && !old_items->empty()) || (new_items && !new_items->empty())) {
        items(old_items, new_items, type, shape, out);
        return false;
      }
    }
    leaf(before, after, out);
    return true;
  }

  static void leaf(const Json* before, const Json* after, Changes& out) {
    if (!after)
      out.removed.self = true;
    else if (!before || !model::is_same(*before, *after))
      out.set.self = true;
  }

  static void keep(std::string element, Changes child, Changes& out) {
    if (!child.removed.empty()) out.removed.append(element, std::move(child.removed));
    if (!child.set.empty()) out.set.append(std::move(element), std::move(child.set));
  }

  void member(std::string_view name, const Json* before, const Json* after, Typing type,
              Level level, Touched touched, Changes& out) const {
    if (is_untracked(level, name)) return;
    const Level below = next_level(level, name);
    Changes child;
    node(before, after, member_type(type, name).value_or(Typing()), below, touched, child);
    if (below == Level::metadata) child.set.self = child.removed.self = false;
    if (child.empty()) return;
    keep(member_element(name), std::move(child), out);
  }

  void members(const JsonObject* before, const JsonObject* after, Typing type, Level level,
               Touched touched, Changes& out) const {
    if (before && after && touched.names()) {
      out.set.children.reserve(touched.names()->size());
      for (const auto& [name, below] : *touched.names()) {
        const Json* old_value = model::find_member(*before, name);
        const Json* new_value = model::find_member(*after, name);
        if (old_value || new_value)
          member(name, old_value, new_value, type, level, Touched(below), out);
      }
    } else {
      all_members(before, after, type, level, out);
    }
    out.set.sort();
    out.removed.sort();
  }

  void all_members(const JsonObject* before, const JsonObject* after, Typing type, Level level,
                   Changes& out) const {
    // Of a new object everything is set, and nothing is there to spare.
    if (after && !before) out.set.children.reserve(after->size());
    if (after)
      for (const auto& [name, value] : *after)
        member(name, before ? model::find_member(*before, name) : nullptr, &value, type, level, {},
               out);
    if (before)
      for (const auto& [name, value] : *before)
        if (!after || !model::find_member(*after, name))
          member(name, &value, nullptr, type, level, {}, out);
  }

  static std::string element_of(const Json& item, Typing type, Shape shape) {
    ItemElement element = item_element(type, shape, item);
    if (!element.problem.empty()) fail(Code::invalid, "{}", element.problem);
    return std::move(element.element);
  }

  // Lists mostly keep their order, and then their items need no index.
  static bool is_aligned(const JsonArray& before, const JsonArray& after, Typing type,
                         Shape shape) {
    if (before.size() != after.size()) return false;
    const auto same_item = [&](const Json& one, const Json& other) {
      if (shape == Shape::set) return model::is_same(one, other);
      if (!one.is_object() || !other.is_object()) return false;
      return std::all_of(type.schema->list_keys.begin(), type.schema->list_keys.end(),
                         [&](const std::string& key) {
                           const Json* left = one.get_object().if_contains(key);
                           const Json* right = other.get_object().if_contains(key);
                           return left && right && model::is_same(*left, *right);
                         });
    };
    return std::equal(before.begin(), before.end(), after.begin(), same_item);
  }

  void items(const JsonArray* before, const JsonArray* after, Typing type, Shape shape,
             Changes& out) const {
    if (before && after && is_aligned(*before, *after, type, shape)) {
      if (shape == Shape::set || same_items(*before, *after)) return;
    }
    std::unordered_map<std::string, Pair> pairs;
    if (before)
      for (const Json& item : *before) pairs[element_of(item, type, shape)].before.push_back(&item);
    if (after)
      for (const Json& item : *after) pairs[element_of(item, type, shape)].after.push_back(&item);
    for (const auto& [element, pair] : pairs) {
      Changes child;
      item(pair, item_type(type), child);
      if (!child.empty()) keep(element, std::move(child), out);
    }
    out.set.sort();
    out.removed.sort();
  }

  static bool same_items(const JsonArray& before, const JsonArray& after) {
    return std::equal(before.begin(), before.end(), after.begin(), model::is_same);
  }

  void item(const Pair& pair, Typing type, Changes& out) const {
    const Json* before = pair.before.empty() ? nullptr : pair.before.front();
    const Json* after = pair.after.empty() ? nullptr : pair.after.front();
    if (pair.before.size() <= 1 && pair.after.size() <= 1) {
      node(before, after, type, Level::below, {}, out);
    } else if (pair.before.size() > 1 && pair.after.size() > 1) {
      out.set.self = !std::equal(
          pair.before.begin(), pair.before.end(), pair.after.begin(), pair.after.end(),
          [](const Json* one, const Json* other) { return model::is_same(*one, *other); });
    } else if (pair.before.size() > 1) {
      if (after) node(nullptr, after, type, Level::below, {}, out);
      out.removed.self = true;
    } else {
      if (before) node(before, nullptr, type, Level::below, {}, out);
      out.set.self = true;
    }
  }
};

}  // namespace

Changes compare(const Json& before, const Json& after, const Schema& schema, Touched touched) {
  Changes changes;
  Comparison().node(&before, &after, {&schema}, Level::root, touched, changes);
  changes.set.self = changes.removed.self = false;
  return changes;
}

}  // namespace hearth::patch
