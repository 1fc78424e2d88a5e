// A sandbox's log on disk: a folder of text files with an end to their size and number.
//
// A file is named after the position of its first byte (guest/log_ring.h), 20 digits. Its lines are
// those that Kubernetes nodes write, so that tools for them can read ours:
//   2026-01-02T03:04:05.678901234Z stdout F a line
//   2026-01-02T03:04:05.678901234Z stderr P the beginning of one; what follows is the rest
// So the position of any byte can be counted, and a file stands for itself: lines never cross from
// one to the next, only parts of them do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guest/protocol.h"
#include "linux/fd.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

struct LogLine {
  Time time;
  guest::Stream stream = guest::Stream::output;
  bool whole = true;      // a newline belongs to it
  std::string_view text;  // without it
};

// With the newline of the file. `text` must have none.
std::string format_log_line(const LogLine& line);
// Without it. Nothing for what is no such line.
std::optional<LogLine> parse_log_line(std::string_view line);

// Reads a file from its beginning; what a crash cut off at its end is not seen. `fd` is borrowed
// and may be shared: its position is not used.
class LogFileReader {
 public:
  LogFileReader(int fd, std::uint64_t start) : fd_(fd), position_(start) {}

  // The next line, or nothing: not yet. What it returned before is gone then. Throws Error.
  std::optional<guest::Output> next();

  // Of the byte behind what was returned last, among the sandbox's and in the file.
  std::uint64_t position() const { return position_; }
  std::uint64_t offset() const { return offset_; }

 private:
  int fd_;
  std::uint64_t position_;
  std::uint64_t offset_ = 0;       // of the first byte that is not in a returned line
  std::uint64_t read_offset_ = 0;  // of the first byte that is not in buffer_
  std::size_t start_ = 0;          // in buffer_, of the byte at offset_
  std::string buffer_;
};

// Writes the files. One thread. Throws Error; what was not written then is not in position().
class LogWriter {
 public:
  LogWriter(linux::Fd folder, LogLimits limits);

  // The next byte that it needs.
  std::uint64_t position() const { return position_; }

  // Throws Error(invalid) for what was written already. A gap begins a new file.
  void write(const guest::Output& output);

  // Leaves the folder as one in which nothing was ever written but a file for it was made. False:
  // there is more in it than that. To be called last.
  bool leave_empty() const;

  // How many bytes went to disk.
  std::uint64_t written() const { return written_; }

 private:
  void begin_file();
  void flush(std::string& text);

  linux::Fd folder_;
  LogLimits limits_;
  linux::Fd file_;        // none until something is to be written
  bool is_first_ = true;  // no other file was begun
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;  // behind the last byte on disk
  std::uint64_t written_ = 0;
};

// Those in a folder, oldest first, to be read.
std::vector<LogFile> open_log_files(int folder_fd);

}  // namespace hearth::runtime
