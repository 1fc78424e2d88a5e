#include "cli/command.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {

int exec(const ExecOptions& options) {
  Signals signals = make_command_signals();
  CommandPlace place{.verb = "exec", .state_dir = options.state_dir, .sandbox = {}};
  linux::Channel channel;
  {
    runtime::RuntimeClient client(options.state_dir);
    place.sandbox = client.get(options.id);
    if (options.command.detached) client.keep_log(options.id);
    channel = client.connect(options.id);
  }
  guest::Connection guest(std::move(channel));
  return run_command(place, options.command, guest, signals).exit_code;
}

}  // namespace hearth::cli
