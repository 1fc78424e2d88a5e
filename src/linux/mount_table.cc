#include <array>
#include <charconv>

#include "base/error.h"
#include "linux/mounts.h"

namespace hearth::linux {
namespace {

// Linux allows 100,000 mounts per namespace (fs.mount-max).
constexpr std::size_t kTableLimit = std::size_t{64} << 20;

std::string_view next_word(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return word;
}

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// Space, tab, newline and backslash are written as \ooo (fs/proc_namespace.c, mangle()).
std::string unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) &&
                         is_octal(text[i + 2]) && is_octal(text[i + 3]);
    if (!escaped) {
      plain += text[i];
      continue;
    }
    const int value = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
    plain += static_cast<char>(value);
    i += 3;
  }
  return plain;
}

int parse_id(std::string_view word, std::string_view line) {
  int id = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || end != word.data() + word.size()) {
    fail(Code::invalid, "mountinfo line '{}' does not begin with two numbers", line);
  }
  return id;
}

MountEntry parse_line(std::string_view line) {
  std::string_view rest = line;
  MountEntry entry;
  entry.id = parse_id(next_word(rest, ' '), line);
  entry.parent_id = parse_id(next_word(rest, ' '), line);
  next_word(rest, ' ');  // major:minor
  entry.root = unescape(next_word(rest, ' '));
  entry.mount_point = unescape(next_word(rest, ' '));
  entry.options = std::string(next_word(rest, ' '));
  // Any number of optional fields ("shared:1"), ended by a dash.
  std::string_view field;
  do {
    if (rest.empty()) fail(Code::invalid, "mountinfo line '{}' ends too early", line);
    field = next_word(rest, ' ');
  } while (field != "-");
  entry.type = unescape(next_word(rest, ' '));
  entry.source = unescape(next_word(rest, ' '));
  entry.super_options = std::string(rest);
  if (entry.type.empty() || entry.mount_point.empty()) {
    fail(Code::invalid, "mountinfo line '{}' ends too early", line);
  }
  return entry;
}

}  // namespace

std::vector<MountEntry> parse_mountinfo(std::string_view text) {
  std::vector<MountEntry> entries;
  while (!text.empty()) {
    const std::string_view line = next_word(text, '\n');
    if (!line.empty()) entries.push_back(parse_line(line));
  }
  return entries;
}

std::vector<MountEntry> mount_table() {
  // The thread's: a thread may have left its process's mount namespace.
  return parse_mountinfo(read_file("/proc/thread-self/mountinfo", kTableLimit));
}

bool has_mount_option(std::string_view options, std::string_view option) {
  while (!options.empty()) {
    if (next_word(options, ',') == option) return true;
  }
  return false;
}

}  // namespace hearth::linux
