// What a kernel says, taken apart as it arrives.
//
// The other end is a process in which strangers' code runs: it may send anything. Headers are
// bounded; an event's content is handed on in the pieces it came in and never kept. It is not
// looked into: whoever runs code in a kernel may have it say what he likes, to himself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::interpreter {

struct Frame {
  enum class Kind {
    ready,      // it takes cells now
    sync,       // it wants to know when its output has been read
    piece,      // of an event's content
    event_end,  // the event is complete
    end,        // of a cell
  };
  Kind kind = Kind::ready;
  std::string_view piece;   // valid until the next feed()
  std::uint32_t count = 0;  // of an end: which cell's
  int status = 0;           // of an end: a shell's exit status
};

class FrameReader {
 public:
  // All frames of what was fed before must have been taken.
  void feed(std::string_view bytes) { bytes_ = bytes; }
  // Throws Error(invalid).
  std::optional<Frame> next();
  // Whether an event has begun and not ended: nothing may come between its pieces.
  bool is_inside_event() const { return inside_; }

 private:
  std::optional<Frame> parse_header(std::string_view line);

  std::string_view bytes_;
  std::string header_;      // of a frame, as far as it has come
  std::uint64_t left_ = 0;  // of an event's content
  bool inside_ = false;
};

}  // namespace hearth::interpreter
