// Detached commands: where their input and output go, and who looks on.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "guest/server_internal.h"
#include "linux/pty.h"

namespace hearth::guest {
namespace {

// Programs open /dev/stderr anew, as whoever they run as.
linux::Pipe make_open_pipe() {
  linux::Pipe pipe = linux::make_pipe();
  if (::fchmod(pipe.read.get(), 0666) != 0) throw_errno("open a pipe to everyone");
  return pipe;
}

}  // namespace

// Gives the command a terminal: the outer end.
linux::Fd Server::plan_terminal(PendingSpawn& pending, const ExecRequest& request) {
  linux::Pty pty = linux::open_pty(request.rows, request.columns);
  if (pending.plan.uid != 0) {
    // The terminal belongs to who uses it, as login(1) does it.
    [[maybe_unused]] const int owned =
        ::fchown(pty.slave.get(), pending.plan.uid, pending.plan.gid);
  }
  pending.stdio.push_back(linux::duplicate(pty.slave.get()));
  pending.stdio.push_back(linux::duplicate(pty.slave.get()));
  pending.stdio.push_back(std::move(pty.slave));
  return std::move(pty.master);
}

void Server::plan_detached(PendingSpawn& pending, const ExecRequest& request) {
  if (request.terminal) {
    pending.input = plan_terminal(pending, request);
    linux::set_nonblocking(pending.input.get(), true);
    pending.outputs.push_back(
        {.fd = linux::duplicate(pending.input.get()), .stream = Stream::output});
    return;
  }
  if (request.keep_input) {
    linux::Pipe pipe = make_open_pipe();
    pending.input = std::move(pipe.write);
    pending.stdio.push_back(std::move(pipe.read));
  } else {
    pending.stdio.push_back(linux::open_file("/dev/null", O_RDONLY));
  }
  for (const Stream stream : {Stream::output, Stream::error}) {
    linux::Pipe pipe = make_open_pipe();
    linux::set_nonblocking(pipe.read.get(), true);
    pending.outputs.push_back({.fd = std::move(pipe.read), .stream = stream});
    pending.stdio.push_back(std::move(pipe.write));
  }
}

// Those who are attached read the log, and see one command's part of it.
void Server::start_attached(Client& client, const AttachRequest& request) {
  auto chosen = commands_.end();
  for (auto it = commands_.begin(); it != commands_.end(); ++it) {
    if (!it->second.detached) continue;
    if (request.pid != 0 && static_cast<std::uint32_t>(it->first) != request.pid) continue;
    if (chosen == commands_.end() || it->second.number < chosen->second.number) chosen = it;
  }
  if (chosen == commands_.end()) {
    if (request.pid == 0) fail(Code::not_found, "no detached command is running in this sandbox");
    fail(Code::not_found, "no detached command with pid {} is running", request.pid);
  }
  const Command& command = chosen->second;
  reply(client, Started{.pid = static_cast<std::uint32_t>(chosen->first)}, command.input.get());
  client.attached = chosen->first;
  client.log_source = command.number;
  client.log_position = log_.end();
  client.reading_log = true;
  client.follow_log = true;
}

void Server::start_awaiting(Client& client) {
  if (!main_) fail(Code::not_found, "this sandbox has no main command");
  if (main_->end) return reply(client, *main_->end);
  client.awaits_end = true;
}

void Server::end_main(const Exited& exited) {
  main_->end = exited;
  main_->pid = 0;
  if (ends_with_main_) {
    outcome_.end = exited;
    done_ = true;
  }
  std::vector<std::uint64_t> deaf;
  for (const auto& [id, client] : clients_) {
    if (!std::exchange(client->awaits_end, false)) continue;
    try {
      reply(*client, exited);
    } catch (const Error&) {
      deaf.push_back(id);
    }
  }
  for (const std::uint64_t id : deaf) drop_client(id);
}

void Server::end_attached(const Command& command, const Exited& exited) {
  for (const auto& [id, client] : clients_) {
    if (client->log_source != command.number) continue;
    client->attached = 0;
    client->attached_end = exited;
    attached_end_ = true;
  }
}

// Their command has ended: what it left in its pipes, and then how it ended. What others go on
// writing there is theirs. While outputs are held back this waits.
void Server::finish_attached() {
  if (held_back_) return;
  attached_end_ = false;
  std::vector<std::uint64_t> ending;
  for (const auto& [id, client] : clients_) {
    if (client->attached_end && !client->drained) ending.push_back(id);
  }
  for (const std::uint64_t id : ending) {
    drain_outputs(clients_.at(id)->log_source);
    if (held_back_) attached_end_ = true;
    clients_.at(id)->drained = !held_back_;
    try {
      pump_log(*clients_.at(id));
    } catch (const Error&) {
      drop_client(id);
    }
  }
  feed_log_readers();
}

}  // namespace hearth::guest
