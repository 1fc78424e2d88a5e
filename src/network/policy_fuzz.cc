// Whatever arrives as a policy, or as the text of a rule, is refused or means the same when written
// and read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "network/policy.h"
#include "network/resolver.h"

using namespace hearth;
using namespace hearth::network;

namespace {

void try_wire(std::string_view bytes) {
  Policy policy;
  try {
    policy = wire::parse_whole(bytes, read_policy);
  } catch (const Error&) {
    return;
  }
  wire::Writer out;
  put(out, policy);
  HEARTH_ASSERT(std::move(out).take() == bytes);
}

void try_text(std::string_view text) {
  Rule rule;
  try {
    rule = parse_rule(text);
  } catch (const Error&) {
    return;
  }
  check({.allow = {rule}});
  HEARTH_ASSERT(parse_rule(to_string(rule)) == rule);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_wire(bytes);
  try_text(bytes);
  choose_resolver(bytes, bytes);
  return 0;
}
