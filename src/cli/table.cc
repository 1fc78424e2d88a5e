#include "cli/table.h"

#include <algorithm>

namespace hearth::cli {
namespace {

std::string without_controls(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  return text;
}

// Bytes that do not continue a character.
std::size_t count_characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string format_table(const Row& heading, const std::vector<Row>& rows) {
  std::vector<Row> lines = {heading};
  lines.insert(lines.end(), rows.begin(), rows.end());
  std::vector<std::size_t> widths;
  for (Row& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = without_controls(std::move(line[i]));
      widths[i] = std::max(widths[i], count_characters(line[i]));
    }
  }
  std::string text;
  for (const Row& line : lines) {
    std::string padded;
    for (std::size_t i = 0; i < line.size(); ++i) {
      padded += line[i];
      padded.append(widths[i] - count_characters(line[i]) + 2, ' ');
    }
    padded.erase(padded.find_last_not_of(' ') + 1);
    text += padded + '\n';
  }
  return text;
}

}  // namespace hearth::cli
