// What is on disk comes first, then what the guest still has in its memory. Whoever follows a flood
// too slowly finds on disk what the guest has forgotten meanwhile.
#include <unistd.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/log_printer.h"
#include "cli/verbs.h"
#include "guest/client.h"
#include "runtime/client.h"
#include "runtime/log_file.h"

namespace hearth::cli {
namespace {

class LogReader {
 public:
  LogReader(const LogsOptions& options, LogPrinter& printer)
      : options_(options), printer_(printer), runtime_(options.state_dir) {}

  void read_disk() {
    const std::vector<runtime::LogFile> files = runtime_.open_log(options_.id);
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (i + 1 < files.size() && files[i + 1].start <= position_) continue;  // seen already
      runtime::LogFileReader reader(files[i].fd.get(), files[i].start);
      while (const auto piece = reader.next()) show(*piece);
    }
  }

  // To the end of what there is; or of the sandbox, if `follow`.
  void read_guest(bool follow) {
    for (bool behind = true; behind;) {
      behind = false;
      guest::Connection guest(runtime_.connect(options_.id));
      guest.read_log({.follow = follow, .from = position_}, [&](const guest::Output& piece) {
        behind = begun_ && piece.position > position_ && !looked_;
        if (behind) return false;
        show(piece);
        looked_ = false;
        return true;
      });
      if (behind) read_disk();
      // What is not there either is lost, and said to be.
      looked_ = behind;
    }
  }

 private:
  void show(const guest::Output& piece) {
    if (piece.position + piece.bytes.size() <= position_) return;
    if (begun_ && piece.position > position_) {
      complain("logs", fmt::format("{} bytes were lost here", piece.position - position_));
    }
    begun_ = true;
    guest::Output rest = piece;
    if (piece.position < position_) rest.bytes.erase(0, position_ - piece.position);
    printer_.add(rest);
    position_ = piece.position + piece.bytes.size();
  }

  const LogsOptions& options_;
  LogPrinter& printer_;
  runtime::RuntimeClient runtime_;
  std::uint64_t position_ = 0;
  bool begun_ = false;   // before the first piece nothing can be missing
  bool looked_ = false;  // on disk, for what was missing
};

}  // namespace

int logs(const LogsOptions& options) {
  LogPrinter printer(options.choice, [](guest::Stream stream, std::string_view text) {
    linux::write_all(stream == guest::Stream::output ? STDOUT_FILENO : STDERR_FILENO, text);
  });
  LogReader reader(options, printer);
  reader.read_disk();
  try {
    reader.read_guest(/*follow=*/false);
    printer.end_tail();
    if (options.follow) reader.read_guest(/*follow=*/true);
  } catch (const Error& error) {
    // It has exited, or it is paused: what is on disk is all there is for now.
    if (error.code() != Code::unavailable && error.code() != Code::not_found) throw;
    printer.end_tail();
  }
  return 0;
}

}  // namespace hearth::cli
