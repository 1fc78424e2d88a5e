// Amounts as the Kubernetes API writes them: "100m" of a processor, "1Gi" of memory, "1e3".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::model {

class Quantity {
 public:
  // How it is written, which it keeps: 1Gi stays binary, 1G decimal.
  enum class Form { decimal, binary, exponent };

  Quantity() = default;
  static Quantity of(std::int64_t units, Form form = Form::decimal);
  // Nothing for text that is none. Below 10^-9 it is rounded up, above 2^63 cut, as Kubernetes
  // does.
  static std::optional<Quantity> parse(std::string_view text);

  // Units, rounded up: bytes, processors.
  std::int64_t units() const;
  // Thousandths, rounded up: millicores.
  std::int64_t thousandths() const;

  // The canonical text: no fraction, the largest suffix.
  std::string text() const;

  bool is_negative() const { return billionths_ < 0; }
  // By amount, whatever the form.
  bool operator==(const Quantity& other) const { return billionths_ == other.billionths_; }
  std::strong_ordering operator<=>(const Quantity& other) const {
    return billionths_ < other.billionths_   ? std::strong_ordering::less
           : billionths_ > other.billionths_ ? std::strong_ordering::greater
                                             : std::strong_ordering::equal;
  }
  // The form of the left one.
  Quantity operator+(const Quantity& other) const;

 private:
  // 2^63 units in billionths take 94 bits.
  __extension__ using Wide = __int128;

  Wide billionths_ = 0;
  Form form_ = Form::decimal;
};

// What kube-apiserver says about text that is no quantity.
inline constexpr std::string_view kQuantityRule =
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

}  // namespace hearth::model
