// A rule as a tree. Between cel_parse.cc and cel.cc only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/json.h"

namespace hearth::schema {
namespace cel {

enum class Op : unsigned char {
  literal,
  name,
  field,  // child 0, member `text`
  index,
  list,
  has,  // child 0 is a `field`
  negate,
  not_,
  and_,
  or_,
  choose,
  // Macros: child 0 is the range, `text` the variable, child 1 the body.
  all,
  exists,
  exists_one,
  filter,
  map,
  // Functions of one value.
  size,
  to_int,
  to_string,
  lower,
  // Functions of two.
  add,
  subtract,
  multiply,
  divide,
  modulo,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  starts_with,
  ends_with,
  contains,
  matches,
};

struct Node {
  Op op = Op::literal;
  std::string text;
  model::Json value;
  std::vector<std::unique_ptr<Node>> children;

  const Node& child(std::size_t index) const { return *children[index]; }
};

}  // namespace cel

class CelProgram {
 public:
  std::unique_ptr<cel::Node> root;
  bool uses_old_self = false;
};

}  // namespace hearth::schema
