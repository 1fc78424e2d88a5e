// The guest's event loop: accepts connections, has commands spawned, reaps everything, keeps logs.
//
// One thread, never blocks on anybody: a client that does not read is cut off, commands are started
// by the spawner's thread. It must be its process's only user of SIGCHLD and wait(2).
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guest/awake.h"
#include "guest/core.h"
#include "guest/log_ring.h"
#include "guest/protocol.h"
#include "guest/server_options.h"
#include "guest/spawner.h"
#include "linux/channel.h"
#include "linux/fd.h"
#include "linux/pidfd.h"

namespace hearth::guest {

class Server {
 public:
  // `core` and `spawner` must outlive the server.
  Server(ServerOptions options, Core& core, Spawner& spawner);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Serves until the boot channel closes too early, or the command of the options has ended. Throws
  // Error only for what makes serving impossible.
  void run();

  // Once run() has returned.
  const Outcome& outcome() const { return outcome_; }

 private:
  enum class Origin : std::uint8_t { outside, surface, sudo };
  struct Client;
  struct Command;
  struct Lasting;
  struct MainCommand;
  struct PendingSpawn;
  struct OutputEnd;

  void handle_event(std::uint64_t tag, std::uint32_t events);
  void accept_clients();
  Client& add_client(linux::Channel channel, Origin origin);
  void accept_sudoers();
  void handle_sudo(Client& client, linux::Message message);
  void begin_sudo(Client& client, const ExecRequest& request, std::vector<linux::Fd> fds);
  void open_doors();
  void read_client(Client& client);
  void handle_request(Client& client, linux::Message message);
  void begin_exec(Client& client, const ExecRequest& request, std::vector<linux::Fd> fds);
  PendingSpawn plan_exec(const ExecRequest& request, std::vector<linux::Fd> fds);
  void enqueue(PendingSpawn pending, std::shared_ptr<Lasting> lasting);
  void watch_for_clients(bool wanted);
  void start_command(ContainerCommand command);
  void pass_on(int signal);
  void stop_everything(std::uint64_t client, Duration grace, bool leave);
  void begin_stop(Client& client, const StopRequest& request);
  void finish_stop_if_empty();
  void leave_when_kept();
  void read_file(Client& client, const FileRequest& request);
  void consider_restart(const Command& command, const linux::ExitStatus& status);
  void start_those_due();
  void start_attached(Client& client, const AttachRequest& request);
  void end_attached(const Command& command, const Exited& exited);
  void finish_attached();
  void start_awaiting(Client& client);
  void end_main(const Exited& exited);
  void drain_outputs(std::optional<std::uint64_t> source);
  static linux::Fd plan_terminal(PendingSpawn& pending, const ExecRequest& request);
  static void plan_detached(PendingSpawn& pending, const ExecRequest& request);
  void start_log(Client& client, const LogRequest& request);
  void pump_log(Client& client);
  static bool say_end_of_log(Client& client);
  void note_kept(std::uint64_t position);
  void signal_command(Client& client, const SignalRequest& request);
  void connect_to_port(Client& client, const ConnectRequest& request);
  void start_ports(Client& client, const PortsRequest& request);
  void tell_of_ports();
  void become_somebodys(Client& client, const ConfigureRequest& request);
  void reply(Client& client, const Reply& reply, int fd = -1);
  void drop_client(std::uint64_t id);
  void spawn_next();
  void hurry_spawner();
  void read_spawner();
  void finish_spawn(PendingSpawn pending, const SpawnResult& result);
  void reap_children();
  void command_ended(pid_t pid, linux::ExitStatus status);
  bool read_output(std::uint64_t id);
  bool must_hold_back() const;
  void hold_back();
  void let_go();
  void feed_log_readers();
  void read_boot();
  void check_deadlines();
  int next_wait_milliseconds() const;
  int keep_clock(int wait) const;
  void watch(int fd, std::uint64_t tag, std::uint32_t events, bool modify = false) const;
  void unwatch(int fd) const;

  ServerOptions options_;
  Core& core_;
  linux::Fd epoll_;
  linux::Fd signals_;
  linux::Fd proc_;
  Spawner& spawner_;
  std::deque<PendingSpawn> pending_;  // the first one is being born
  // Ends that were reaped before the spawner's answer told whose they are.
  std::map<pid_t, linux::ExitStatus> early_ends_;

  std::map<std::uint64_t, std::unique_ptr<Client>> clients_;
  std::uint64_t next_client_ = 1;
  std::size_t outer_clients_ = 0;  // of these
  std::size_t sudo_clients_ = 0;   // and of these
  std::map<pid_t, Command> commands_;
  std::unique_ptr<MainCommand> main_;  // once it was asked for
  bool ends_with_main_ = false;
  std::vector<int> early_signals_;  // for it, once it is born
  Outcome outcome_;
  // What detached commands, and whatever they leave running, write to.
  std::map<std::uint64_t, OutputEnd> outputs_;
  std::uint64_t next_output_ = 1;
  std::uint64_t next_command_ = 1;
  bool attached_end_ = false;  // somebody is to be told, once all output was read
  LogRing log_;
  std::uint64_t keeper_ = 0;  // the client that writes the log down, or 0
  std::uint64_t kept_until_ = 0;
  bool held_back_ = false;  // outputs are not read: the keeper is behind
  AwakeDeadline keeper_patience_ = AwakeDeadline::never();
  std::vector<std::shared_ptr<Lasting>> waiting_;         // to be started again
  std::uint64_t stop_client_ = 0;                         // who wants everything to end
  AwakeDeadline stop_deadline_ = AwakeDeadline::never();  // then what is left is killed
  bool leaves_after_stop_ = false;
  AwakeDeadline leave_deadline_ =
      AwakeDeadline::never();                          // nothing runs any more: so do we, by then
  AwakeDeadline ports_due_ = AwakeDeadline::never();   // to be looked at again
  AwakeDeadline remembered_ = AwakeDeadline::never();  // until then, the last that ended
  bool configured_ = false;
  bool kept_ = false;
  bool done_ = false;
};

}  // namespace hearth::guest
