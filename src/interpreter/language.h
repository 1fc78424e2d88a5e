// The languages of cells: what they are called, and what runs them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace hearth::interpreter {

using Variables = std::vector<std::pair<std::string, std::string>>;

// "JS " is "javascript": lower case, trimmed, aliases by their full name.
std::string normal_language(std::string_view name);

// How a kernel is started and spoken to.
struct Kit {
  std::string program;               // for people
  std::vector<std::string> command;  // its standard input is our socket
  std::string first_words;           // what it is sent before anything else
  bool is_shell = false;             // takes lines of shell, not frames; cells have an exit status
  Duration signal_after{};           // since it was told to interrupt a cell
  Duration signal_again{};           // when the cell has not ended by then
};

// Throws Error(invalid) for a language that nothing here runs.
Kit kit_for(const std::string& language);

// One cell as the kernel takes it.
struct Cell {
  std::uint32_t count = 0;
  std::string language;
  std::string code;
  Variables sets;
  std::vector<std::string> unsets;
  Variables resets;                       // for afterwards: values,
  std::vector<std::string> reset_unsets;  // and names to be forgotten
};

// For kernels that take frames (see drivers/python/driver.py).
std::string frame_of(const Cell& cell);

// For shells: a line that does the same. What is to be reset goes into the next line, because an
// interrupt would keep this one from it. Throws Error(invalid) for what a shell cannot hold.
std::string shell_line_of(const Cell& cell);

// $'...', which holds any text without a NUL on one line.
std::string shell_quote(std::string_view text);

}  // namespace hearth::interpreter
