// The server's births: from a request to a command that runs.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "guest/command_line.h"
#include "guest/process_tree.h"
#include "guest/server_internal.h"
#include "linux/pty.h"

namespace hearth::guest {
namespace {

// Commands that wait to be born. A sandbox starved of CPU starts them slowly.
constexpr std::size_t kMaxPending = 1024;

}  // namespace

void Server::begin_exec(Client& client, const ExecRequest& request, std::vector<linux::Fd> fds) {
  if (pending_.size() >= kMaxPending)
    fail(Code::exhausted, "too many commands are being started at once");
  if (stop_client_ != 0) fail(Code::conflict, "the sandbox is being stopped");
  std::shared_ptr<Lasting> lasting;
  if (request.restart != Restart::never) {
    if (!request.detached) fail(Code::invalid, "only a detached command can be started again");
    lasting = std::make_shared<Lasting>();
    lasting->request = request;
  }
  if (request.main && !request.detached) fail(Code::invalid, "the main command is a detached one");
  if (request.main && main_) fail(Code::conflict, "the sandbox has its main command already");
  PendingSpawn pending = plan_exec(request, std::move(fds));
  if (request.main) main_ = std::make_unique<MainCommand>();
  pending.client = client.id;
  client.spawning = true;
  enqueue(std::move(pending), std::move(lasting));
}

Server::PendingSpawn Server::plan_exec(const ExecRequest& request, std::vector<linux::Fd> fds) {
  PendingSpawn pending;
  const Settings settings = core_.settings();
  const std::vector<std::string> environment = environment_for_commands(settings);
  pending.plan = plan_command(request, {.environment = environment,
                                        .user = settings.user,
                                        .directory = settings.directory,
                                        .limits = options_.limits,
                                        .rights = options_.rights});
  pending.deadline = deadline_of(request);
  pending.detached = request.detached;
  pending.main = request.main;
  pending.only_end = request.only_end && !request.detached && !request.terminal;
  if (request.detached) {
    plan_detached(pending, request);
  } else if (request.terminal) {
    pending.terminal = plan_terminal(pending, request);
  } else {
    if (fds.size() != 3) fail(Code::invalid, "a command needs 3 descriptors, {} came", fds.size());
    pending.stdio = std::move(fds);
  }
  return pending;
}

void Server::enqueue(PendingSpawn pending, std::shared_ptr<Lasting> lasting) {
  pending.lasting = std::move(lasting);
  pending_.push_back(std::move(pending));
  if (spawner_.busy()) return hurry_spawner();
  spawn_next();
}

// Somebody waits for a result that the spawner may not mean to tell of.
void Server::hurry_spawner() {
  spawner_.tell_after_all();
  read_spawner();
}

void Server::spawn_next() {
  if (pending_.empty() || spawner_.busy()) return;
  pending_.front().patience = AwakeDeadline::after(kSpawnPatience);
  spawner_.begin(pending_.front().plan, std::move(pending_.front().stdio),
                 /*tell=*/!pending_.front().only_end || pending_.size() > 1);
}

void Server::read_spawner() {
  const std::optional<SpawnResult> result = spawner_.take_result();
  if (!result) return;
  PendingSpawn pending = std::move(pending_.front());
  pending_.pop_front();
  spawn_next();
  finish_spawn(std::move(pending), *result);
}

void Server::finish_spawn(PendingSpawn pending, const SpawnResult& result) {
  const auto found = clients_.find(pending.client);
  Client* client = found == clients_.end() ? nullptr : found->second.get();
  if (client != nullptr) client->spawning = false;
  try {
    if (result.failed != SpawnStep::none) {
      early_ends_.erase(result.pid);
      if (pending.main) main_.reset();  // it may be tried again
      const Failed failure = describe_failure(pending.plan, result);
      if (pending.main && ends_with_main_) {
        outcome_.failure = failure;
        done_ = true;
      }
      if (client != nullptr) reply(*client, failure);
      return;
    }
    Command command;
    command.client = pending.detached || client == nullptr ? 0 : client->id;
    command.deadline = pending.deadline;
    command.lasting = pending.lasting;
    command.started = std::chrono::system_clock::now();
    command.number = next_command_++;
    command.detached = pending.detached;
    command.main = pending.main;
    if (pending.main) main_->pid = result.pid;
    command.input = std::move(pending.input);
    for (OutputEnd& output : pending.outputs) {
      const std::uint64_t id = next_output_++;
      output.source = command.number;
      if (!held_back_) watch(output.fd.get(), tag_of(Tag::output, id), EPOLLIN);
      outputs_.emplace(id, std::move(output));
    }
    commands_.emplace(result.pid, std::move(command));
    if (client != nullptr) {
      if (!pending.detached) client->command = result.pid;
      if (!pending.only_end) {
        reply(*client, Started{.pid = static_cast<std::uint32_t>(result.pid)},
              pending.terminal.get());
      }
    } else if (!pending.detached) {
      kill_tree(proc_.get(), result.pid);
    }
  } catch (const Error&) {
    drop_client(pending.client);
  }
  if (pending.main)
    for (const int signal : std::exchange(early_signals_, {})) pass_on(signal);
  if (const auto ended = early_ends_.find(result.pid); ended != early_ends_.end()) {
    const linux::ExitStatus status = ended->second;
    early_ends_.erase(ended);
    command_ended(result.pid, status);
  }
}

}  // namespace hearth::guest
