#include "guest/ports.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
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

std::optional<std::uint32_t> parse_hex(std::string_view text) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

// Words of 32 bits, each as this machine has them in memory: one for IPv4, four for IPv6.
template <std::size_t kWords>
std::optional<std::array<std::uint32_t, kWords>> parse_words(std::string_view text) {
  constexpr std::size_t kDigits = 8;
  std::array<std::uint32_t, kWords> words{};
  for (std::size_t i = 0; i < kWords; ++i) {
    const auto word = parse_hex(text.substr(i * kDigits, kDigits));
    if (!word) return std::nullopt;
    words[i] = *word;
  }
  return words;
}

template <typename Address>
Listener listener_at(const Address& address, std::uint16_t port) {
  Listener listener{.size = sizeof address, .port = port};
  std::memcpy(&listener.address, &address, sizeof address);
  return listener;
}

// "  0: 0100007F:1F90 00000000:0000 0A ...": number, local address, remote address, state.
std::optional<Listener> parse_listener(std::string_view line) {
  constexpr std::string_view kListen = "0A";
  take_word(line);
  const std::string_view local = take_word(line);
  take_word(line);
  if (take_word(line) != kListen) return std::nullopt;
  const std::size_t colon = local.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto number = parse_hex(local.substr(colon + 1));
  if (!number || *number > 0xffff) return std::nullopt;
  const auto port = static_cast<std::uint16_t>(*number);
  if (colon == 8) {
    const auto words = parse_words<1>(local);
    if (!words) return std::nullopt;
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = words->front();
    return listener_at(address, port);
  }
  const auto words = colon == 32 ? parse_words<4>(local) : std::nullopt;
  if (!words) return std::nullopt;
  sockaddr_in6 address{.sin6_family = AF_INET6, .sin6_port = htons(port)};
  std::memcpy(&address.sin6_addr, words->data(), sizeof address.sin6_addr);
  return listener_at(address, port);
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

std::string read_sockets() {
  std::string text;
  append_file(text, "/proc/net/tcp");
  append_file(text, "/proc/net/tcp6");
  return text;
}

}  // namespace

std::vector<Listener> parse_listeners(std::string_view text) {
  std::vector<Listener> listeners;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto listener = parse_listener(text.substr(0, end))) listeners.push_back(*listener);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return listeners;
}

std::vector<std::uint16_t> parse_listening(std::string_view text) {
  std::vector<std::uint16_t> ports;
  for (const Listener& each : parse_listeners(text)) ports.push_back(each.port);
  std::ranges::sort(ports);
  const auto [first, last] = std::ranges::unique(ports);
  ports.erase(first, last);
  return ports;
}

std::vector<std::uint16_t> read_listening_ports() {
  return parse_listening(read_sockets());
}

std::optional<Listener> find_listener(std::uint16_t port) {
  for (const Listener& each : parse_listeners(read_sockets()))
    if (each.port == port) return each;
  return std::nullopt;
}

}  // namespace hearth::guest
