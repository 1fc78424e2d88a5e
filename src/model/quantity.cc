#include "model/quantity.h"

#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace hearth::model {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kBillion = 1'000'000'000;
constexpr Wide kMost = Wide{std::numeric_limits<std::int64_t>::max()} * kBillion;
// Longer numbers are no amounts; it also bounds the work.
constexpr std::size_t kMostText = 64;

struct Suffix {
  std::string_view text;
  int power;  // of ten or of two
  Quantity::Form form;
};
constexpr std::array<Suffix, 16> kSuffixes = {{{"n", -9, Quantity::Form::decimal},
                                               {"u", -6, Quantity::Form::decimal},
                                               {"m", -3, Quantity::Form::decimal},
                                               {"", 0, Quantity::Form::decimal},
                                               {"k", 3, Quantity::Form::decimal},
                                               {"M", 6, Quantity::Form::decimal},
                                               {"G", 9, Quantity::Form::decimal},
                                               {"T", 12, Quantity::Form::decimal},
                                               {"P", 15, Quantity::Form::decimal},
                                               {"E", 18, Quantity::Form::decimal},
                                               {"Ki", 10, Quantity::Form::binary},
                                               {"Mi", 20, Quantity::Form::binary},
                                               {"Gi", 30, Quantity::Form::binary},
                                               {"Ti", 40, Quantity::Form::binary},
                                               {"Pi", 50, Quantity::Form::binary},
                                               {"Ei", 60, Quantity::Form::binary}}};

Wide ceil_divide(Wide value, Wide by) {
  return value / by + (value % by > 0 ? 1 : 0);
}

std::optional<Suffix> find_suffix(std::string_view text) {
  for (const Suffix& suffix : kSuffixes)
    if (suffix.text == text) return suffix;
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  const char* const end = text.data() + text.size();
  const char* const begin = text.data() + (text[1] == '+' ? 2 : 1);
  int power = 0;
  const auto [at, error] = std::from_chars(begin, end, power);
  if (error != std::errc() || at != end || power > 1000 || power < -1000) return std::nullopt;
  return Suffix{text, power, Quantity::Form::exponent};
}

// value * base^power for power of either sign; cut at kMost, rounded up below one.
Wide scale(Wide value, int base, int power) {
  for (; power > 0 && value <= kMost; --power) value *= base;
  for (; power < 0 && value > 1; ++power) value = ceil_divide(value, base);
  return value > kMost ? kMost : value;
}

// digits * 2^power / 10^fraction in billionths. Digits behind the point that there is no room for
// are given up on the way.
Wide scale_binary(Wide value, int power, int fraction) {
  constexpr Wide kRoom = Wide{1} << 120;
  int down = fraction - 9;
  for (; power > 0; --power) {
    while (value > kRoom && down > 0) {
      value = ceil_divide(value, 10);
      --down;
    }
    if (value > kRoom) return kMost;
    value *= 2;
  }
  return scale(value, 10, -down);
}

// What stands before the suffix, with as many digits as are kept.
struct Digits {
  Wide value = 0;  // all of them as one number
  int fraction = 0;
  bool is_any = false;
  bool is_cut = false;
};

std::optional<Digits> read_digits(std::string_view text) {
  Digits digits;
  bool has_point = false;
  for (const char c : text) {
    if (c == '.') {
      if (has_point) return std::nullopt;
      has_point = true;
      continue;
    }
    digits.is_any = true;
    if (digits.value > kMost) {
      // More than anything can be, or finer than is kept.
      digits.is_cut |= c != '0';
      if (!has_point) --digits.fraction;
      continue;
    }
    digits.value = digits.value * 10 + (c - '0');
    if (has_point) ++digits.fraction;
  }
  if (!digits.is_any) return std::nullopt;
  return digits;
}

std::string number_text(Wide value) {
  return fmt::format("{}", static_cast<std::int64_t>(value));
}

// The value without as many zeros at the end as go in steps of three; adds the power it had.
int strip_thousands(Wide& value, int most) {
  int power = 0;
  for (; power < most && value % 1000 == 0; power += 3) value /= 1000;
  return power;
}

std::string decimal_text(Wide billionths, bool is_exponent) {
  const int power = strip_thousands(billionths, 27) - 9;
  std::string text = number_text(billionths);
  if (is_exponent) return power == 0 ? text : fmt::format("{}e{}", text, power);
  for (const Suffix& suffix : kSuffixes)
    if (suffix.form == Quantity::Form::decimal && suffix.power == power)
      return text.append(suffix.text);
  return text;
}

std::string binary_text(Wide units) {
  int power = 0;
  for (; power < 60 && units % 1024 == 0; power += 10) units /= 1024;
  std::string text = number_text(units);
  for (const Suffix& suffix : kSuffixes)
    if (suffix.form == Quantity::Form::binary && suffix.power == power) text.append(suffix.text);
  return text;
}

}  // namespace

Quantity Quantity::of(std::int64_t units, Form form) {
  Quantity quantity;
  quantity.billionths_ = Wide{units} * kBillion;
  quantity.form_ = form;
  return quantity;
}

std::optional<Quantity> Quantity::parse(std::string_view text) {
  if (text.empty() || text.size() > kMostText) return std::nullopt;
  const bool is_negative = text[0] == '-';
  if (is_negative || text[0] == '+') text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto digits = read_digits(text.substr(0, end));
  const auto suffix = find_suffix(text.substr(end));
  if (!digits || !suffix) return std::nullopt;

  Wide value = digits->value;
  if (suffix->form == Form::binary) {
    value = scale_binary(value, suffix->power, digits->fraction);
  } else {
    value = scale(value, 10, 9 - digits->fraction + suffix->power);
  }
  if (digits->is_cut && value < kMost) ++value;
  Quantity quantity;
  quantity.billionths_ = is_negative ? -value : value;
  quantity.form_ = suffix->form;
  return quantity;
}

std::int64_t Quantity::units() const {
  return static_cast<std::int64_t>(ceil_divide(billionths_, kBillion));
}

std::int64_t Quantity::thousandths() const {
  const Wide value = ceil_divide(billionths_, kBillion / 1000);
  constexpr Wide kLimit = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(value > kLimit ? kLimit : value < -kLimit ? -kLimit : value);
}

std::string Quantity::text() const {
  if (billionths_ == 0) return "0";
  const Wide size = billionths_ < 0 ? -billionths_ : billionths_;
  // Small or broken numbers read better in decimal, and lose nothing.
  if (form_ == Form::binary && size >= 1024 * kBillion && size % kBillion == 0)
    return binary_text(billionths_ / kBillion);
  return decimal_text(billionths_, form_ == Form::exponent);
}

Quantity Quantity::operator+(const Quantity& other) const {
  Quantity sum = *this;
  sum.billionths_ += other.billionths_;
  if (sum.billionths_ > kMost) sum.billionths_ = kMost;
  if (sum.billionths_ < -kMost) sum.billionths_ = -kMost;
  return sum;
}

}  // namespace hearth::model
