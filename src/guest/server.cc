#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "guest/boot.h"
#include "guest/process_tree.h"
#include "guest/server_internal.h"

namespace hearth::guest {
namespace {

// Connections from outside at once; each costs a descriptor. The next one waits in the listen
// queue. Surfaces have limits of their own: whatever is asked of them, the engine gets in.
constexpr std::size_t kMaxClients = 512;

}  // namespace

Server::Server(ServerOptions options, Core& core, Spawner& spawner)
    : options_(std::move(options)), core_(core), spawner_(spawner), log_(kLogBytes) {
  // The sandbox's orphans are ours also where we are not PID 1 (tests).
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int signal : options_.signals) sigaddset(&awaited, signal);
  if (::sigprocmask(SIG_BLOCK, &awaited, nullptr) != 0) throw_errno("block signals");
  signals_ = linux::Fd(::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) throw_errno("make a signalfd");
  epoll_ = linux::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) throw_errno("make an epoll");
  proc_ = linux::open_file("/proc", O_RDONLY | O_DIRECTORY);

  if (options_.listen) watch(options_.listen.get(), tag_of(Tag::listen), EPOLLIN);
  watch(signals_.get(), tag_of(Tag::signals), EPOLLIN);
  watch(spawner_.fd(), tag_of(Tag::spawner), EPOLLIN);
  if (options_.boot) watch(options_.boot.fd(), tag_of(Tag::boot), EPOLLIN);
  watch(core_.fd(), tag_of(Tag::core), EPOLLIN);
  for (const Door& door : options_.doors) watch(door.listen.get(), tag_of(Tag::door), EPOLLIN);
  if (options_.sudo_door) watch(options_.sudo_door.get(), tag_of(Tag::sudo), EPOLLIN);
  if (options_.first_client) add_client(std::move(options_.first_client), Origin::outside);
  if (options_.command) start_command(std::move(*options_.command));
}

Server::~Server() = default;

void Server::watch(int fd, std::uint64_t tag, std::uint32_t events, bool modify) const {
  epoll_event event{.events = events, .data = {.u64 = tag}};
  const int operation = modify ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_.get(), operation, fd, &event) != 0) throw_errno("watch a descriptor");
}

// To be called before a close: a fork of ours may still hold the descriptor, and then epoll goes on
// reporting it.
void Server::unwatch(int fd) const {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Server::run() {
  if (options_.boot) {
    const int stage = options_.stage.get();
    options_.boot.send(kAssigned, {&stage, options_.stage ? std::size_t{1} : 0});
  }
  while (!done_) {
    std::array<epoll_event, 32> events{};
    const int wait = keep_clock(next_wait_milliseconds());
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait);
    if (count < 0 && errno != EINTR) throw_errno("wait for events");
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      handle_event(event.data.u64, event.events);
    }
    check_deadlines();
    if (attached_end_) finish_attached();
    if (!leave_deadline_.is_never()) leave_when_kept();
  }
}

void Server::handle_event(std::uint64_t tag, std::uint32_t events) {
  const std::uint64_t id = tag & ((1ull << kKindShift) - 1);
  switch (static_cast<Tag>(tag >> kKindShift)) {
    case Tag::listen:
      return accept_clients();
    case Tag::signals:
      return reap_children();
    case Tag::spawner:
      return read_spawner();
    case Tag::boot:
      return read_boot();
    case Tag::output:
      if (read_output(id)) feed_log_readers();
      return;
    case Tag::core:
      while (auto arrival = core_.take_arrival()) add_client(std::move(*arrival), Origin::surface);
      return;
    case Tag::door:
      return open_doors();
    case Tag::sudo:
      return accept_sudoers();
    case Tag::client:
      break;
  }
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;  // dropped by an event before this one
  try {
    if ((events & EPOLLOUT) != 0) pump_log(*found->second);
    if (clients_.contains(id) && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
      read_client(*found->second);
    }
  } catch (const Error&) {
    drop_client(id);  // whatever it was, it was this client's fault
  }
}

void Server::accept_clients() {
  while (outer_clients_ < kMaxClients) {
    auto channel = linux::try_accept(options_.listen.get());
    if (!channel) return;
    add_client(std::move(*channel), Origin::outside);
  }
  // Full: stop looking until somebody leaves.
  watch_for_clients(false);
}

void Server::watch_for_clients(bool wanted) {
  if (!options_.listen) return;
  watch(options_.listen.get(), tag_of(Tag::listen), wanted ? EPOLLIN : 0U, /*modify=*/true);
}

Server::Client& Server::add_client(linux::Channel channel, Origin origin) {
  auto client = std::make_unique<Client>();
  client->origin = origin;
  if (origin == Origin::outside) ++outer_clients_;
  if (origin == Origin::sudo) ++sudo_clients_;
  client->id = next_client_++;
  client->channel = std::move(channel);
  watch(client->channel.fd(), tag_of(Tag::client, client->id), EPOLLIN);
  return *clients_.emplace(next_client_ - 1, std::move(client)).first->second;
}

void Server::open_doors() {
  if (options_.doors.empty()) return;  // by another event before this one
  for (const Door& door : options_.doors) unwatch(door.listen.get());
  options_.open_doors(std::exchange(options_.doors, {}), core_);
}

void Server::drop_client(std::uint64_t id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  const pid_t command = found->second->command;
  unwatch(found->second->channel.fd());
  const Origin origin = found->second->origin;
  if (origin == Origin::outside) --outer_clients_;
  if (origin == Origin::sudo) --sudo_clients_;
  clients_.erase(found);
  if (id == keeper_) {
    keeper_ = 0;
    let_go();
  }
  if (const auto running = commands_.find(command); running != commands_.end()) {
    running->second.client = 0;
    kill_tree(proc_.get(), command);
  }
  for (PendingSpawn& pending : pending_) {
    if (pending.client == id) pending.client = 0;
  }
  watch_for_clients(true);
  if (origin == Origin::sudo) watch(options_.sudo_door.get(), tag_of(Tag::sudo), EPOLLIN, true);
}

void Server::read_client(Client& client) {
  const std::uint64_t id = client.id;
  // One message a turn: nobody keeps the loop to himself.
  linux::Message message;
  switch (client.channel.try_receive(message)) {
    case linux::Channel::Arrival::nothing_yet:
      return;
    case linux::Channel::Arrival::hung_up:
      return drop_client(id);
    case linux::Channel::Arrival::message:
      break;
  }
  try {
    handle_request(client, std::move(message));
  } catch (const Error& error) {
    reply(client, Failed{.code = error.code(), .message = error.what()});
  }
}

void Server::handle_request(Client& client, linux::Message message) {
  if (client.origin == Origin::sudo) return handle_sudo(client, std::move(message));
  const Request request = parse_request(message.bytes);
  if (std::holds_alternative<HelloRequest>(request)) {
    return reply(client, Hello{.protocol = kProtocolVersion, .version = HEARTH_VERSION},
                 options_.stage.get());
  }
  if (const auto* signal = std::get_if<SignalRequest>(&request))
    return signal_command(client, *signal);
  const auto* log = std::get_if<LogRequest>(&request);
  if (log != nullptr && log->keep && client.id == keeper_) return note_kept(log->from);
  if (client.command != 0 || client.spawning || client.reading_log || client.follows_ports ||
      client.awaits_end) {
    fail(Code::conflict, "this connection is busy with another request");
  }
  if (const auto* attach = std::get_if<AttachRequest>(&request))
    return start_attached(client, *attach);
  if (std::holds_alternative<EndRequest>(request)) return start_awaiting(client);
  if (log != nullptr) return start_log(client, *log);
  if (const auto* stop = std::get_if<StopRequest>(&request)) return begin_stop(client, *stop);
  if (const auto* file = std::get_if<FileRequest>(&request)) return read_file(client, *file);
  if (const auto* port = std::get_if<ConnectRequest>(&request))
    return connect_to_port(client, *port);
  if (const auto* ports = std::get_if<PortsRequest>(&request)) return start_ports(client, *ports);
  if (const auto* late = std::get_if<ConfigureRequest>(&request))
    return become_somebodys(client, *late);
  begin_exec(client, std::get<ExecRequest>(request), std::move(message.fds));
}

void Server::reply(Client& client, const Reply& reply, int fd) {
  const std::span<const int> fds(&fd, fd < 0 ? 0 : 1);
  // Replies are few and small: a full buffer means a client that stopped reading long ago.
  if (!client.channel.try_send(encode(reply), fds)) fail(Code::unavailable, "client does not read");
}

void Server::signal_command(Client& client, const SignalRequest& request) {
  // A command that has just ended is not the sender's mistake.
  pid_t command = client.command != 0 ? client.command : client.attached;
  if (client.awaits_end) command = main_->pid;
  if (command == 0) return;
  if (request.signal == 0 || request.signal > static_cast<std::uint32_t>(SIGRTMAX)) {
    fail(Code::invalid, "there is no signal {}", request.signal);
  }
  const pid_t target = request.to_group ? -command : command;
  ::kill(target, static_cast<int>(request.signal));
}

void Server::reap_children() {
  signalfd_siginfo came{};
  while (::read(signals_.get(), &came, sizeof came) > 0) {
    if (came.ssi_signo != SIGCHLD) pass_on(static_cast<int>(came.ssi_signo));
  }
  read_spawner();  // so that we know whose ends these are
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (commands_.contains(pid)) {
      command_ended(pid, linux::exit_status_from_wait(status));
    } else if (!pending_.empty()) {
      early_ends_[pid] = linux::exit_status_from_wait(status);
      hurry_spawner();
    }
  }
  if (pending_.empty()) early_ends_.clear();
  finish_stop_if_empty();
}

void Server::command_ended(pid_t pid, linux::ExitStatus status) {
  const auto found = commands_.find(pid);
  const Command command = std::move(found->second);
  commands_.erase(found);
  remembered_ = AwakeDeadline::after(AwakeClock::kKeptAfterEnd);
  consider_restart(command, status);
  const Exited exited{.status = status, .timed_out = command.timed_out};
  if (command.detached) end_attached(command, exited);
  if (command.main) end_main(exited);
  const auto client = clients_.find(command.client);
  if (client == clients_.end()) return;
  client->second->command = 0;
  try {
    reply(*client->second, exited);
  } catch (const Error&) {
    drop_client(command.client);
  }
}

void Server::read_boot() {
  linux::Message message;
  const auto arrival = options_.boot.try_receive(message);
  if (arrival == linux::Channel::Arrival::nothing_yet) return;
  if (arrival == linux::Channel::Arrival::message && message.bytes == kKeep) kept_ = true;
  unwatch(options_.boot.fd());
  options_.boot = linux::Channel();
  done_ = !kept_;
}

void Server::check_deadlines() {
  for (auto& [pid, command] : commands_) {
    if (!command.deadline.passed()) continue;
    command.timed_out = true;
    command.deadline = AwakeDeadline::never();
    kill_tree(proc_.get(), pid);
  }
  if (stop_client_ != 0 && stop_deadline_.passed()) {
    stop_deadline_ = AwakeDeadline::never();
    ::kill(-1, SIGKILL);
  }
  if (held_back_ && keeper_patience_.passed()) drop_client(keeper_);
  start_those_due();
  if (ports_due_.passed()) tell_of_ports();
  if (!pending_.empty() && pending_.front().patience.passed()) {
    spawner_.kill_newborn();
    pending_.front().patience = AwakeDeadline::after(kSpawnPatience);
  }
}

int Server::next_wait_milliseconds() const {
  int wait = pending_.empty() ? -1 : pending_.front().patience.poll_milliseconds();
  const auto no_later_than = [&wait](const AwakeDeadline& deadline) {
    const int left = deadline.poll_milliseconds();
    if (left >= 0 && (wait < 0 || left < wait)) wait = left;
  };
  for (const auto& [pid, command] : commands_) no_later_than(command.deadline);
  for (const auto& lasting : waiting_) no_later_than(lasting->next_start);
  no_later_than(stop_deadline_);
  no_later_than(leave_deadline_);
  no_later_than(ports_due_);
  if (held_back_) no_later_than(keeper_patience_);
  return wait;
}

// How long to wait, so that a pause that comes meanwhile is noticed by whoever counts the time.
int Server::keep_clock(int wait) const {
  AwakeClock& clock = AwakeClock::here();
  if (wait < 0 && (remembered_.is_never() || remembered_.passed())) {
    clock.rest();
    return wait;
  }
  clock.beat();
  constexpr int kBeat = AwakeClock::kBeat / std::chrono::milliseconds(1);
  return wait < 0 ? kBeat : std::min(wait, kBeat);
}

}  // namespace hearth::guest
