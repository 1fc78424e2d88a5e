#include <unistd.h>

#include <cstdio>

#include "base/on_failure.h"
#include "cli/command.h"
#include "cli/image_names.h"
#include "cli/surface.h"
#include "cli/verbs.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

runtime::SandboxSpec spec_of(const RunOptions& options, runtime::RuntimeClient& runtime) {
  runtime::SandboxSpec spec;
  spec.id = options.name;
  spec.image = full_image_name(options.image);
  spec.environment = options.command.environment;
  if (!options.command.user.empty()) spec.user = options.command.user;
  spec.limits = options.limits;
  spec.ulimits = options.ulimits;
  spec.disk_on = options.disk_on;
  spec.network = choose_policy(options.network, !runtime.hello().network.empty());
  spec.mounts = options.mounts;
  for (const SecretFile& secret : options.secrets) spec.mounts.push_back(read_secret(secret));
  spec.surfaces = options.surfaces;
  if (!options.token_file.empty()) spec.token = read_token(options.token_file);
  spec.ends_with_client = options.remove;
  spec.log = options.log;
  return spec;
}

// The command that was asked for, or the image's own. Empty: a shell, or with -d nothing.
CommandOptions complete(const RunOptions& options, const runtime::Sandbox& sandbox) {
  CommandOptions command = options.command;
  if (command.command.empty()) command.command = sandbox.default_command;
  if (command.command.empty() && !command.detached && !(command.interactive && command.terminal)) {
    fail(Code::invalid,
         "image '{}' names no command of its own; add one behind '--', or take -it for a shell or "
         "-d for a sandbox to use later",
         options.image);
  }
  return command;
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
  runtime::Runtime::Created created = runtime.create(spec_of(options, runtime));
  const std::string id = created.sandbox.id;
  OnFailure remove([&] { runtime.destroy(id); });

  const CommandOptions command = complete(options, created.sandbox);
  CommandEnd end{.started = true};
  const bool wants_shell = !command.detached || (command.interactive && command.terminal);
  if (!command.command.empty() || wants_shell) {
    if (command.detached) runtime.keep_log(id);
    guest::Connection guest(std::move(created.guest));
    const CommandPlace place{
        .verb = "run", .state_dir = options.state_dir, .sandbox = created.sandbox};
    end = run_command(place, command, guest, signals);
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
