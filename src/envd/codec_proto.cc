// Protobuf's binary encoding: fields as tag and value, where the tag says how long the value is.
#include <concepts>
#include <limits>

#include "base/error.h"
#include "envd/messages.h"

namespace hearth::envd {
namespace {

// How a value is laid out; the numbers are the encoding's.
enum class WireType : unsigned { varint = 0, fixed64 = 1, counted = 2, fixed32 = 5 };

// google.protobuf.Timestamp, inside of which a Time travels.
struct Timestamp {
  std::int64_t seconds = 0;
  std::int64_t nanos = 0;
  static void fields(auto& self, auto& visit) {
    visit(1, "seconds", self.seconds);
    visit(2, "nanos", self.nanos);
  }
};

struct MapEntry {
  std::string key;
  std::string value;
  static void fields(auto& self, auto& visit) {
    visit(1, "key", self.key);
    visit(2, "value", self.value);
  }
};

class ProtoWriter {
 public:
  template <typename T>
  void operator()(int number, std::string_view, const T& value) {
    if (!(value == T{})) put(number, value);
  }
  template <typename T>
  void operator()(int number, std::string_view, const std::optional<T>& value) {
    if (value) put(number, *value);
  }
  template <typename T>
  void operator()(int number, std::string_view, const std::vector<T>& value) {
    for (const T& each : value) put(number, each);
  }
  void operator()(int number, std::string_view, const std::map<std::string, std::string>& value) {
    for (const auto& [key, text] : value) put(number, MapEntry{.key = key, .value = text});
  }

  std::string take() && { return std::move(bytes_); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void tag(int number, WireType type) {
    varint(static_cast<std::uint64_t>(number) << 3 | static_cast<unsigned>(type));
  }
  void number(int number, std::uint64_t value) {
    tag(number, WireType::varint);
    varint(value);
  }

  void put(int at, const std::string& value) {
    tag(at, WireType::counted);
    varint(value.size());
    bytes_ += value;
  }
  void put(int at, const Bytes& value) { put(at, value.data); }
  void put(int at, bool value) { number(at, value ? 1 : 0); }
  void put(int at, std::uint32_t value) { number(at, value); }
  void put(int at, std::int64_t value) { number(at, static_cast<std::uint64_t>(value)); }
  void put(int at, Sint32 value) {
    const auto bits = static_cast<std::uint32_t>(value.value);
    number(at, bits << 1 ^ (value.value < 0 ? UINT32_MAX : 0));
  }
  template <typename E>
    requires std::is_enum_v<E>
  void put(int at, E value) {
    number(at, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  void put(int at, Time value) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(value);
    put(at, Timestamp{.seconds = seconds.time_since_epoch().count(),
                      .nanos = (value - seconds).count()});
  }
  template <typename M>
    requires requires(const M& m, ProtoWriter& w) { M::fields(m, w); }
  void put(int at, const M& value) {
    ProtoWriter inner;
    M::fields(value, inner);
    put(at, std::move(inner).take());
  }

  std::string bytes_;
};

class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail(Code::invalid, "the message has a number that does not end");
  }

  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) fail(Code::invalid, "the message ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view rest_;
};

// One field as it arrived: its number, and its value in one of two shapes.
struct Arrived {
  std::uint64_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t integer = 0;
  std::string_view bytes;
};

Arrived next_field(Input& in) {
  const std::uint64_t tag = in.varint();
  Arrived field{.number = tag >> 3, .type = static_cast<WireType>(tag & 7)};
  switch (field.type) {
    case WireType::varint:
      field.integer = in.varint();
      return field;
    case WireType::counted:
      field.bytes = in.take(in.varint());
      return field;
    case WireType::fixed64:
      in.take(8);
      return field;
    case WireType::fixed32:
      in.take(4);
      return field;
  }
  // Groups, which nobody has written for a decade.
  fail(Code::invalid, "the message has a field of a kind that does not exist");
}

// Offers one arrived field to every field of a message; the one it belongs to takes it.
class ProtoReader {
 public:
  explicit ProtoReader(const Arrived& arrived) : arrived_(arrived) {}

  template <typename T>
  void operator()(int number, std::string_view name, T& value) {
    if (static_cast<std::uint64_t>(number) != arrived_.number) return;
    name_ = name;
    read(value);
  }

  template <typename M>
  static void read_message(std::string_view bytes, M& message) {
    Input in(bytes);
    while (!in.at_end()) {
      const Arrived arrived = next_field(in);
      ProtoReader reader(arrived);
      M::fields(message, reader);
    }
  }

 private:
  void expect(WireType type) const {
    if (arrived_.type != type) fail(Code::invalid, "field '{}' is of another kind", name_);
  }
  std::uint64_t integer() const {
    expect(WireType::varint);
    return arrived_.integer;
  }

  void read(std::string& out) const {
    expect(WireType::counted);
    out = arrived_.bytes;
  }
  void read(Bytes& out) const { read(out.data); }
  void read(bool& out) const { out = integer() != 0; }
  // Longer numbers are cut off, as everybody does it.
  void read(std::uint32_t& out) const { out = static_cast<std::uint32_t>(integer()); }
  void read(std::int64_t& out) const { out = static_cast<std::int64_t>(integer()); }
  void read(Sint32& out) const {
    const auto bits = static_cast<std::uint32_t>(integer());
    out.value = static_cast<std::int32_t>(bits >> 1 ^ ((bits & 1) != 0 ? UINT32_MAX : 0));
  }
  template <typename E>
    requires std::is_enum_v<E>
  void read(E& out) const {
    out = static_cast<E>(static_cast<std::int32_t>(integer()));
  }
  void read(Time& out) const {
    Timestamp time;
    read(time);
    constexpr std::int64_t kMostSeconds = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
    if (time.seconds > kMostSeconds - 1 || time.seconds < -kMostSeconds + 1 || time.nanos < 0 ||
        time.nanos >= 1'000'000'000) {
      fail(Code::invalid, "field '{}' is not a time", name_);
    }
    out = Time(std::chrono::seconds(time.seconds) + std::chrono::nanoseconds(time.nanos));
  }
  void read(std::map<std::string, std::string>& out) const {
    MapEntry entry;
    read(entry);
    out[entry.key] = entry.value;
  }
  template <typename T>
  void read(std::vector<T>& out) const {
    read(out.emplace_back());
  }
  template <typename T>
  void read(std::optional<T>& out) const {
    read(out ? *out : out.emplace());
  }
  template <typename M>
    requires requires(M& m, ProtoReader& r) { M::fields(m, r); }
  void read(M& out) const {
    expect(WireType::counted);
    read_message(arrived_.bytes, out);
  }

  const Arrived& arrived_;
  std::string_view name_;
};

}  // namespace

template <typename M>
std::string to_proto(const M& message) {
  ProtoWriter writer;
  M::fields(message, writer);
  return std::move(writer).take();
}

template <typename M>
M from_proto(std::string_view bytes) {
  M message;
  ProtoReader::read_message(bytes, message);
  return message;
}

#define HEARTH_INSTANTIATE(M)                      \
  template std::string to_proto(const M& message); \
  template M from_proto(std::string_view bytes);
HEARTH_ENVD_MESSAGES(HEARTH_INSTANTIATE)

}  // namespace hearth::envd
