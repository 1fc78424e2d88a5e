// A name for a text: same text, same name. Not for anything that an attacker may want to forge.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hearth::apiserver {

// 128 bits in hexadecimal: FNV-1a, once from the usual start and once from another.
inline std::string text_digest(std::string_view text) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t first = 0xcbf29ce484222325;
  std::uint64_t second = 0x6c62272e07bb0142;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    first = (first ^ byte) * kPrime;
    second = (second ^ byte ^ 0x5a) * kPrime;
  }
  return fmt::format("{:016X}{:016X}", first, second);
}

}  // namespace hearth::apiserver
