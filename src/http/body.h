// Takes a body out of the bytes of a connection, as its head says. Pure: no sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/head.h"

namespace hearth::http {

class BodyDecoder {
 public:
  BodyDecoder() = default;  // of an empty body: done
  explicit BodyDecoder(Framing framing);

  struct Step {
    std::size_t used = 0;   // drop so many bytes, after looking at:
    std::string_view body;  // a piece of it, inside the bytes given
    bool bad = false;       // not what the head promised; the connection is lost
  };
  // A step forward. One that used nothing needs more bytes than these.
  Step take(std::string_view bytes);

  bool is_done() const { return state_ == State::done; }
  // Whether the connection may end here.
  bool ends_with_connection() const { return state_ == State::until_end; }

 private:
  enum class State { done, counted, until_end, chunk_size, chunk_data, chunk_end, trailer };

  Step take_counted(std::string_view bytes, State next);
  Step take_line(std::string_view bytes);
  bool take_size(std::string_view line);

  State state_ = State::done;
  std::uint64_t left_ = 0;
  std::size_t trailer_bytes_ = 0;
};

}  // namespace hearth::http
