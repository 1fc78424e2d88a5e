#include <unistd.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "linux/fd.h"
#include "runtime/log_reader.h"

namespace hearth::cli {

int logs(const LogsOptions& options) {
  runtime::LogPrinter printer(options.choice, [](guest::Stream stream, std::string_view text) {
    linux::write_all(stream == guest::Stream::output ? STDOUT_FILENO : STDERR_FILENO, text);
  });
  const auto lost = [](std::uint64_t bytes) {
    complain("logs", fmt::format("{} bytes were lost here", bytes));
  };
  runtime::LogReader(options.state_dir, options.id, printer, lost).read(options.follow);
  return 0;
}

}  // namespace hearth::cli
