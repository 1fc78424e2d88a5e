#include "runtime/log_printer.h"

#include <utility>

#include "base/time_text.h"

namespace hearth::runtime {

LogPrinter::LogPrinter(const LogChoice& choice, Write write)
    : choice_(choice), write_(std::move(write)), in_tail_(choice.tail.has_value()) {}

void LogPrinter::add(const guest::Output& piece) {
  LineState& state = states_[piece.stream == guest::Stream::output ? 0 : 1];
  std::string_view rest = piece.bytes;
  while (!rest.empty()) {
    if (!state.inside) begin_line(state, piece);
    const std::size_t newline = rest.find('\n');
    state.inside = newline == std::string_view::npos;
    const std::string_view text = rest.substr(0, state.inside ? rest.size() : newline + 1);
    if (state.shown) show(state, piece.stream, text);
    rest.remove_prefix(text.size());
  }
}

void LogPrinter::begin_line(LineState& state, const guest::Output& piece) {
  state.shown = !choice_.since || piece.time >= *choice_.since;
  if (!state.shown) return;
  state.number = next_number_++;
  if (in_tail_) {
    tail_.push_back({.stream = piece.stream, .text = {}});
    if (tail_.size() > *choice_.tail) {
      tail_.pop_front();
      ++first_in_tail_;
    }
  }
  if (choice_.timestamps) show(state, piece.stream, format_rfc3339(piece.time, 9) + " ");
}

void LogPrinter::show(const LineState& state, guest::Stream stream, std::string_view text) {
  if (!in_tail_) return write_(stream, text);
  // A line may have left the tail before it ended.
  if (state.number >= first_in_tail_)
    tail_[static_cast<std::size_t>(state.number - first_in_tail_)].text += text;
}

void LogPrinter::end_tail() {
  if (!std::exchange(in_tail_, false)) return;
  for (const TailLine& line : tail_) write_(line.stream, line.text);
  // The rest of a line whose beginning was left out would make no sense.
  for (LineState& state : states_) {
    if (state.inside && state.number < first_in_tail_) state.shown = false;
  }
  tail_.clear();
}

}  // namespace hearth::runtime
