#include "base/base64.h"

#include <array>
#include <cstdint>

namespace hearth {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 255;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  values['-'] = 62;  // the alphabet that is safe in URLs
  values['_'] = 63;
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = make_values();

}  // namespace

void append_base64(std::string& text, std::string_view bytes) {
  const std::size_t before = text.size();
  text.resize(before + (bytes.size() + 2) / 3 * 4, '=');
  char* out = text.data() + before;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]));
  };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const std::uint32_t bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    *out++ = kDigits[bits >> 18];
    *out++ = kDigits[bits >> 12 & 63];
    *out++ = kDigits[bits >> 6 & 63];
    *out++ = kDigits[bits & 63];
  }
  const std::size_t left = bytes.size() - i;
  if (left == 0) return;
  const std::uint32_t bits = byte(i) << 16 | (left == 2 ? byte(i + 1) << 8 : 0);
  *out++ = kDigits[bits >> 18];
  *out++ = kDigits[bits >> 12 & 63];
  if (left == 2) *out = kDigits[bits >> 6 & 63];
}

std::string base64_encode(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::uint8_t digit = kValues[static_cast<unsigned char>(c)];
    if (digit == kNoDigit) return std::nullopt;
    bits = bits << 6 | digit;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  if (count == 6) return std::nullopt;
  return bytes;
}

}  // namespace hearth
