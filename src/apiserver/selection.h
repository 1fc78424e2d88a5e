// Which objects of a collection a request is about: its namespace and its two selectors.
#pragma once

#include <optional>
#include <string>

#include "apiserver/resource.h"
#include "model/selector.h"
#include "store/store.h"

namespace hearth::apiserver {

struct Selection {
  std::optional<std::string> ns;  // none: all
  model::LabelSelector labels;
  model::FieldSelector fields;

  bool has_selector() const { return !labels.is_empty() || !fields.is_empty(); }
  // Of an object in the namespace.
  bool matches(const store::Object& object, const Resource& resource) const;
  // The one object that can match, where a field selector names it.
  std::optional<std::string> only_name() const;
};

}  // namespace hearth::apiserver
