// A command in a sandbox, from start to exit code: what `run` and `exec` have in common.
#pragma once

#include <cstdint>
#include <string>

#include "cli/signals.h"
#include "cli/verbs.h"
#include "guest/client.h"
#include "runtime/runtime.h"

namespace hearth::cli {

// The signals that a command gets to hear when we do.
Signals make_command_signals();

struct CommandPlace {
  std::string verb;  // for messages
  std::string state_dir;
  runtime::Sandbox sandbox;  // as it was before the command
};

struct CommandEnd {
  bool started = false;
  int exit_code = 0;
};

// Runs the command, or a shell where there is none, and waits for it unless it is detached. What
// went wrong with the command itself is said on stderr and in the exit code; Error is for the rest.
CommandEnd run_command(const CommandPlace& place, const CommandOptions& options,
                       guest::Connection& guest, Signals& signals);

// A command in a sandbox that exists: all of `exec`. `verb` is for messages.
int run_in_sandbox(const std::string& verb, const ExecOptions& options, Signals& signals);

// The exit code that tells the same story.
int exit_code_of(const guest::Exited& exited);

// For a command that could not be started.
int exit_code_of_start(Code code);

// "hearth: run: why" on stderr.
void complain(const std::string& verb, const std::string& why);

}  // namespace hearth::cli
