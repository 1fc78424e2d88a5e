#include "spdy/frames.h"

#include "base/error.h"

namespace hearth::spdy {
namespace {

constexpr std::size_t kHeadBytes = 8;
constexpr std::uint16_t kVersion = 3;
constexpr std::uint16_t kControlBit = 0x8000;
constexpr std::uint32_t kIdMask = 0x7fff'ffff;
constexpr std::uint8_t kEnd = 1;  // FLAG_FIN

// The longest control frame that is read. Those of Kubernetes clients have a hundred bytes.
constexpr std::size_t kMostControl = std::size_t{64} << 10;

enum Type : std::uint16_t {
  kSynStream = 1,
  kSynReply = 2,
  kRstStream = 3,
  kPing = 6,
  kGoaway = 7,
  kHeaders = 8,
};

std::uint32_t read_number(std::string_view bytes, std::size_t count) {
  std::uint32_t value = 0;
  for (const char c : bytes.substr(0, count)) value = (value << 8) | static_cast<unsigned char>(c);
  return value;
}

void append_number(std::string& bytes, std::uint32_t value, int count) {
  while (count-- > 0) bytes += static_cast<char>((value >> (8 * count)) & 0xff);
}

std::string control(Type type, std::uint8_t flags, std::string_view body) {
  std::string frame;
  append_number(frame, kControlBit | kVersion, 2);
  append_number(frame, type, 2);
  append_number(frame, flags, 1);
  append_number(frame, static_cast<std::uint32_t>(body.size()), 3);
  return frame += body;
}

std::string numbers(std::uint32_t first, std::uint32_t second) {
  std::string body;
  append_number(body, first, 4);
  append_number(body, second, 4);
  return body;
}

void expect_bytes(std::string_view body, std::size_t least) {
  if (body.size() < least)
    fail(Code::invalid, "a SPDY frame of {} bytes is too short", body.size());
}

}  // namespace

void Decoder::compact() {
  buffer_.erase(0, begin_);
  begin_ = 0;
}

std::optional<Event> Decoder::take_data() {
  const std::string_view piece = unread().substr(0, data_left_);
  if (piece.empty() && data_left_ > 0) return std::nullopt;
  data_left_ -= piece.size();
  begin_ += piece.size();
  in_data_ = data_left_ > 0;
  return Event{.kind = EventKind::data,
               .stream = data_stream_,
               .headers = {},
               .bytes = std::string(piece),
               .is_end = data_ends_ && !in_data_,
               .number = 0};
}

std::optional<Event> Decoder::next() {
  while (true) {
    if (in_data_) {
      auto event = take_data();
      if (!event) compact();
      return event;
    }
    const std::string_view bytes = unread();
    if (bytes.size() < kHeadBytes) break;
    const std::uint32_t first = read_number(bytes, 4);
    const auto flags = static_cast<std::uint8_t>(bytes[4]);
    const std::size_t length = read_number(bytes.substr(5), 3);
    if ((first & ~kIdMask) == 0) {
      begin_ += kHeadBytes;
      data_stream_ = first;
      data_left_ = length;
      data_ends_ = (flags & kEnd) != 0;
      in_data_ = true;
      continue;
    }
    const std::uint32_t version = (first >> 16) & ~std::uint32_t{kControlBit};
    if (version != kVersion) fail(Code::invalid, "SPDY of version {} is not spoken here", version);
    if (length > kMostControl)
      fail(Code::exhausted, "a SPDY frame of {} bytes is too long", length);
    if (bytes.size() < kHeadBytes + length) break;
    begin_ += kHeadBytes + length;
    const auto type = static_cast<std::uint16_t>(first & 0xffff);
    if (auto event = take_control(type, flags, bytes.substr(kHeadBytes, length))) return event;
  }
  compact();
  return std::nullopt;
}

Event Decoder::take_opened(std::uint8_t flags, std::string_view body) {
  constexpr std::size_t kBeforeHeaders = 10;  // two streams, priority, slot
  expect_bytes(body, kBeforeHeaders);
  const StreamId stream = read_number(body, 4) & kIdMask;
  const bool is_odd = stream % 2 == 1;
  if (is_odd != (peer_ == Side::client) || stream <= last_opened_) {
    fail(Code::invalid, "the SPDY stream {} cannot be opened after {}", stream, last_opened_);
  }
  last_opened_ = stream;
  return {.kind = EventKind::opened,
          .stream = stream,
          .headers = headers_.unpack(body.substr(kBeforeHeaders)),
          .bytes = {},
          .is_end = (flags & kEnd) != 0,
          .number = 0};
}

std::optional<Event> Decoder::take_control(std::uint16_t type, std::uint8_t flags,
                                           std::string_view body) {
  Event event;
  switch (type) {
    case kSynStream:
      return take_opened(flags, body);
    case kSynReply:
    case kHeaders:
      expect_bytes(body, 4);
      event.kind = EventKind::accepted;
      event.stream = read_number(body, 4) & kIdMask;
      event.headers = headers_.unpack(body.substr(4));
      event.is_end = (flags & kEnd) != 0;
      if (type == kSynReply) return event;
      if (!event.is_end) return std::nullopt;
      // More headers mean nothing to us, but they may say that the stream ends.
      event.kind = EventKind::data;
      event.headers.clear();
      return event;
    case kRstStream:
      expect_bytes(body, 8);
      event.kind = EventKind::reset;
      event.stream = read_number(body, 4) & kIdMask;
      event.number = read_number(body.substr(4), 4);
      return event;
    case kPing:
      expect_bytes(body, 4);
      event.kind = EventKind::ping;
      event.number = read_number(body, 4);
      return event;
    case kGoaway:
      event.kind = EventKind::goaway;
      return event;
    default:
      return std::nullopt;
  }
}

std::string Encoder::open(StreamId stream, const HeaderList& headers, bool is_end) {
  std::string body = numbers(stream, 0);
  append_number(body, 0, 2);
  body += headers_.pack(headers);
  return control(kSynStream, is_end ? kEnd : 0, body);
}

std::string Encoder::accept(StreamId stream, const HeaderList& headers) {
  std::string body;
  append_number(body, stream, 4);
  body += headers_.pack(headers);
  return control(kSynReply, 0, body);
}

std::string Encoder::data_head(StreamId stream, std::size_t size, bool is_end) {
  HEARTH_ASSERT(size < (std::size_t{1} << 24));
  std::string head;
  append_number(head, stream, 4);
  append_number(head, is_end ? kEnd : 0, 1);
  append_number(head, static_cast<std::uint32_t>(size), 3);
  return head;
}

std::string Encoder::reset(StreamId stream, ResetReason reason) {
  return control(kRstStream, 0, numbers(stream, static_cast<std::uint32_t>(reason)));
}

std::string Encoder::ping(std::uint32_t number) {
  std::string body;
  append_number(body, number, 4);
  return control(kPing, 0, body);
}

std::string Encoder::goaway(StreamId last_seen) {
  return control(kGoaway, 0, numbers(last_seen, 0));
}

}  // namespace hearth::spdy
