#include "runtime/log_reader.h"

#include <sys/socket.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/on_failure.h"
#include "guest/client.h"
#include "runtime/log_file.h"

namespace hearth::runtime {

LogReader::LogReader(const std::string& state_dir, std::string id, LogPrinter& printer, Lost lost)
    : id_(std::move(id)), printer_(printer), lost_(std::move(lost)), runtime_(state_dir) {}

void LogReader::read(bool follow) {
  read_disk();
  try {
    read_guest(/*follow=*/false);
    printer_.end_tail();
    if (follow) read_guest(/*follow=*/true);
  } catch (const Error& error) {
    // It has exited, or it is paused: what is on disk is all there is for now.
    if (error.code() != Code::unavailable && error.code() != Code::not_found) throw;
    printer_.end_tail();
  }
}

void LogReader::stop() {
  stopped_ = true;
  guest_fd_.with([](int fd) {
    if (fd >= 0) ::shutdown(fd, SHUT_RDWR);
  });
}

void LogReader::read_disk() {
  const std::vector<LogFile> files = runtime_.open_log(id_);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i + 1 < files.size() && files[i + 1].start <= position_) continue;  // seen already
    LogFileReader reader(files[i].fd.get(), files[i].start);
    while (const auto piece = reader.next()) {
      if (stopped_) return;
      show(*piece);
    }
  }
}

// To the end of what there is; or of the sandbox, if `follow`.
void LogReader::read_guest(bool follow) {
  for (bool behind = true; behind && !stopped_;) {
    behind = false;
    guest::Connection guest(runtime_.connect(id_));
    guest_fd_.with([&](int& fd) { fd = guest.fd(); });
    const OnFailure forget([&] { guest_fd_.with([](int& fd) { fd = -1; }); });
    if (stopped_) return;
    guest.read_log({.follow = follow, .from = position_}, [&](const guest::Output& piece) {
      behind = begun_ && piece.position > position_ && !looked_;
      if (behind || stopped_) return false;
      show(piece);
      looked_ = false;
      return true;
    });
    if (behind) read_disk();
    // What is not there either is lost, and said to be.
    looked_ = behind;
  }
}

void LogReader::show(const guest::Output& piece) {
  if (piece.position + piece.bytes.size() <= position_) return;
  if (begun_ && piece.position > position_) lost_(piece.position - position_);
  begun_ = true;
  guest::Output rest = piece;
  if (piece.position < position_) rest.bytes.erase(0, position_ - piece.position);
  printer_.add(rest);
  position_ = piece.position + piece.bytes.size();
}

}  // namespace hearth::runtime
