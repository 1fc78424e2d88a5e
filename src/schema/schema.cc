#include "schema/schema.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hearth::schema {
namespace {

using model::JsonArray;
using model::JsonObject;
using model::Touched;

bool is_zero(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return true;
    case boost::json::kind::bool_:
      return !value.get_bool();
    case boost::json::kind::string:
      return value.get_string().empty();
    case boost::json::kind::array:
      return value.get_array().empty();
    case boost::json::kind::object:
      return value.get_object().empty();
    default:
      return model::as_integer(value) == 0;
  }
}

// Removes the members for which `goes(name, value)` holds, in one go: erasing them one by one takes
// a hostile object's length squared. Order is kept, for people who compare with what they sent.
template <typename Goes>
void erase_members(JsonObject& object, Goes goes) {
  std::vector<std::size_t> gone;  // usually none
  std::size_t index = 0;
  for (auto& member : object) {
    if (goes(std::string_view(member.key().data(), member.key().size()), member.value()))
      gone.push_back(index);
    ++index;
  }
  if (gone.empty()) return;
  JsonObject kept(object.storage());
  index = 0;
  auto next = gone.begin();
  for (auto& member : object) {
    if (next != gone.end() && *next == index++)
      ++next;
    else
      kept.emplace(member.key(), std::move(member.value()));
  }
  object = std::move(kept);
}

void fill_members(JsonObject& object, const Schema& schema, Touched touched) {
  for (const auto& [name, member] : schema.properties) {
    if (!member->default_value) continue;
    Json* value = object.if_contains(name);
    if (!value)
      apply_defaults(object.emplace(name, *member->default_value).first->value(), *member);
    else if (value->is_null() && !member->nullable)
      *value = *member->default_value;
  }
  erase_members(object, [&](std::string_view name, Json& value) {
    const auto below = touched.member(name);
    if (!below) return false;
    const auto property = schema.properties.find(name);
    const bool is_named = property != schema.properties.end();
    const Schema* member = is_named ? property->second.get() : schema.additional.get();
    if (!member) return false;
    if (value.is_null() && !member->nullable) {
      if (is_named) return true;
      if (member->default_value) value = *member->default_value;
    }
    apply_defaults(value, *member, *below);
    return false;
  });
}

// As many unknown members are named, with as much of their path; more help nobody.
constexpr std::size_t kMostUnknown = 100;
constexpr std::size_t kLongestPath = 1024;

class Pruner {
 public:
  explicit Pruner(std::vector<std::string>* unknown) : unknown_(unknown) {}

  void prune(Json& value, const Schema& schema, Touched touched) {
    // A value of another type stays as it is, for validation to see.
    if (JsonObject* object = value.if_object(); object && schema.type != Type::array)
      prune_object(*object, schema, touched);
    else if (JsonArray* array = value.if_array(); array && schema.items)
      prune_array(*array, *schema.items);
  }

 private:
  void prune_object(JsonObject& object, const Schema& schema, Touched touched) {
    const std::size_t length = path_.size();
    erase_members(object, [&](std::string_view name, Json& value) {
      const auto below = touched.member(name);
      if (!below) return false;
      const Schema* member = member_schema(schema, name);
      if (!member && schema.preserve_unknown) return false;
      if (!path_.empty()) path_ += '.';
      path_.append(name);
      if (member)
        prune(value, *member, *below);
      else if (unknown_ && unknown_->size() < kMostUnknown)
        unknown_->push_back(path_.substr(0, kLongestPath));
      path_.resize(length);
      return !member;
    });
  }

  void prune_array(JsonArray& array, const Schema& items) {
    const std::size_t length = path_.size();
    std::size_t index = 0;
    for (Json& item : array) {
      fmt::format_to(std::back_inserter(path_), "[{}]", index++);
      prune(item, items, {});
      path_.resize(length);
    }
  }

  std::vector<std::string>* unknown_;
  std::string path_;
};

// An empty list is no zero of a map: whoever sent that is told.
bool may_be_of(const Json& zero, Type type) {
  if (zero.is_array()) return type == Type::array || type == Type::any;
  if (zero.is_object()) return type == Type::object || type == Type::any;
  return true;
}

}  // namespace

const Schema* member_schema(const Schema& schema, std::string_view name) {
  if (const auto found = schema.properties.find(name); found != schema.properties.end())
    return found->second.get();
  return schema.additional.get();
}

void apply_defaults(Json& value, const Schema& schema, Touched touched) {
  if (JsonObject* object = value.if_object()) {
    fill_members(*object, schema, touched);
  } else if (JsonArray* array = value.if_array(); array && schema.items) {
    for (Json& item : *array) {
      if (item.is_null() && !schema.items->nullable && schema.items->default_value)
        item = *schema.items->default_value;
      apply_defaults(item, *schema.items);
    }
  }
}

void drop_zero_values(Json& value, const Schema& schema) {
  if (JsonObject* object = value.if_object()) {
    erase_members(*object, [&](std::string_view name, Json& member) {
      const Schema* known = member_schema(schema, name);
      if (!known) return false;
      drop_zero_values(member, *known);
      return known->omits_zero && is_zero(member) && may_be_of(member, known->type);
    });
  } else if (JsonArray* array = value.if_array(); array && schema.items) {
    for (Json& item : *array) drop_zero_values(item, *schema.items);
  }
}

void prune(Json& object, const Schema& schema, std::vector<std::string>* unknown, Touched touched) {
  Pruner(unknown).prune(object, schema, touched);
  if (unknown) std::sort(unknown->begin(), unknown->end());
}

}  // namespace hearth::schema
