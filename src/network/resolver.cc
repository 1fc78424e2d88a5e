#include "network/resolver.h"

#include "base/error.h"
#include "linux/fd.h"
#include "network/policy.h"

namespace hearth::network {
namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(word.size());
  return word;
}

std::optional<std::uint32_t> find_name_server(std::string_view line) {
  if (take_word(line) != "nameserver") return std::nullopt;
  const std::string_view word = take_word(line);
  if (word.find('/') != std::string_view::npos) return std::nullopt;
  try {
    return parse_cidr(word).address;
  } catch (const Error&) {
    return std::nullopt;  // IPv6, or nonsense
  }
}

std::optional<std::uint32_t> first_name_server(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (auto found = find_name_server(line)) return found;
  }
  return std::nullopt;
}

std::string read_if_there(const char* path) {
  try {
    return linux::read_file(path);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

bool is_loopback(std::uint32_t address) {
  return address >> 24 == 127;
}

std::optional<std::uint32_t> choose_resolver(std::string_view resolv_conf,
                                             std::string_view upstream) {
  const auto first = first_name_server(resolv_conf);
  if (first && !is_loopback(*first)) return first;
  const auto behind_it = first_name_server(upstream);
  return behind_it ? behind_it : first;
}

std::optional<std::uint32_t> find_host_resolver() {
  return choose_resolver(read_if_there("/etc/resolv.conf"),
                         read_if_there("/run/systemd/resolve/resolv.conf"));
}

}  // namespace hearth::network
