// Turns pieces of a log into what somebody wants to see: which lines, with or without their time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "guest/protocol.h"

namespace hearth::runtime {

struct LogChoice {
  std::optional<std::uint32_t> tail;  // so many lines of what there is at first
  std::optional<Time> since;          // lines that began then or later
  bool timestamps = false;
};

class LogPrinter {
 public:
  using Write = std::function<void(guest::Stream, std::string_view)>;

  LogPrinter(const LogChoice& choice, Write write);

  // In the order of their positions. Parts of lines are shown as they come.
  void add(const guest::Output& piece);

  // What there was at first is over: the tail of it is shown, and everything after it.
  void end_tail();

 private:
  // How far a stream is in its line.
  struct LineState {
    bool inside = false;
    bool shown = false;
    std::uint64_t number = 0;  // of all lines that were shown or are in the tail
  };
  struct TailLine {
    guest::Stream stream = guest::Stream::output;
    std::string text;
  };

  void begin_line(LineState& state, const guest::Output& piece);
  void show(const LineState& state, guest::Stream stream, std::string_view text);

  LogChoice choice_;
  Write write_;
  std::array<LineState, 2> states_;
  std::deque<TailLine> tail_;
  std::uint64_t first_in_tail_ = 0;  // its number
  std::uint64_t next_number_ = 0;
  bool in_tail_;
};

}  // namespace hearth::runtime
