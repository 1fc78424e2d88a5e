// The last bytes of a sandbox's output, with when and where they were written: bounded, oldest
// forgotten first.
//
// Positions count every byte ever written, so that a reader who comes back knows where it was. A
// line that arrives in parts has the time of its beginning.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "guest/protocol.h"

namespace hearth::guest {

class LogRing {
 public:
  // What it may hold in all. Each piece counts for more than its bytes: whoever writes them one by
  // one must not cost more memory than others.
  static constexpr std::size_t kPieceOverhead = 128;

  explicit LogRing(std::size_t capacity) : capacity_(capacity) {}

  // `source` tells commands apart.
  void append(Stream stream, Time time, std::string_view bytes, std::uint64_t source = 0);

  // At most `most` bytes of one stream from position `from` on, or from the oldest kept byte where
  // that is forgotten already. Nothing at the end. Of all sources, or of one.
  std::optional<Output> read(std::uint64_t from, std::size_t most,
                             std::optional<std::uint64_t> source = {}) const;

  // Whether `count` more bytes fit without forgetting anything from `position` on.
  bool has_room(std::uint64_t position, std::size_t count) const;

  std::uint64_t end() const { return end_; }

 private:
  struct Piece {
    Stream stream = Stream::output;
    std::uint64_t source = 0;
    Time time;
    std::uint64_t position = 0;  // of its first byte
    std::uint64_t weight = 0;    // of all pieces before it, forgotten ones too
    std::string bytes;
  };

  std::deque<Piece>::const_iterator find(std::uint64_t position) const;
  void forget_until_fit();

  std::size_t capacity_;
  std::deque<Piece> pieces_;
  std::uint64_t end_ = 0;     // how many bytes were ever written
  std::uint64_t weight_ = 0;  // of all pieces ever
};

}  // namespace hearth::guest
