#include "network/policy.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"

namespace hearth::network {
namespace {

constexpr unsigned kAddressBits = 32;
constexpr unsigned kMostPort = 65535;

std::uint32_t mask_of(unsigned prefix) {
  return prefix == 0 ? 0 : ~std::uint32_t{0} << (kAddressBits - prefix);
}

// A decimal number without sign, spaces or leading zeros, up to `most`. Leading zeros mean octal to
// some readers and decimal to others, so they mean nothing here.
std::optional<unsigned> parse_number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value > most) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return value;
}

std::optional<std::uint32_t> parse_address(std::string_view text) {
  std::uint32_t address = 0;
  for (int part = 0; part < 4; ++part) {
    const std::size_t dot = part < 3 ? text.find('.') : text.size();
    if (dot == std::string_view::npos) return std::nullopt;
    const std::optional<unsigned> byte = parse_number(text.substr(0, dot), 255);
    if (!byte) return std::nullopt;
    address = address << 8 | *byte;
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return address;
}

bool is_known(Protocol protocol) {
  return protocol == Protocol::any || protocol == Protocol::tcp || protocol == Protocol::udp;
}

void check_rule(const Rule& rule) {
  if (rule.to.prefix > kAddressBits) {
    fail(Code::invalid, "network rule: /{} is too long a prefix", rule.to.prefix);
  }
  if ((rule.to.address & ~mask_of(rule.to.prefix)) != 0) {
    fail(Code::invalid, "network rule: {} has bits beyond its prefix", to_string(rule.to));
  }
  if (!is_known(rule.protocol)) {
    fail(Code::invalid, "network rule: {} is no protocol", static_cast<unsigned>(rule.protocol));
  }
  const bool every_port = rule.first_port == 0 && rule.last_port == 0;
  if (!every_port && (rule.first_port == 0 || rule.first_port > rule.last_port)) {
    fail(Code::invalid, "network rule: {}-{} are no ports", rule.first_port, rule.last_port);
  }
}

void put_rules(wire::Writer& out, const std::vector<Rule>& rules) {
  out.u32(static_cast<std::uint32_t>(rules.size()));
  for (const Rule& rule : rules) {
    out.u32(rule.to.address).u8(rule.to.prefix).u8(static_cast<std::uint8_t>(rule.protocol));
    out.u32(std::uint32_t{rule.first_port} << 16 | rule.last_port);
  }
}

std::vector<Rule> read_rules(wire::Reader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMostRules) fail(Code::invalid, "{} network rules are too many", count);
  std::vector<Rule> rules(count);
  for (Rule& rule : rules) {
    rule.to.address = in.u32();
    rule.to.prefix = in.u8();
    rule.protocol = static_cast<Protocol>(in.u8());
    const std::uint32_t ports = in.u32();
    rule.first_port = static_cast<std::uint16_t>(ports >> 16);
    rule.last_port = static_cast<std::uint16_t>(ports);
  }
  return rules;
}

// Takes "/tcp" or "/udp" off the end.
Protocol take_protocol(std::string_view& text) {
  for (const auto& [ending, protocol] :
       {std::pair("/tcp", Protocol::tcp), std::pair("/udp", Protocol::udp)}) {
    if (!text.ends_with(ending)) continue;
    text.remove_suffix(4);
    return protocol;
  }
  return Protocol::any;
}

// "80" or "8000-8999"; nothing when it is neither.
std::optional<std::pair<unsigned, unsigned>> parse_ports(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash), kMostPort);
  const auto last =
      dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1), kMostPort);
  if (!first || !last || *first == 0 || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

bool Cidr::contains(std::uint32_t other) const {
  return ((other ^ address) & mask_of(prefix)) == 0;
}

bool Cidr::overlaps(const Cidr& other) const {
  return prefix <= other.prefix ? contains(other.address) : other.contains(address);
}

Cidr parse_cidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  const auto prefix = slash == std::string_view::npos
                          ? kAddressBits
                          : parse_number(text.substr(slash + 1), kAddressBits);
  if (!address || !prefix) {
    fail(Code::invalid, "'{}' is no IPv4 address or range such as 10.0.0.0/8", text);
  }
  const std::uint32_t first = *address & mask_of(*prefix);
  if (first != *address) {
    fail(Code::invalid, "'{}' has bits beyond its prefix: {}/{} would be the range", text,
         address_text(first), *prefix);
  }
  return {.address = first, .prefix = static_cast<std::uint8_t>(*prefix)};
}

std::string address_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

std::string to_string(const Cidr& cidr) {
  const std::string address = address_text(cidr.address);
  return cidr.prefix == kAddressBits ? address : fmt::format("{}/{}", address, cidr.prefix);
}

Rule parse_rule(std::string_view text) {
  Rule rule;
  std::string_view rest = text;
  rule.protocol = take_protocol(rest);
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    const auto ports = parse_ports(rest.substr(colon + 1));
    if (!ports) fail(Code::invalid, "'{}': no port or range of ports after the colon", text);
    rule.first_port = static_cast<std::uint16_t>(ports->first);
    rule.last_port = static_cast<std::uint16_t>(ports->second);
  }
  rule.to = parse_cidr(rest.substr(0, colon));
  return rule;
}

std::string to_string(const Rule& rule) {
  std::string text = to_string(rule.to);
  if (rule.first_port != 0) text += fmt::format(":{}", rule.first_port);
  if (rule.last_port != rule.first_port) text += fmt::format("-{}", rule.last_port);
  if (rule.protocol == Protocol::tcp) text += "/tcp";
  if (rule.protocol == Protocol::udp) text += "/udp";
  return text;
}

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::none:
      return "none";
    case Mode::world:
      return "world";
    case Mode::listed:
      return "listed";
  }
  return "none";
}

Mode parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::none, Mode::world, Mode::listed}) {
    if (text == to_string(mode)) return mode;
  }
  fail(Code::invalid, "'{}' is no network mode: none, world, listed", text);
}

void check(const Policy& policy) {
  if (policy.mode > Mode::listed) {
    fail(Code::invalid, "{} is no network mode", static_cast<unsigned>(policy.mode));
  }
  const std::size_t count = policy.open.size() + policy.allow.size() + policy.deny.size();
  if (count > kMostRules) {
    fail(Code::invalid, "{} network rules are too many: at most {}", count, kMostRules);
  }
  for (const auto* rules : {&policy.open, &policy.allow, &policy.deny}) {
    for (const Rule& rule : *rules) check_rule(rule);
  }
}

void put(wire::Writer& out, const Policy& policy) {
  out.u8(static_cast<std::uint8_t>(policy.mode)).boolean(policy.dns);
  put_rules(out, policy.open);
  put_rules(out, policy.allow);
  put_rules(out, policy.deny);
}

Policy read_policy(wire::Reader& in) {
  Policy policy;
  policy.mode = static_cast<Mode>(in.u8());
  policy.dns = in.boolean();
  policy.open = read_rules(in);
  policy.allow = read_rules(in);
  policy.deny = read_rules(in);
  check(policy);
  return policy;
}

}  // namespace hearth::network
