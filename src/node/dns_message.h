// DNS messages, as far as a name server of few names needs them. Questions come from sandboxes:
// hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::node::dns {

inline constexpr std::uint16_t kTypeA = 1;
inline constexpr std::uint16_t kClassIn = 1;

struct Question {
  std::uint16_t id = 0;
  bool wants_recursion = false;
  // "web.default.svc.cluster.local": lower case, no dot at the end. A dot within a part of it has a
  // backslash before it, so that it is never taken for one between parts.
  std::string name;
  std::uint16_t type = 0;
  std::uint16_t qclass = 0;
  std::string raw;  // as it stood in the message
};

// Of a message with one question. Nothing for everything else: answers, other operations, names
// with compression or of more than 255 bytes.
std::optional<Question> parse_question(std::string_view message);

// The IPv4 addresses that an answer to `question` gives, along aliases or not; those of a resolver
// that is trusted with it. Nothing for what is no answer to it, or is cut off or broken anywhere.
std::optional<std::vector<std::uint32_t>> parse_addresses(std::string_view answer,
                                                          const Question& question);

enum class Outcome : std::uint8_t { ok = 0, failed = 2, no_such_name = 3, refused = 5 };

// What fits a datagram that nobody agreed upon; more addresses are left out.
inline constexpr std::size_t kMostAddresses = 24;

// With an A record for each address; short-lived, as pods are.
std::string make_answer(const Question& question, Outcome outcome,
                        std::span<const std::uint32_t> addresses);

}  // namespace hearth::node::dns
