#include "guest/log_ring.h"

#include <algorithm>

namespace hearth::guest {
namespace {

// A line that never ends is cut here, so that what is forgotten at once stays small.
constexpr std::size_t kMostPiece = std::size_t{16} << 10;

}  // namespace

void LogRing::append(Stream stream, Time time, std::string_view bytes, std::uint64_t source) {
  const std::size_t most = std::min(kMostPiece, capacity_);
  while (!bytes.empty()) {
    const bool goes_on = !pieces_.empty() && pieces_.back().stream == stream &&
                         pieces_.back().source == source && !pieces_.back().bytes.ends_with('\n') &&
                         pieces_.back().bytes.size() < most;
    if (!goes_on) {
      pieces_.push_back({.stream = stream,
                         .source = source,
                         .time = time,
                         .position = end_,
                         .weight = weight_,
                         .bytes = {}});
      weight_ += kPieceOverhead;
    }
    std::string& last = pieces_.back().bytes;
    // The line that goes on ends first: what is behind it has its own time.
    const std::size_t line = goes_on ? bytes.find('\n') : std::string_view::npos;
    const std::size_t wanted = line == std::string_view::npos ? bytes.size() : line + 1;
    const std::size_t count = std::min(wanted, most - last.size());
    last.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    end_ += count;
    weight_ += count;
    forget_until_fit();
  }
}

void LogRing::forget_until_fit() {
  // The newest stays whatever it weighs: it is no larger than the capacity.
  while (pieces_.size() > 1 && weight_ - pieces_.front().weight > capacity_) pieces_.pop_front();
}

std::deque<LogRing::Piece>::const_iterator LogRing::find(std::uint64_t position) const {
  const auto behind = std::ranges::upper_bound(pieces_, position, {}, &Piece::position);
  return behind == pieces_.begin() ? behind : std::prev(behind);
}

std::optional<Output> LogRing::read(std::uint64_t from, std::size_t most,
                                    std::optional<std::uint64_t> source) const {
  if (from >= end_) return std::nullopt;
  const auto piece = std::find_if(find(from), pieces_.end(), [&](const Piece& one) {
    return !source || one.source == *source;
  });
  if (piece == pieces_.end()) return std::nullopt;
  from = std::max(from, piece->position);
  return Output{
      .bytes = piece->bytes.substr(static_cast<std::size_t>(from - piece->position), most),
      .stream = piece->stream,
      .time = piece->time,
      .position = from};
}

bool LogRing::has_room(std::uint64_t position, std::size_t count) const {
  if (position >= end_) return true;
  return weight_ - find(position)->weight + count + kPieceOverhead <= capacity_;
}

}  // namespace hearth::guest
