// A rule as a tree, and what it can do with single values. For cel*.cc only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

// The rule cannot be decided.
[[noreturn]] void stop(std::string_view why);

// These stop at values of other types.
std::string_view text_of(const model::Json& json);
bool truth_of(const model::Json& json);
std::int64_t integer_of(const model::Json& json);
model::Json to_integer(const model::Json& json);
model::Json to_text(const model::Json& json);
// Of numbers; add, subtract, multiply, divide, modulo.
model::Json arithmetic_of(Op op, const model::Json& left, const model::Json& right);
// Below, at or above zero, as `left` is less, equal or greater.
int order(const model::Json& left, const model::Json& right);

}  // namespace cel

class CelProgram {
 public:
  std::unique_ptr<cel::Node> root;
  bool uses_old_self = false;
};

}  // namespace hearth::schema
