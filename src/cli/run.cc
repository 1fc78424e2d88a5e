#include <unistd.h>

#include <cstdio>

#include "base/on_failure.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

runtime::SandboxSpec spec_of(const RunOptions& options) {
  runtime::SandboxSpec spec;
  spec.id = options.name;
  spec.image = options.image;
  spec.environment = options.command.environment;
  if (!options.command.user.empty()) spec.user = options.command.user;
  spec.limits = options.limits;
  spec.ends_with_client = options.remove;
  return spec;
}

// The end of a sandbox that nobody needs any more: the exit code to report.
int remove_after(runtime::Runtime& runtime, const std::string& id, int exit_code) {
  try {
    runtime.destroy(id);
    return exit_code;
  } catch (const Error& error) {
    complain("run", fmt::format("sandbox {} could not be removed: {}", id, error.what()));
    return exit_code == 0 ? kExitEngine : exit_code;
  }
}

}  // namespace

int run(const RunOptions& options) {
  // Before there is a sandbox: an interruption must not leave one behind.
  Signals signals = make_command_signals();
  // Kept to the end: with --rm the sandbox is tied to this connection, and goes even if we are
  // killed.
  runtime::RuntimeClient runtime(options.state_dir);
  runtime::Runtime::Created created = runtime.create(spec_of(options));
  const std::string id = created.sandbox.id;
  OnFailure remove([&] { runtime.destroy(id); });

  CommandEnd end{.started = true};
  if (!options.command.command.empty() || !options.command.detached) {
    guest::Connection guest(std::move(created.guest));
    const CommandPlace place{
        .verb = "run", .state_dir = options.state_dir, .sandbox = created.sandbox};
    end = run_command(place, options.command, guest, signals);
  }
  remove.release();
  // A sandbox whose command never began would only be in the way.
  if (options.remove || !end.started) return remove_after(runtime, id, end.exit_code);
  if (options.command.detached) {
    std::puts(id.c_str());
  } else if (::isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "%s\n", id.c_str());
  }
  return end.exit_code;
}

}  // namespace hearth::cli
