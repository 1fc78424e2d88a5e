// What rules can do with single values.
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "schema/cel_tree.h"

namespace hearth::schema::cel {
namespace {

using model::Json;

bool is_integer(const Json& json) {
  return json.is_int64() || json.is_uint64();
}

Json checked(bool overflows, std::int64_t result) {
  if (overflows) stop("integer overflow");
  return result;
}

Json integer_arithmetic(Op op, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (op) {
    case Op::add:
      return checked(__builtin_add_overflow(left, right, &result), result);
    case Op::subtract:
      return checked(__builtin_sub_overflow(left, right, &result), result);
    case Op::multiply:
      return checked(__builtin_mul_overflow(left, right, &result), result);
    default:
      if (right == 0) stop(op == Op::divide ? "division by zero" : "modulus by zero");
      if (right == -1) return op == Op::divide ? checked(left == INT64_MIN, -left) : Json(0);
      return op == Op::divide ? left / right : left % right;
  }
}

Json double_arithmetic(Op op, double left, double right) {
  switch (op) {
    case Op::add:
      return left + right;
    case Op::subtract:
      return left - right;
    case Op::multiply:
      return left * right;
    case Op::divide:
      if (right == 0) stop("division by zero");
      return left / right;
    default:
      stop("no such overload");
  }
}

Json parse_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) stop("type conversion error");
  return number;
}

}  // namespace

void stop(std::string_view why) {
  fail(Code::invalid, "{}", why);
}

std::string_view text_of(const Json& json) {
  if (!json.is_string()) stop("no such overload");
  return {json.get_string().data(), json.get_string().size()};
}

bool truth_of(const Json& json) {
  if (!json.is_bool()) stop("no such overload");
  return json.get_bool();
}

std::int64_t integer_of(const Json& json) {
  const auto number = model::as_integer(json);
  if (!number) stop("no such overload");
  return *number;
}

Json to_integer(const Json& json) {
  if (json.is_string()) return parse_integer(text_of(json));
  if (json.is_double() && std::abs(json.get_double()) < 9e18)
    return static_cast<std::int64_t>(json.get_double());
  return integer_of(json);
}

Json to_text(const Json& json) {
  if (json.is_object() || json.is_array() || json.is_null()) stop("no such overload");
  return json.is_string() ? json : Json(boost::json::string(model::to_text(json)));
}

Json arithmetic_of(Op op, const Json& left, const Json& right) {
  if (is_integer(left) && is_integer(right))
    return integer_arithmetic(op, integer_of(left), integer_of(right));
  if (!left.is_number() || !right.is_number()) stop("no such overload");
  return double_arithmetic(op, left.to_number<double>(), right.to_number<double>());
}

int order(const Json& left, const Json& right) {
  if (is_integer(left) && is_integer(right)) {
    const std::int64_t a = integer_of(left), b = integer_of(right);
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (left.is_number() && right.is_number()) {
    const double a = left.to_number<double>(), b = right.to_number<double>();
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return text_of(left).compare(text_of(right));
}

}  // namespace hearth::schema::cel
