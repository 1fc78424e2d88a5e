#include "cli/command.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {

int run_in_sandbox(const std::string& verb, const ExecOptions& options, Signals& signals) {
  CommandPlace place{.verb = verb, .state_dir = options.state_dir, .sandbox = {}};
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

int exec(const ExecOptions& options) {
  Signals signals = make_command_signals();
  return run_in_sandbox("exec", options, signals);
}

}  // namespace hearth::cli
