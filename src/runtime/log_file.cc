#include "runtime/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "base/on_failure.h"
#include "base/time_text.h"
#include "linux/files.h"

namespace hearth::runtime {
namespace {

constexpr std::string_view kOutput = "stdout";
constexpr std::string_view kError = "stderr";
// Text of one line in a file. A longer one is written in parts.
constexpr std::size_t kMostText = std::size_t{16} << 10;
constexpr std::size_t kReadPiece = std::size_t{64} << 10;

// The word before the next blank, which is taken away too.
std::string_view take_word(std::string_view& rest) {
  const std::size_t blank = rest.find(' ');
  const std::string_view word = rest.substr(0, blank);
  rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
  return word;
}

std::optional<std::uint64_t> parse_file_name(std::string_view name) {
  std::uint64_t start = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), start);
  if (name.size() != 20 || error != std::errc() || end != name.data() + name.size())
    return std::nullopt;
  return start;
}

std::string file_name(std::uint64_t start) {
  return fmt::format("{:020}", start);
}

// Takes the next line, or the part of it that fits one line of a file, from `rest`.
LogLine take_line(const guest::Output& output, std::string_view& rest) {
  LogLine line{.time = output.time, .stream = output.stream, .whole = false, .text = {}};
  const std::size_t newline = rest.substr(0, kMostText + 1).find('\n');
  line.whole = newline != std::string_view::npos;
  line.text = rest.substr(0, line.whole ? newline : kMostText);
  rest.remove_prefix(line.text.size() + (line.whole ? 1 : 0));
  return line;
}

}  // namespace

std::string format_log_line(const LogLine& line) {
  return fmt::format("{} {} {} {}\n", format_rfc3339(line.time, 9),
                     line.stream == guest::Stream::output ? kOutput : kError,
                     line.whole ? 'F' : 'P', line.text);
}

std::optional<LogLine> parse_log_line(std::string_view line) {
  const auto time = parse_rfc3339(take_word(line));
  const std::string_view stream = take_word(line);
  const std::string_view tag = take_word(line);
  if (!time || (stream != kOutput && stream != kError) || (tag != "F" && tag != "P"))
    return std::nullopt;
  return LogLine{.time = *time,
                 .stream = stream == kOutput ? guest::Stream::output : guest::Stream::error,
                 .whole = tag == "F",
                 .text = line};
}

std::optional<guest::Output> LogFileReader::next() {
  std::size_t newline = buffer_.find('\n', start_);
  while (newline == std::string::npos) {
    const std::size_t searched = buffer_.size() - start_;
    buffer_.erase(0, start_);
    start_ = 0;
    // No line of ours is as long: this is not our file.
    if (searched > 2 * kMostText) return std::nullopt;
    std::array<char, kReadPiece> piece;
    const ssize_t got = ::pread(fd_, piece.data(), piece.size(), static_cast<off_t>(read_offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read a log");
    if (got == 0) return std::nullopt;
    buffer_.append(piece.data(), static_cast<std::size_t>(got));
    read_offset_ += static_cast<std::uint64_t>(got);
    newline = buffer_.find('\n', searched);
  }
  const auto line = parse_log_line(std::string_view(buffer_).substr(start_, newline - start_));
  if (!line) return std::nullopt;
  guest::Output output{.bytes = std::string(line->text),
                       .stream = line->stream,
                       .time = line->time,
                       .position = position_};
  if (line->whole) output.bytes += '\n';
  position_ += output.bytes.size();
  offset_ += newline + 1 - start_;
  start_ = newline + 1;
  return output;
}

LogWriter::LogWriter(linux::Fd folder, LogLimits limits)
    : folder_(std::move(folder)), limits_(limits) {
  const std::vector<LogFile> files = open_log_files(folder_.get());
  if (files.empty()) return;
  // An earlier life of ours may have died in the middle of a line.
  LogFileReader last(files.back().fd.get(), files.back().start);
  while (last.next()) {
  }
  file_ = linux::open_at(folder_.get(), file_name(files.back().start),
                         O_WRONLY | O_APPEND | O_NOFOLLOW);
  if (::ftruncate(file_.get(), static_cast<off_t>(last.offset())) != 0)
    throw_errno("cut off the end of a log");
  size_ = last.offset();
  position_ = last.position();
  is_first_ = files.size() == 1 && files.front().start == 0;
}

bool LogWriter::leave_empty() const {
  return is_first_ && (!file_ || ::ftruncate(file_.get(), 0) == 0);
}

void LogWriter::write(const guest::Output& output) {
  if (output.position < position_ || output.position + output.bytes.size() < output.position)
    fail(Code::invalid, "output from {} on, where {} is next", output.position, position_);
  if (output.position > position_) {
    position_ = output.position;
    file_.reset();
  }
  std::string text;
  std::uint64_t end = position_;
  std::string_view rest = output.bytes;
  while (!rest.empty()) {
    const std::size_t before = rest.size();
    const std::string line = format_log_line(take_line(output, rest));
    if (!file_ || size_ + text.size() + line.size() > limits_.bytes) {
      flush(text);
      position_ = end;
      begin_file();
    }
    text += line;
    end += before - rest.size();
  }
  flush(text);
  position_ = end;
}

// All of it or nothing: half a line would be taken for what it is not.
void LogWriter::flush(std::string& text) {
  if (text.empty()) return;
  OnFailure cut_off([&] {
    [[maybe_unused]] const int cut = ::ftruncate(file_.get(), static_cast<off_t>(size_));
  });
  linux::write_all(file_.get(), text);
  cut_off.release();
  size_ += text.size();
  written_ += text.size();
  text.clear();
}

// The oldest goes first: at no moment is there more than there may be.
void LogWriter::begin_file() {
  std::vector<std::string> names = linux::list_folder(folder_.get());
  while (!names.empty() && names.size() >= limits_.files) {
    if (::unlinkat(folder_.get(), names.front().c_str(), 0) != 0 && errno != ENOENT)
      throw_errno("remove an old log");
    names.erase(names.begin());
  }
  is_first_ = is_first_ && names.empty() && position_ == 0;
  file_ = linux::open_at(folder_.get(), file_name(position_),
                         O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  size_ = 0;
}

std::vector<LogFile> open_log_files(int folder_fd) {
  std::vector<LogFile> files;
  for (const std::string& name : linux::list_folder(folder_fd)) {
    const auto start = parse_file_name(name);
    if (!start) continue;
    // It may have been rotated away since.
    linux::Fd file(::openat(folder_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (file) files.push_back({.start = *start, .fd = std::move(file)});
  }
  return files;
}

}  // namespace hearth::runtime
