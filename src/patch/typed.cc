// Types at places of objects, and what follows from one object alone.
#include <algorithm>
#include <array>
#include <memory>
#include <unordered_set>

#include <fmt/format.h>

#include "patch/typed_internal.h"

namespace hearth::patch {
namespace {

using schema::Grain;
using schema::Type;

bool is_deduced(const Schema* schema) {
  return !schema || (schema->type == Type::any && !schema->int_or_string &&
                     schema->properties.empty() && !schema->items);
}

const Json* find_key(const model::JsonObject& item, const Schema* items, const std::string& key) {
  if (const Json* value = item.if_contains(key)) return value;
  if (!items) return nullptr;
  const auto property = items->properties.find(key);
  if (property == items->properties.end() || !property->second->default_value) return nullptr;
  return &*property->second->default_value;
}

ItemElement keyed_element(const Schema& list, const Json& item) {
  if (item.is_null()) return {"", "associative list with keys may not have a null element"};
  const model::JsonObject* members = item.if_object();
  if (!members) return {"", "associative list with keys may not have non-map elements"};
  std::vector<std::pair<std::string_view, const Json*>> keys;
  for (const std::string& key : list.list_keys)
    if (const Json* value = find_key(*members, list.items.get(), key))
      keys.emplace_back(key, value);
  if (!keys.empty()) return {key_element(std::move(keys)), ""};
  std::string names;
  for (const std::string& key : list.list_keys)
    names += (names.empty() ? "\"" : " \"") + key + "\"";
  return {"", "associative list with keys has an element that omits all key fields [" + names +
                  "] (and doesn't have default values for any key fields)"};
}

ItemElement set_element(const Json& item) {
  if (item.is_object())
    return {"", "associative list without keys has an element that's a map type"};
  if (item.is_array()) return {"", "not supported: associative list with lists as elements"};
  if (item.is_null())
    return {"", "associative list without keys has an element that's an explicit null"};
  return {value_element(item), ""};
}

class Collector {
 public:
  void add(const Json& value, Typing type, Level level, FieldSet& out) const {
    switch (const Shape shape = shape_of(type, &value)) {
      case Shape::map:
        if (value.is_object()) add_members(value.get_object(), type, level, out);
        return;
      case Shape::set:
      case Shape::keyed:
        if (value.is_array()) add_items(value.get_array(), type, shape, out);
        return;
      default:
        out.self = true;
    }
  }

 private:
  void add_members(const model::JsonObject& members, Typing type, Level level,
                   FieldSet& out) const {
    for (const auto& [name, value] : members) {
      if (is_untracked(level, name)) continue;
      const Level below = next_level(level, name);
      FieldSet child;
      add(value, member_type(type, name).value_or(Typing()), below, child);
      const bool is_empty = value.is_null() || (value.is_object() && value.get_object().empty());
      if (below != Level::metadata && (is_empty || !is_declared(type, name))) child.self = true;
      out.append(member_element(name), std::move(child));
    }
    out.sort();
  }

  void add_items(const model::JsonArray& items, Typing type, Shape shape, FieldSet& out) const {
    std::vector<std::pair<std::string, const Json*>> found;
    for (const Json& item : items)
      if (ItemElement element = item_element(type, shape, item); element.problem.empty())
        found.emplace_back(std::move(element.element), &item);
    std::sort(found.begin(), found.end());
    for (std::size_t i = 0; i < found.size();) {
      std::size_t end = i + 1;
      while (end < found.size() && found[end].first == found[i].first) ++end;
      FieldSet child;
      // Of items with one key only the key can be owned.
      if (end == i + 1) add(*found[i].second, item_type(type), Level::below, child);
      child.self = true;
      out.append(std::move(found[i].first), std::move(child));
      i = end;
    }
    out.sort();
  }
};

class TypeErrors {
 public:
  // One is enough to refuse; the rest is service.
  static constexpr std::size_t kMostErrors = 50;

  void check(const Json& value, Typing type, const std::string& path) {
    if (value.is_null()) return;
    switch (const Shape shape = shape_of(type, &value)) {
      case Shape::scalar:
        return check_scalar(value, type, path);
      case Shape::map:
      case Shape::atomic_map:
        if (!value.is_object()) return note(path, "expected map, got &{" + text(value) + "}");
        return check_members(value.get_object(), type, path);
      default:
        if (!value.is_array()) return note(path, "expected list, got &{" + text(value) + "}");
        return check_items(value.get_array(), type, shape, path);
    }
  }

  std::vector<std::string> take() { return std::move(errors_); }

 private:
  static std::string text(const Json& value) {
    return value.is_string() ? std::string(value.get_string()) : model::to_text(value);
  }

  void note(const std::string& path, std::string_view problem) {
    if (errors_.size() == kMostErrors) return;
    errors_.push_back(path.empty() ? std::string(problem) : fmt::format("{}: {}", path, problem));
  }

  void check_scalar(const Json& value, Typing type, const std::string& path) {
    const Type wanted = type.schema ? type.schema->type : Type::any;
    const bool is_container = value.is_object() || value.is_array();
    if (!type.schema || type.schema->int_or_string || wanted == Type::any) {
      if (is_container) note(path, "expected any scalar, got &{" + text(value) + "}");
    } else if (wanted == Type::string && !value.is_string()) {
      note(path, "expected string, got &value.valueUnstructured{Value:" + text(value) + "}");
    } else if (wanted == Type::boolean && !value.is_bool()) {
      note(path, "expected boolean, got &{" + text(value) + "}");
    } else if ((wanted == Type::integer || wanted == Type::number) && !value.is_number()) {
      note(path, std::string("expected numeric (int or float), got ") +
                     (value.is_string() ? "string"
                      : value.is_bool() ? "bool"
                      : is_container    ? "map[string]interface {}"
                                        : "nil"));
    }
  }

  void check_members(const model::JsonObject& members, Typing type, const std::string& path) {
    for (const auto& [name, value] : members) {
      const std::string below = fmt::format("{}.{}", path, std::string_view(name));
      const auto member = member_type(type, name);
      if (!member) return note(below, "field not declared in schema");
      check(value, *member, below);
    }
  }

  void check_items(const model::JsonArray& items, Typing type, Shape shape,
                   const std::string& path) {
    std::unordered_set<std::string> seen;
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::string below = fmt::format("{}[{}]", path, i);
      if (shape != Shape::atomic_list) {
        ItemElement element = item_element(type, shape, items[i]);
        if (!element.problem.empty())
          return note(path, fmt::format("element {}: {}", i, element.problem));
        const std::string name = item_path(element.element);
        if (!seen.insert(std::move(element.element)).second)
          note(path, "duplicate entries for key " + name);
        below = path + name;
      }
      check(items[i], item_type(type), below);
    }
  }

  static std::string item_path(const std::string& element) {
    FieldSet one;
    FieldSet self;
    self.self = true;
    one.append(element, std::move(self));
    std::string path;
    for_each_path(one, [&](const std::string& text) { path = text; });
    return path;
  }

  std::vector<std::string> errors_;
};

}  // namespace

Shape shape_of(Typing type, const Json* value) {
  if (is_deduced(type.schema)) {
    if (!value || value->is_null() || value->is_object()) return Shape::map;
    return value->is_array() ? Shape::atomic_list : Shape::scalar;
  }
  const Schema& schema = *type.schema;
  switch (schema.type) {
    case Type::object:
      return schema.grain == Grain::atomic ? Shape::atomic_map : Shape::map;
    case Type::array:
      if (schema.grain == Grain::keyed && !schema.list_keys.empty()) return Shape::keyed;
      return schema.grain == Grain::set ? Shape::set : Shape::atomic_list;
    default:
      return Shape::scalar;
  }
}

std::optional<Typing> member_type(Typing type, std::string_view name) {
  if (is_deduced(type.schema)) return Typing();
  if (const Schema* member = schema::member_schema(*type.schema, name)) return Typing{member};
  if (type.schema->preserve_unknown) return Typing();
  return std::nullopt;
}

bool is_declared(Typing type, std::string_view name) {
  return type.schema && type.schema->properties.find(name) != type.schema->properties.end();
}

Typing item_type(Typing list) {
  return {list.schema ? list.schema->items.get() : nullptr};
}

ItemElement item_element(Typing list, Shape shape, const Json& item) {
  return shape == Shape::keyed ? keyed_element(*list.schema, item) : set_element(item);
}

Level next_level(Level level, std::string_view name) {
  return level == Level::root && name == "metadata" ? Level::metadata : Level::below;
}

bool is_untracked(Level level, std::string_view name) {
  static constexpr std::array<std::string_view, 9> kOfMetadata = {
      "name",        "namespace",  "creationTimestamp", "selfLink",       "uid",
      "clusterName", "generation", "managedFields",     "resourceVersion"};
  if (level == Level::below) return false;
  if (level == Level::root) return name == "apiVersion" || name == "kind";
  return std::find(kOfMetadata.begin(), kOfMetadata.end(), name) != kOfMetadata.end();
}

FieldSet fields_of(const Json& object, const Schema& schema) {
  FieldSet set;
  Collector().add(object, {&schema}, Level::root, set);
  set.self = false;
  return set;
}

std::vector<std::string> find_type_errors(const Json& object, const Schema& schema) {
  TypeErrors errors;
  errors.check(object, {&schema}, "");
  return errors.take();
}

}  // namespace hearth::patch
