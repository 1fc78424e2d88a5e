// What a kind adds to the rules that hold for all: defaults, immutable fields, its own validation.
//
// Stateless and shared; called on the path of every write, so plain computation only. What needs
// the store (a free cluster IP, the phase of a namespace) is the server's.
#pragma once

#include <string_view>
#include <vector>

#include "model/json.h"
#include "model/status.h"

namespace hearth::apiserver {

using model::Json;

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Fills in what a real server fills in (beyond the schema's own defaults). On every write.
  virtual void fill_in(Json& object) const { static_cast<void>(object); }
  // A new object: status and other things that a client may not set.
  virtual void prepare_create(Json& object) const { static_cast<void>(object); }
  // An update of the main resource: restores what may not change silently.
  virtual void prepare_update(Json& next, const Json& old) const {
    static_cast<void>(next);
    static_cast<void>(old);
  }
  // What is wrong beyond the schema. `old`: null for a new object. `subresource`: "" or "status".
  virtual std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                                  std::string_view subresource) const {
    static_cast<void>(next);
    static_cast<void>(old);
    static_cast<void>(subresource);
    return {};
  }
  // Between this view of an object and the one that is kept, apiVersion and kind included.
  virtual void to_storage(Json& object) const { static_cast<void>(object); }
  virtual void from_storage(Json& object) const { static_cast<void>(object); }

  // Whether an update without resourceVersion overwrites what is there (most built-in kinds).
  virtual bool allows_unconditional_update() const { return false; }
  // Whether metadata.generation grows with changes of what is not metadata or status.
  virtual bool has_generation() const { return true; }
};

// The strategy of a resource; never null. `custom` is the one of kinds without their own.
const Strategy* find_strategy(std::string_view group, std::string_view version,
                              std::string_view kind);

}  // namespace hearth::apiserver
