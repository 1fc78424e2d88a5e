// A 64 bit sum over numbers and texts, to notice damage: not against people, but against disks.
//
// Every step is a bijection of the sum so far, so damage within one aligned word of eight bytes is
// always noticed; any other kind passes with a chance of one in 2^64. 32 bits would let one in four
// billion damaged rows pass, and the sums of a whole file are added up besides. At several bytes a
// cycle's worth of speed, reading a store is still bound by memory, not by this.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hearth::store {

class Sum {
 public:
  Sum& number(std::uint64_t value) {
    sum_ = (sum_ ^ value) * 0x9e3779b97f4a7c15;  // odd, hence reversible; 2^64 / golden ratio
    sum_ ^= sum_ >> 32;
    return *this;
  }

  // With its length: a byte that moves from one text to the next is noticed.
  Sum& text(std::string_view value) {
    number(value.size());
    while (value.size() >= sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, value.data(), sizeof word);
      number(word);
      value.remove_prefix(sizeof word);
    }
    std::uint64_t rest = 0;
    if (!value.empty()) std::memcpy(&rest, value.data(), value.size());
    return number(rest);
  }

  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0x68656172746873;  // a row of zeros must not have a sum of zero
};

}  // namespace hearth::store
