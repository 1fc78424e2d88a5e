#include "schema/builtin.h"

#include <gtest/gtest.h>

namespace hearth::schema {
namespace {

TEST(BuiltinTest, KnowsPods) {
  const auto& kinds = builtin_kinds();
  ASSERT_FALSE(kinds.empty());
  const SchemaPtr pod = find_builtin("v1", "Pod");
  ASSERT_TRUE(pod);
}

}  // namespace
}  // namespace hearth::schema
