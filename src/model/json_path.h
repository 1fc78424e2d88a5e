// JSONPath as printer columns and the scale subresource of a CRD use it.
//
//   .spec.replicas      .metadata.labels['a.b/c']    .status.podIPs[0].ip    .items[*].name
//   .status.conditions[?(@.type=='Ready')].status    {.metadata.name}
//
// Parsed once, evaluated often. Recursive descent ("..") is refused: nobody prints what it finds.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/json.h"

namespace hearth::model {

class JsonPath {
 public:
  // Throws Error(invalid) with the place.
  static JsonPath parse(std::string_view text);

  // What the path leads to, in order; at most `most`.
  std::vector<const Json*> find_all(const Json& value, std::size_t most = 1000) const;
  // The first of them; null for nothing.
  const Json* find_first(const Json& value) const;

  // Members only: leads to one place, where a value can be put.
  bool is_simple() const;
  // Objects on the way that are missing are made. Throws Error(invalid) where something else is in
  // the way, or the path is not simple.
  void set(Json& value, Json what) const;

  struct Member {
    std::string name;
  };
  struct Slice {  // [2], [-1], [1:3]
    long first = 0;
    long last = 0;  // the one behind; ignored if is_open
    bool is_open = false;
  };
  struct Each {};
  enum class Comparison {
    exists,
    equal,
    not_equal,
    less,
    less_or_equal,
    greater,
    greater_or_equal
  };
  struct Filter {  // [?(@.a.b=="c")]
    std::vector<std::string> members;
    Comparison comparison = Comparison::exists;
    Json literal;
  };
  using Step = std::variant<Member, Slice, Each, Filter>;

 private:
  std::vector<Step> steps_;
};

}  // namespace hearth::model
