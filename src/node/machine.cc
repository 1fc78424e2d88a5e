#include "node/machine.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "linux/fd.h"

namespace hearth::node {

std::string read_or_nothing(const std::string& path) {
  try {
    std::string text = linux::read_file(path);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  } catch (const Error&) {
    return {};
  }
}

std::uint64_t number_in(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_of("0123456789")));
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.size(), line.find_first_not_of("=: \"")));
    while (line.ends_with('"')) line.remove_suffix(1);
    return std::string(line);
  }
  return {};
}

Amount read_disk(const std::string& path) {
  struct statvfs status{};
  if (::statvfs(path.c_str(), &status) != 0) return {};
  return {status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize};
}

Amount read_memory() {
  const std::string text = read_or_nothing("/proc/meminfo");
  return {number_in(value_of(text, "MemTotal")) << 10, number_in(value_of(text, "MemAvailable"))
                                                           << 10};
}

Amount read_processes() {
  // "0.01 0.02 0.00 1/234 5678": running of all.
  const std::string load = read_or_nothing("/proc/loadavg");
  const std::size_t slash = std::min(load.find('/'), load.size());
  const std::uint64_t used = number_in(std::string_view(load).substr(slash));
  const std::uint64_t most = number_in(read_or_nothing("/proc/sys/kernel/pid_max"));
  return {most, most - std::min(used, most)};
}

}  // namespace hearth::node
