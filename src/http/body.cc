#include "http/body.h"

#include <algorithm>

namespace hearth::http {
namespace {

// A chunk's size and its extensions, which nobody uses; or one trailer field. A reader's buffer
// must be able to hold it.
constexpr std::size_t kLineBytes = 4096;

// All trailer fields together. They are read and dropped: no surface of ours has a use for them,
// and a field that arrives after the checks were made is a way around them.
constexpr std::size_t kTrailerBytes = 8192;

// 60 bits: no sum of two sizes overflows.
constexpr std::size_t kSizeDigits = 15;

bool is_clean(std::string_view line) {
  return std::ranges::all_of(line,
                             [](unsigned char c) { return (c >= 0x20 && c != 0x7F) || c == '\t'; });
}

}  // namespace

BodyDecoder::BodyDecoder(Framing framing) : left_(framing.length) {
  switch (framing.kind) {
    case BodyKind::none:
      break;
    case BodyKind::length:
      state_ = State::counted;
      break;
    case BodyKind::chunked:
      state_ = State::chunk_size;
      break;
    case BodyKind::until_end:
      state_ = State::until_end;
      break;
  }
}

BodyDecoder::Step BodyDecoder::take(std::string_view bytes) {
  switch (state_) {
    case State::done:
      return {};
    case State::counted:
      return take_counted(bytes, State::done);
    case State::chunk_data:
      return take_counted(bytes, State::chunk_end);
    case State::until_end:
      return {.used = bytes.size(), .body = bytes};
    case State::chunk_end:
      if (bytes.size() < 2) return {.bad = !bytes.empty() && bytes[0] != '\r'};
      if (!bytes.starts_with("\r\n")) return {.bad = true};
      state_ = State::chunk_size;
      return {.used = 2};
    case State::chunk_size:
    case State::trailer:
      return take_line(bytes);
  }
  return {.bad = true};
}

BodyDecoder::Step BodyDecoder::take_counted(std::string_view bytes, State next) {
  const std::string_view body = bytes.substr(0, std::min<std::uint64_t>(left_, bytes.size()));
  left_ -= body.size();
  if (left_ == 0) state_ = next;
  return {.used = body.size(), .body = body};
}

BodyDecoder::Step BodyDecoder::take_line(std::string_view bytes) {
  const auto end = bytes.find('\r');
  const std::string_view line = bytes.substr(0, end);
  if (line.size() > kLineBytes || !is_clean(line)) return {.bad = true};
  if (end == std::string_view::npos || end + 1 == bytes.size()) return {};
  if (bytes[end + 1] != '\n') return {.bad = true};

  const Step step{.used = end + 2};
  if (state_ == State::chunk_size) return take_size(line) ? step : Step{.bad = true};
  trailer_bytes_ += step.used;
  if (trailer_bytes_ > kTrailerBytes) return {.bad = true};
  if (line.empty()) state_ = State::done;
  return step;
}

bool BodyDecoder::take_size(std::string_view line) {
  // Strictly 1*HEXDIG, then nothing or ';': "+5", "0x5" and "5 5" are what smugglers write.
  const std::string_view digits = line.substr(0, line.find(';'));
  const auto size = parse_number(digits, 16);
  if (!size || digits.size() > kSizeDigits) return false;
  left_ = *size;
  state_ = left_ > 0 ? State::chunk_data : State::trailer;
  return true;
}

}  // namespace hearth::http
