// For tests of words and what they are understood as.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/command_line.h"

namespace hearth::cli {

using Words = std::vector<std::string>;

// Whether the words are refused with a message that has `part` in it.
inline bool refused(const Words& words, std::string_view part) {
  try {
    parse_order(split_command_line(words));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
    return true;
  }
  return false;
}

}  // namespace hearth::cli
