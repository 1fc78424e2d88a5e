// SPDY/3.1 as kubectl and client-go speak it for exec and port-forward: bytes in, events out;
// frames out as bytes. No sockets, no waiting.
//
// Nobody uses flow control here (WINDOW_UPDATE and SETTINGS are read past): who cannot take more
// data does not read the connection. What a stream means, and how many there may be, is the
// caller's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spdy/header_block.h"

namespace hearth::spdy {

using StreamId = std::uint32_t;

// Why a stream was reset.
enum class ResetReason : std::uint32_t {
  protocol_error = 1,
  invalid_stream = 2,
  refused = 3,
  cancel = 5,
  internal = 6,
};

enum class EventKind {
  opened,    // by the peer: stream, headers, is_end
  accepted,  // of a stream that we opened: stream, headers, is_end
  data,      // stream, bytes, is_end
  reset,     // stream, number
  ping,      // number
  goaway,    // the peer opens no more streams
};

struct Event {
  EventKind kind = EventKind::data;
  StreamId stream = 0;
  HeaderList headers;
  std::string bytes;
  bool is_end = false;       // the peer sends no more on this stream
  std::uint32_t number = 0;  // of a ping: which; of a reset: a ResetReason
};

enum class Side { client, server };

// What comes from the peer. Keeps at most one control frame; a frame of data is passed on in the
// pieces that it arrives in.
class Decoder {
 public:
  // `peer`: who sends; a client's streams have odd numbers.
  explicit Decoder(Side peer) : peer_(peer) {}

  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next event of what was fed, if it is complete. Throws Error: invalid, exhausted; the
  // connection is over then.
  std::optional<Event> next();

 private:
  std::string_view unread() const { return std::string_view(buffer_).substr(begin_); }
  std::optional<Event> take_data();
  // One control frame; nothing where its meaning is to be ignored.
  std::optional<Event> take_control(std::uint16_t type, std::uint8_t flags, std::string_view body);
  Event take_opened(std::uint8_t flags, std::string_view body);
  void compact();

  Side peer_;
  HeaderUnpacker headers_;
  StreamId last_opened_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what was not read
  // A frame of data that is being read.
  bool in_data_ = false;
  StreamId data_stream_ = 0;
  std::size_t data_left_ = 0;
  bool data_ends_ = false;
};

// What goes to the peer. Frames with headers must be sent in the order in which they were made.
class Encoder {
 public:
  std::string open(StreamId stream, const HeaderList& headers, bool is_end = false);
  std::string accept(StreamId stream, const HeaderList& headers = {});
  // What goes before `size` bytes of data.
  static std::string data_head(StreamId stream, std::size_t size, bool is_end = false);
  static std::string reset(StreamId stream, ResetReason reason);
  static std::string ping(std::uint32_t number);
  static std::string goaway(StreamId last_seen);

 private:
  HeaderPacker headers_;
};

}  // namespace hearth::spdy
