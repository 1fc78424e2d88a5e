#include "gateway/access_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "base/time_text.h"
#include "metrics/registry.h"

namespace hearth::gateway {
namespace {

// Handed over at once; what is less goes with the next tick.
constexpr std::size_t kLotBytes = 64 << 10;

// Written at once to a file. Others are pipes and terminals, which may take no more than a line.
constexpr std::size_t kFilePiece = 256 << 10;

// How often somebody who waits for a slow reader looks whether it is time to go.
constexpr int kPollMilliseconds = 50;

constexpr int kOpenFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;
constexpr mode_t kMode = 0640;

std::int64_t steady_nanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

std::uint64_t count_lines(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

// As many whole lines as fit, or the first.
std::string_view first_lines(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  auto end = text.rfind('\n', most - 1);
  if (end == std::string_view::npos) end = text.find('\n');
  return text.substr(0, end == std::string_view::npos ? text.size() : end + 1);
}

bool needs_escapes(std::string_view text) {
  return std::ranges::any_of(text,
                             [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
}

bool is_regular_file(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

// By hand and not with fmt: this is what a log costs each request.
void render_access(const AccessRecord& record, std::string& lines) {
  const auto text = [&](std::string_view begin, std::string_view value) {
    if (value.empty()) return;
    lines += begin;
    if (needs_escapes(value))
      lines += json_quote(value);
    else
      lines.append("\"").append(value).append("\"");
  };
  const auto number = [&](std::string_view begin, std::uint64_t value) {
    const fmt::format_int digits(value);
    lines.append(begin).append(digits.data(), digits.size());
  };
  text("{\"time\":", format_rfc3339(record.began, 6));
  text(",\"route\":", record.route);
  text(",\"namespace\":", record.ns);
  text(",\"sandbox\":", record.sandbox);
  if (record.port != 0) number(",\"port\":", record.port);
  text(",\"method\":", record.method);
  text(",\"path\":", record.path.substr(0, kMostPathBytes));
  number(",\"status\":", record.status);
  number(",\"bytes_in\":", record.bytes_in);
  number(",\"bytes_out\":", record.bytes_out);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(record.took).count();
  number(",\"duration_us\":", static_cast<std::uint64_t>(std::max<std::int64_t>(took, 0)));
  text(",\"key\":", record.key);
  text(",\"peer\":", record.peer);
  if (record.is_cut) lines += ",\"cut\":true";
  lines += "}\n";
}

AccessFile open_access_file(const std::string& path) {
  const bool is_stdout = path == "-";
  linux::Fd fd(is_stdout ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                         : ::open(path.c_str(), kOpenFlags, kMode));
  if (!fd) throw_errno("open the access log '{}'", path);
  return {.path = path, .fd = std::move(fd)};
}

AccessLog::AccessLog(AccessLogOptions options)
    : options_(std::move(options)), is_regular_(is_regular_file(options_.file.fd.get())) {
  if (options_.registry != nullptr) {
    written_ = &options_.registry->counter("hearth_gateway_access_log_lines_total",
                                           "Lines of the access log that were written.");
    dropped_ = &options_.registry->counter(
        "hearth_gateway_access_log_dropped_total",
        "Lines of the access log that were not: its disk or reader was slow, or full.");
  }
  writer_ = std::thread([this] { run(); });
}

AccessLog::~AccessLog() {
  {
    const std::lock_guard lock(mutex_);
    end_ = steady_nanoseconds() + options_.end_patience.count();
  }
  news_.notify_one();
  writer_.join();
}

void AccessLog::take(std::string lines) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + lines.size() > options_.most_waiting_bytes) {
      drop(lines);
      return;
    }
    is_first = waiting_.empty();
    if (is_first)
      waiting_ = std::move(lines);
    else
      waiting_ += lines;
  }
  if (is_first) news_.notify_one();
}

void AccessLog::run() {
  name_thread("access-log");
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  while (true) {
    std::string lot;
    {
      std::unique_lock lock(mutex_);
      news_.wait(lock, [this] { return !waiting_.empty() || end_ != 0; });
      if (waiting_.empty()) return;
      lot.swap(waiting_);
    }
    if (is_regular_) follow_path();
    write(lot);
  }
}

void AccessLog::write(std::string_view lines) {
  if (is_torn_) {
    if (write_piece("\n") == 0) {
      drop(lines);
      return;
    }
    is_torn_ = false;
  }
  while (!lines.empty()) {
    const std::string_view piece = first_lines(lines, is_regular_ ? kFilePiece : kMostLineBytes);
    const std::size_t done = write_piece(piece);
    if (written_ != nullptr) written_->add(count_lines(piece.substr(0, done)));
    if (done < piece.size()) {
      is_torn_ = done > 0 && piece[done - 1] != '\n';
      drop(lines.substr(done));
      return;
    }
    lines.remove_prefix(piece.size());
  }
  has_failed_to_write_ = false;
}

std::size_t AccessLog::write_piece(std::string_view piece) {
  std::size_t done = 0;
  while (done < piece.size() && wait_writable()) {
    const ssize_t count = ::write(options_.file.fd.get(), piece.data() + done, piece.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR && errno != EAGAIN) {
      complain(has_failed_to_write_, "the access log takes no more lines");
      break;
    }
  }
  return done;
}

// False: it is time to go, and nobody has read.
bool AccessLog::wait_writable() const {
  while (true) {
    pollfd waiting{.fd = options_.file.fd.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, kPollMilliseconds) > 0) return true;
    const std::int64_t end = end_;
    if (end != 0 && steady_nanoseconds() > end) return false;
  }
}

// Whoever rotates logs renames the file, and expects another.
void AccessLog::follow_path() {
  AccessFile& file = options_.file;
  struct stat named{};
  struct stat ours{};
  const bool is_same = ::stat(file.path.c_str(), &named) == 0 &&
                       ::fstat(file.fd.get(), &ours) == 0 && named.st_dev == ours.st_dev &&
                       named.st_ino == ours.st_ino;
  if (is_same || file.path == "-") return;
  linux::Fd next(::open(file.path.c_str(), kOpenFlags, kMode));
  if (!next) {
    complain(has_failed_to_open_, "the access log was moved, and there can be no other");
    return;
  }
  file.fd = std::move(next);
  is_regular_ = is_regular_file(file.fd.get());
  is_torn_ = has_failed_to_open_ = false;
}

void AccessLog::drop(std::string_view lines) {
  if (dropped_ != nullptr) dropped_->add(count_lines(lines));
}

void AccessLog::complain(bool& has_complained, const char* what) {
  const std::string why = errno_text(errno);
  if (std::exchange(has_complained, true)) return;
  log::warning(what, {{"file", options_.file.path}, {"why", why}});
}

void AccessLines::add(const AccessRecord& record) {
  render_access(record, lines_);
  if (lines_.size() >= kLotBytes) hand_over();
}

void AccessLines::hand_over() {
  if (lines_.empty()) return;
  log_.take(std::exchange(lines_, {}));
}

}  // namespace hearth::gateway
