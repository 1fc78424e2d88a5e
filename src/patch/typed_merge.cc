// Objects made of objects: one merged into another, and one without some of its fields.
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "patch/typed_internal.h"

namespace hearth::patch {
namespace {

using model::JsonArray;
using model::JsonObject;

struct IndexedItem {
  std::string element;
  const Json* item = nullptr;
};

struct ItemIndex {
  std::vector<IndexedItem> items;
  // The item of an element; null for one that several items share, which merge with nothing.
  std::unordered_map<std::string_view, const Json*> by_element;

  bool has(std::string_view element) const { return by_element.contains(element); }
  const Json* find(std::string_view element) const {
    const auto found = by_element.find(element);
    return found == by_element.end() ? nullptr : found->second;
  }
};

ItemIndex index_items(const JsonArray* list, Typing type, Shape shape) {
  ItemIndex index;
  if (!list) return index;
  index.items.reserve(list->size());
  for (const Json& item : *list) {
    ItemElement element = item_element(type, shape, item);
    if (!element.problem.empty()) fail(Code::invalid, "{}", element.problem);
    index.items.push_back({std::move(element.element), &item});
  }
  for (const IndexedItem& item : index.items)
    if (const auto [at, is_new] = index.by_element.emplace(item.element, item.item); !is_new)
      at->second = nullptr;
  return index;
}

class Merge {
 public:
  // Either side may be missing, not both.
  Json node(const Json* live, const Json* applied, Typing type) const {
    if (!live || !applied) return live ? *live : *applied;
    const Shape shape = shape_of(type, applied);
    if (shape == Shape::map) {
      const JsonObject* old_members = live->if_object();
      const JsonObject* new_members = applied->if_object();
      if ((old_members && !old_members->empty()) || (new_members && !new_members->empty()))
        return members(old_members, new_members, type);
    } else if (shape == Shape::set || shape == Shape::keyed) {
      const JsonArray* old_items = live->if_array();
      const JsonArray* new_items = applied->if_array();
      if ((old_items && !old_items->empty()) || (new_items && !new_items->empty()))
        return items(old_items, new_items, type, shape);
    }
    return *applied;
  }

 private:
  Json members(const JsonObject* live, const JsonObject* applied, Typing type) const {
    JsonObject merged;
    if (live) merged.reserve(live->size());
    const auto below = [&](std::string_view name) {
      return member_type(type, name).value_or(Typing());
    };
    if (live)
      for (const auto& [name, value] : *live) {
        const Json* other = applied ? applied->if_contains(name) : nullptr;
        merged.emplace(name, other ? node(&value, other, below(name)) : value);
      }
    if (applied)
      for (const auto& [name, value] : *applied)
        if (!live || !live->if_contains(name))
          merged.emplace(name, node(nullptr, &value, below(name)));
    return merged;
  }

  Json items(const JsonArray* live, const JsonArray* applied, Typing type, Shape shape) const {
    const ItemIndex old_items = index_items(live, type, shape);
    const ItemIndex new_items = index_items(applied, type, shape);
    if (new_items.by_element.size() != new_items.items.size())
      fail(Code::invalid, "duplicate entries in a list with keys");
    return Interleave(*this, old_items, new_items, item_type(type)).merged();
  }

  // Two lists as one. Items of both come in the order of the applied list; an item that only the
  // live one has stays before the item that followed it there.
  class Interleave {
   public:
    Interleave(const Merge& merge, const ItemIndex& live, const ItemIndex& applied, Typing type)
        : merge_(merge), live_(live), applied_(applied), type_(type) {
      for (const IndexedItem& item : applied_.items)
        if (live_.has(item.element)) shared_.push_back(item.element);
    }

    Json merged() {
      while (old_ < live_.items.size() || new_ < applied_.items.size()) step();
      return std::move(out_);
    }

   private:
    void step() {
      const bool has_old = old_ < live_.items.size();
      const bool has_new = new_ < applied_.items.size();
      if (has_old && has_new) {
        const std::string& element = live_.items[old_].element;
        if (element == applied_.items[new_].element) {
          take_applied();
          ++old_;
          return;
        }
        // Shared, but not the one whose turn it is.
        if (applied_.has(element) && next_shared_ < shared_.size() &&
            shared_[next_shared_] != element) {
          ++old_;
          return;
        }
      }
      if (has_old) {
        const IndexedItem& item = live_.items[old_];
        if (!applied_.has(item.element)) {
          out_.push_back(merge_.node(item.item, nullptr, type_));
          ++old_;
          return;
        }
        if (done_.contains(item.element)) ++old_;
      }
      if (has_new) take_applied();
    }

    void take_applied() {
      const std::string& element = applied_.items[new_].element;
      done_.insert(element);
      out_.push_back(merge_.node(live_.find(element), applied_.items[new_].item, type_));
      ++new_;
      if (next_shared_ < shared_.size() && shared_[next_shared_] == element) ++next_shared_;
    }

    const Merge& merge_;
    const ItemIndex& live_;
    const ItemIndex& applied_;
    Typing type_;
    std::vector<std::string_view> shared_;  // in the order of the applied list
    std::size_t next_shared_ = 0;
    std::unordered_set<std::string_view> done_;
    std::size_t old_ = 0;
    std::size_t new_ = 0;
    JsonArray out_;
  };
};

class Removal {
 public:
  // Null where nothing is left.
  std::optional<Json> node(const Json& value, const FieldSet& set, Typing type) const {
    switch (const Shape shape = shape_of(type, &value)) {
      case Shape::map:
        if (value.is_object()) return members(value.get_object(), set, type);
        break;
      case Shape::set:
      case Shape::keyed:
        if (value.is_array()) return items(value.get_array(), set, type, shape);
        break;
      default:
        break;
    }
    return value;  // has no parts
  }

 private:
  std::optional<Json> members(const JsonObject& all, const FieldSet& set, Typing type) const {
    JsonObject left;
    left.reserve(all.size());
    for (const auto& [name, value] : all) {
      const FieldSet* below = set.find(member_element(name));
      if (!below) {
        left.emplace(name, value);
      } else if (!below->self) {
        auto rest = node(value, *below, member_type(type, name).value_or(Typing()));
        if (rest) left.emplace(name, std::move(*rest));
      }
    }
    if (left.empty()) return std::nullopt;
    return left;
  }

  std::optional<Json> items(const JsonArray& all, const FieldSet& set, Typing type,
                            Shape shape) const {
    JsonArray left;
    for (const Json& item : all) {
      const ItemElement element = item_element(type, shape, item);
      const FieldSet* below = element.problem.empty() ? set.find(element.element) : nullptr;
      if (!below) {
        left.push_back(item);
      } else if (!below->self) {
        auto rest = node(item, *below, item_type(type));
        if (rest) left.push_back(std::move(*rest));
      }
    }
    if (left.empty()) return std::nullopt;
    return left;
  }
};

void add_declared_parents(FieldSet& set, Typing type, Level level) {
  for (FieldSet::Child& child : set.children) {
    const bool is_member = child.element.starts_with("f:");
    const std::string_view name = std::string_view(child.element).substr(2);
    const Level below = is_member ? next_level(level, name) : Level::below;
    // metadata always stays: the name is in it.
    if (is_member && below != Level::metadata && !child.set.children.empty() &&
        is_declared(type, name))
      child.set.self = true;
    const Typing child_type =
        is_member ? member_type(type, name).value_or(Typing()) : item_type(type);
    add_declared_parents(child.set, child_type, below);
  }
}

}  // namespace

Json merge(const Json& live, const Json& configuration, const Schema& schema) {
  return Merge().node(&live, &configuration, {&schema});
}

Json remove_fields(const Json& object, const FieldSet& set, const Schema& schema) {
  return Removal().node(object, set, {&schema}).value_or(model::JsonObject());
}

FieldSet with_declared_parents(FieldSet set, const Schema& schema) {
  add_declared_parents(set, {&schema}, Level::root);
  return set;
}

}  // namespace hearth::patch
