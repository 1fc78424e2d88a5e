#include <unistd.h>

#include "base/error.h"
#include "cli/verbs.h"
#include "guest/client.h"
#include "runtime/client.h"

namespace hearth::cli {

int logs(const LogsOptions& options) {
  guest::Connection guest(runtime::RuntimeClient(options.state_dir).connect(options.id));
  try {
    guest.read_log(options.follow,
                   [](const std::string& piece) { linux::write_all(STDOUT_FILENO, piece); });
  } catch (const Error& error) {
    // Following ends with the sandbox.
    if (!options.follow || error.code() != Code::unavailable) throw;
  }
  return 0;
}

}  // namespace hearth::cli
