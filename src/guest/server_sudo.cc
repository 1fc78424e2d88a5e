// Commands that processes inside ask for, as another user (sudo_door.h). Everything that comes
// through this door is hostile, and all it can reach is the right to start a command.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "guest/command_line.h"
#include "guest/server_internal.h"
#include "guest/sudo_door.h"
#include "guest/users.h"
#include "linux/pty.h"

namespace hearth::guest {
namespace {

// Commands at once; those that are too many wait until one ends.
constexpr std::size_t kMostSudoClients = 256;

// Closing what a socket lingers for may take as long as its owner likes, and we are PID 1.
void stop_lingering(const std::vector<linux::Fd>& fds) {
  for (const linux::Fd& fd : fds) {
    const linger none{.l_onoff = 0, .l_linger = 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
}

bool is_user(std::uint32_t uid, const std::string& name) {
  try {
    return find_user_here(name).uid == uid;
  } catch (const Error&) {
    return false;  // nobody of that name here
  }
}

// A pid is 0 where it is not of this sandbox, but of another container of the same pod.
bool may_sudo(const linux::Peer& peer, const std::vector<std::string>& sudoers) {
  if (peer.pid == 0) return false;
  return peer.uid == 0 || std::ranges::any_of(sudoers, [&](const std::string& name) {
           return is_user(peer.uid, name);
         });
}

void check(const ExecRequest& request, const std::vector<linux::Fd>& fds) {
  const bool only_runs = !request.detached && !request.main && !request.keep_input &&
                         request.restart == Restart::never && request.timeout_milliseconds == 0;
  if (!only_runs || request.user.empty() || !request.directory.starts_with('/'))
    fail(Code::invalid, "sudo runs a command as a user in a folder, and nothing else");
  if (fds.size() != 3) fail(Code::invalid, "a command needs 3 descriptors, {} came", fds.size());
}

}  // namespace

void Server::accept_sudoers() {
  try {
    while (sudo_clients_ < kMostSudoClients) {
      auto channel = linux::try_accept(options_.sudo_door.get());
      if (!channel) return;
      if (may_sudo(linux::peer_of(channel->fd()), options_.sudoers)) {
        reply(add_client(std::move(*channel), Origin::sudo), Connected{});
      } else {
        const Failed refusal{.code = Code::forbidden, .message = "you are not allowed to"};
        channel->try_send(encode(Reply(refusal)));
      }
    }
    watch(options_.sudo_door.get(), tag_of(Tag::sudo), 0U, /*modify=*/true);
  } catch (const Error&) {
    // Whoever it was, he is gone, or there are no descriptors left: no reason to end.
  }
}

// Nothing of what clients from outside may ask for is here by accident: two requests, by name.
void Server::handle_sudo(Client& client, linux::Message message) {
  stop_lingering(message.fds);
  if (message.bytes.size() > kMostSudoBytes)
    fail(Code::exhausted, "the command and its environment are longer than {} bytes",
         kMostSudoBytes);
  const Request request = parse_request(message.bytes);
  if (const auto* signal = std::get_if<SignalRequest>(&request))
    return signal_command(client, *signal);
  const auto* exec = std::get_if<ExecRequest>(&request);
  if (exec == nullptr) fail(Code::invalid, "sudo starts commands, and nothing else");
  begin_sudo(client, *exec, std::move(message.fds));
}

void Server::begin_sudo(Client& client, const ExecRequest& request, std::vector<linux::Fd> fds) {
  check(request, fds);
  if (client.spawning || client.command != 0)
    fail(Code::conflict, "this connection is busy with another command");
  if (stop_client_ != 0) fail(Code::conflict, "the sandbox is being stopped");
  PendingSpawn pending;
  pending.client = client.id;
  pending.plan = plan_command(request, {.environment = {},
                                        .user = request.user,
                                        .directory = request.directory,
                                        .limits = options_.limits,
                                        .rights = options_.rights});
  pending.plan.as_root = true;
  pending.plan.terminal.reset();
  pending.stdio = std::move(fds);
  if (request.terminal) {
    linux::Pty pty = linux::open_pty(request.rows, request.columns);
    if (::fchown(pty.slave.get(), pending.plan.uid, pending.plan.gid) != 0)
      throw_errno("give the terminal to its user");
    for (int target = 2; target >= 0; --target) {
      linux::Fd& given = pending.stdio[static_cast<std::size_t>(target)];
      if (::isatty(given.get()) == 0) continue;
      given = linux::duplicate(pty.slave.get());
      pending.plan.terminal = target;
    }
    pending.terminal = std::move(pty.master);
  }
  client.spawning = true;
  enqueue(std::move(pending), nullptr);
}

}  // namespace hearth::guest
