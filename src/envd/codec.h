// From messages to bytes and back, in the two encodings of protobuf: its JSON mapping, and binary.
//
// A message is a plain struct with one function that names its fields (see messages.h); everything
// else follows from that. What is read may come from anyone: it is read once, nothing grows beyond
// what arrived, unknown fields are passed over, and what does not fit its field is Error(invalid).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::envd {

// Field types that C++ cannot tell apart by itself.
struct Bytes {
  std::string data;

  bool operator==(const Bytes&) const = default;
};
struct Sint32 {  // of the variable length that suits negative numbers
  std::int32_t value = 0;

  bool operator==(const Sint32&) const = default;
};

// The names of an enumeration's values, specialised next to it: all(), of EnumName.
struct EnumName {
  std::int32_t value;
  std::string_view name;
};
template <typename E>
struct EnumNames;

enum class Codec { json, proto };

// For the messages that messages.h lists.
template <typename M>
std::string to_json(const M& message);
template <typename M>
M from_json(std::string_view text);
template <typename M>
std::string to_proto(const M& message);
template <typename M>
M from_proto(std::string_view bytes);

template <typename M>
std::string encode(Codec codec, const M& message) {
  return codec == Codec::json ? to_json(message) : to_proto(message);
}
template <typename M>
M decode(Codec codec, std::string_view bytes) {
  return codec == Codec::json ? from_json<M>(bytes) : from_proto<M>(bytes);
}

}  // namespace hearth::envd
