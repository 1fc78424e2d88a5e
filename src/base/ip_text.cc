#include "base/ip_text.h"

#include <arpa/inet.h>

#include <string>

namespace hearth {
namespace {

template <typename Address>
std::optional<Address> parse(int family, std::string_view text) {
  Address address{};
  const bool is_whole = text.find('\0') == std::string_view::npos;
  if (!is_whole || ::inet_pton(family, std::string(text).c_str(), &address) != 1)
    return std::nullopt;
  return address;
}

}  // namespace

std::optional<in_addr> parse_ipv4(std::string_view text) {
  return parse<in_addr>(AF_INET, text);
}

std::optional<in6_addr> parse_ipv6(std::string_view text) {
  return parse<in6_addr>(AF_INET6, text);
}

}  // namespace hearth
