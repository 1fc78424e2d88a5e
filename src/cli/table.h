// Columns for people.
#pragma once

#include <string>
#include <vector>

namespace hearth::cli {

using Row = std::vector<std::string>;

// Each column as wide as its widest cell, two spaces between, no space at the end of a line. Cells
// are counted in characters (UTF-8), and control characters in them are shown as '?': a terminal
// obeys those. Rows may be shorter than the heading.
std::string format_table(const Row& heading, const std::vector<Row>& rows);

}  // namespace hearth::cli
