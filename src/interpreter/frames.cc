#include "interpreter/frames.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace hearth::interpreter {
namespace {

// "event 18446744073709551615" is the longest one.
constexpr std::size_t kMaxHeader = 48;

// What one event may hold: a picture of a very large screen, a table of a million rows.
constexpr std::uint64_t kMaxEvent = std::uint64_t{1} << 30;

[[noreturn]] void throw_bad() {
  fail(Code::invalid, "the kernel said something that is no frame");
}

// The number at the front of `text`, which is taken off together with the space before it.
std::uint64_t take_number(std::string_view& text, std::uint64_t most) {
  if (!text.starts_with(' ')) throw_bad();
  text.remove_prefix(1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > most) throw_bad();
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<Frame> FrameReader::parse_header(std::string_view line) {
  if (line == "ready") return Frame{.kind = Frame::Kind::ready};
  if (line == "sync") return Frame{.kind = Frame::Kind::sync};
  if (line.starts_with("event ")) {
    line.remove_prefix(5);
    left_ = take_number(line, kMaxEvent);
    if (!line.empty()) throw_bad();
    inside_ = true;
    return std::nullopt;
  }
  if (!line.starts_with("end ")) throw_bad();
  line.remove_prefix(3);
  Frame frame{.kind = Frame::Kind::end};
  frame.count = static_cast<std::uint32_t>(take_number(line, UINT32_MAX));
  frame.status = static_cast<int>(take_number(line, 255));
  if (!line.empty()) throw_bad();
  return frame;
}

std::optional<Frame> FrameReader::next() {
  while (true) {
    if (inside_ && left_ == 0) {
      inside_ = false;
      return Frame{.kind = Frame::Kind::event_end};
    }
    if (bytes_.empty()) return std::nullopt;
    if (inside_) {
      const std::string_view piece = bytes_.substr(0, left_);
      bytes_.remove_prefix(piece.size());
      left_ -= piece.size();
      return Frame{.kind = Frame::Kind::piece, .piece = piece};
    }
    const std::size_t end = bytes_.find('\n');
    const std::string_view part = bytes_.substr(0, std::min(end, kMaxHeader + 1));
    header_ += part;
    if (header_.size() > kMaxHeader) throw_bad();
    if (end == std::string_view::npos) {
      bytes_ = {};
      return std::nullopt;
    }
    bytes_.remove_prefix(end + 1);
    const auto frame = parse_header(header_);
    header_.clear();
    if (frame) return frame;
  }
}

}  // namespace hearth::interpreter
