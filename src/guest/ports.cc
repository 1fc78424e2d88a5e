#include "guest/ports.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "linux/fd.h"

namespace hearth::guest {
namespace {

// Listening sockets come first in the file: beyond this are connections.
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

// "  0: 0100007F:1F90 00000000:0000 0A ...": number, local address, remote address, state.
std::optional<std::uint16_t> listening_port(std::string_view line) {
  constexpr std::string_view kListen = "0A";
  take_word(line);
  const std::string_view local = take_word(line);
  take_word(line);
  if (take_word(line) != kListen) return std::nullopt;
  const std::size_t colon = local.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* end = local.data() + local.size();
  const auto [rest, error] = std::from_chars(local.data() + colon + 1, end, port, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  return port;
}

void append_file(std::string& text, const char* path) {
  const linux::Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return;  // no IPv6
  std::array<char, 16384> piece{};
  ssize_t got = 0;
  for (std::size_t all = 0; all < kMostBytes; all += static_cast<std::size_t>(got)) {
    got = ::read(file.get(), piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

std::vector<std::uint16_t> parse_listening(std::string_view text) {
  std::vector<std::uint16_t> ports;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto port = listening_port(text.substr(0, end))) ports.push_back(*port);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::ranges::sort(ports);
  const auto [first, last] = std::ranges::unique(ports);
  ports.erase(first, last);
  return ports;
}

std::vector<std::uint16_t> read_listening_ports() {
  std::string text;
  append_file(text, "/proc/net/tcp");
  append_file(text, "/proc/net/tcp6");
  return parse_listening(text);
}

}  // namespace hearth::guest
