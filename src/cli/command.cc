#include "cli/command.h"

#include <unistd.h>

#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/time_text.h"
#include "cli/attachment.h"
#include "cli/values.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

constexpr int kKilled = kExitSignalBase + SIGKILL;

guest::ExecRequest make_request(const CommandOptions& options) {
  guest::ExecRequest request;
  request.command = options.command;
  request.environment = options.environment;
  request.directory = options.directory;
  request.user = options.user;
  request.detached = options.detached;
  if (options.detached) {
    request.keep_input = options.interactive;
    request.terminal = options.terminal;
    const linux::WindowSize size = own_window_size();
    request.rows = size.rows;
    request.columns = size.cols;
  }
  request.restart = options.restart;
  request.most_restarts = options.most_restarts;
  // Below a millisecond is not "no timeout".
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(options.timeout).count();
  request.timeout_milliseconds = static_cast<std::uint64_t>(milliseconds);
  return request;
}

// Tries `start` with the command, or with the shells there might be.
template <typename Start>
void start_command(guest::ExecRequest request, const Start& start) {
  if (!request.command.empty()) return start(request);
  request.command = {"bash"};
  try {
    return start(request);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
  }
  request.command = {"sh"};
  start(request);
}

// Whether processes of the sandbox died for lack of memory meanwhile. Without an answer: no.
bool ran_out_of_memory(const CommandPlace& place) {
  try {
    runtime::RuntimeClient client(place.state_dir);
    return client.get(place.sandbox.id).usage.oom_kills > place.sandbox.usage.oom_kills;
  } catch (const Error&) {
    return false;
  }
}

void explain_end(const CommandPlace& place, const CommandOptions& options,
                 const guest::Exited& exited) {
  if (exited.timed_out) {
    complain(place.verb,
             fmt::format("the command was killed: it ran longer than {}",
                         options.timeout < std::chrono::seconds(1)
                             ? fmt::format("{}ms", options.timeout / std::chrono::milliseconds(1))
                             : format_age(options.timeout)));
  } else if (exit_code_of(exited) == kKilled && ran_out_of_memory(place)) {
    complain(place.verb,
             fmt::format("killed for lack of memory: the sandbox may use {} in all; 'hearth run "
                         "--memory' gives one more",
                         format_size(place.sandbox.limits.memory_bytes)));
  }
}

}  // namespace

Signals make_command_signals() {
  return Signals({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH});
}

void complain(const std::string& verb, const std::string& why) {
  std::fputs(fmt::format("hearth: {}: {}\n", verb, why).c_str(), stderr);
}

int exit_code_of(const guest::Exited& exited) {
  if (exited.timed_out) return kExitTimedOut;
  if (exited.status.signal != 0) return kExitSignalBase + exited.status.signal;
  return exited.status.code;
}

int exit_code_of_start(Code code) {
  if (code == Code::not_found) return kExitNotFound;
  if (code == Code::forbidden) return kExitNotExecutable;
  return kExitEngine;
}

CommandEnd run_command(const CommandPlace& place, const CommandOptions& options,
                       guest::Connection& guest, Signals& signals) {
  // Whoever detaches may attach from elsewhere: it takes no terminal of ours.
  std::optional<Attachment> attachment;
  if (!options.detached)
    attachment.emplace(
        guest, signals,
        AttachmentOptions{.interactive = options.interactive, .terminal = options.terminal});
  try {
    start_command(make_request(options), [&](const guest::ExecRequest& request) {
      if (attachment)
        attachment->start(request);
      else
        guest.start(request, {});
    });
  } catch (const Error& error) {
    complain(place.verb, error.what());
    return {.started = false, .exit_code = exit_code_of_start(error.code())};
  }
  if (!attachment) return {.started = true, .exit_code = 0};
  const guest::Exited exited = attachment->wait();
  explain_end(place, options, exited);
  return {.started = true, .exit_code = exit_code_of(exited)};
}

}  // namespace hearth::cli
