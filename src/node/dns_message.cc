#include "node/dns_message.h"

#include <algorithm>
#include <cctype>

namespace hearth::node::dns {
namespace {

constexpr std::size_t kHeader = 12;
constexpr std::size_t kMostName = 255;
constexpr std::size_t kMostLabel = 63;
constexpr std::uint32_t kLifeSeconds = 5;
constexpr std::size_t kPointer = 0xc0;
constexpr std::size_t kRecordHead = 10;  // type, class, life, size

constexpr std::uint16_t kIsAnswer = 0x8000;
constexpr std::uint16_t kOperation = 0x7800;
constexpr std::uint16_t kAuthoritative = 0x0400;
constexpr std::uint16_t kRecursionDesired = 0x0100;
constexpr std::uint16_t kRecursionAvailable = 0x0080;

std::uint16_t number_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<std::uint8_t>(bytes[at]) << 8 |
                                    static_cast<std::uint8_t>(bytes[at + 1]));
}

void put(std::string& out, std::uint16_t value) {
  out.push_back(static_cast<char>(value >> 8));
  out.push_back(static_cast<char>(value & 0xff));
}

void put_long(std::string& out, std::uint32_t value) {
  put(out, static_cast<std::uint16_t>(value >> 16));
  put(out, static_cast<std::uint16_t>(value & 0xffff));
}

std::uint32_t long_at(std::string_view bytes, std::size_t at) {
  return std::uint32_t{number_at(bytes, at)} << 16 | number_at(bytes, at + 2);
}

// Moves `at` behind the name there, which may end with a pointer to the rest of it. Whose record
// it is does not matter.
bool skip_name(std::string_view message, std::size_t& at) {
  while (at < message.size()) {
    const std::size_t size = static_cast<std::uint8_t>(message[at++]);
    if (size == 0) return true;
    if (size >= kPointer) return at++ < message.size();
    if (size > kMostLabel || size > message.size() - at) return false;
    at += size;
  }
  return false;
}

// The name that begins at `at`, which moves behind it.
std::optional<std::string> read_name(std::string_view message, std::size_t& at) {
  std::string name;
  while (at < message.size()) {
    const std::size_t size = static_cast<std::uint8_t>(message[at++]);
    if (size == 0) return name;
    if (size > kMostLabel || size > message.size() - at) return std::nullopt;
    if (!name.empty()) name.push_back('.');
    for (const char c : message.substr(at, size)) {
      if (c == '.' || c == '\\') name.push_back('\\');
      name.push_back(c);
    }
    at += size;
    if (name.size() > kMostName) return std::nullopt;
  }
  return std::nullopt;
}

std::string lower(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

std::optional<Question> parse_question(std::string_view message) {
  if (message.size() < kHeader) return std::nullopt;
  const std::uint16_t flags = number_at(message, 2);
  if ((flags & (kIsAnswer | kOperation)) != 0 || number_at(message, 4) != 1 ||
      number_at(message, 6) != 0)
    return std::nullopt;
  std::size_t at = kHeader;
  auto name = read_name(message, at);
  if (!name || message.size() - at < 4) return std::nullopt;
  return Question{.id = number_at(message, 0),
                  .wants_recursion = (flags & kRecursionDesired) != 0,
                  .name = lower(std::move(*name)),
                  .type = number_at(message, at),
                  .qclass = number_at(message, at + 2),
                  .raw = std::string(message.substr(kHeader, at + 4 - kHeader))};
}

std::optional<std::vector<std::uint32_t>> parse_addresses(std::string_view answer,
                                                          const Question& question) {
  if (answer.size() < kHeader || (number_at(answer, 2) & kIsAnswer) == 0 ||
      number_at(answer, 4) != 1)
    return std::nullopt;
  std::size_t at = kHeader;
  auto name = read_name(answer, at);
  if (!name || lower(*name) != question.name || answer.size() - at < 4 ||
      number_at(answer, at) != question.type || number_at(answer, at + 2) != question.qclass)
    return std::nullopt;
  at += 4;
  std::vector<std::uint32_t> addresses;
  for (unsigned left = number_at(answer, 6); left > 0; --left) {
    if (!skip_name(answer, at) || answer.size() - at < kRecordHead) return std::nullopt;
    const std::uint16_t type = number_at(answer, at);
    const std::uint16_t qclass = number_at(answer, at + 2);
    const std::size_t size = number_at(answer, at + 8);
    at += kRecordHead;
    if (answer.size() - at < size) return std::nullopt;
    if (type == kTypeA && qclass == kClassIn && size == 4) addresses.push_back(long_at(answer, at));
    at += size;
  }
  return addresses;
}

std::string make_answer(const Question& question, Outcome outcome,
                        std::span<const std::uint32_t> addresses) {
  const auto shown = addresses.subspan(0, std::min(addresses.size(), kMostAddresses));
  std::string out;
  put(out, question.id);
  put(out, static_cast<std::uint16_t>(kIsAnswer | kAuthoritative | kRecursionAvailable |
                                      (question.wants_recursion ? kRecursionDesired : 0) |
                                      static_cast<std::uint16_t>(outcome)));
  put(out, 1);
  put(out, static_cast<std::uint16_t>(shown.size()));
  put(out, 0);
  put(out, 0);
  out += question.raw;
  for (const std::uint32_t address : shown) {
    put(out, kPointer << 8 | kHeader);  // the name of the question
    put(out, kTypeA);
    put(out, kClassIn);
    put_long(out, kLifeSeconds);
    put(out, 4);
    put_long(out, address);
  }
  return out;
}

}  // namespace hearth::node::dns
