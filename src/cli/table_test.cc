#include "cli/table.h"

#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(format_table({"ID", "STATE"}, {{"a-long-id", "running"}, {"b", "exited"}}),
            "ID         STATE\n"
            "a-long-id  running\n"
            "b          exited\n");
}

TEST(TableTest, CharactersCountNotBytes) {
  EXPECT_EQ(format_table({"A", "B"}, {{"\xC3\xA9\xC3\xA9", "x"}, {"abc", "y"}}),
            "A    B\n"
            "\xC3\xA9\xC3\xA9   x\n"
            "abc  y\n");
}

TEST(TableTest, ATerminalIsNotCommandedByACell) {
  EXPECT_EQ(format_table({"A"}, {{"\033[2Jx\n"}}), "A\n?[2Jx?\n");
}

TEST(TableTest, RowsMayBeShort) {
  EXPECT_EQ(format_table({"A", "B"}, {{"1"}, {}}), "A  B\n1\n\n");
}

}  // namespace
}  // namespace hearth::cli
