// envd's state and its calls; one source file for each group of them.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "envd/access.h"
#include "envd/connect.h"
#include "envd/messages.h"
#include "guest/core.h"
#include "guest/users.h"
#include "inside/files.h"
#include "inside/process.h"
#include "inside/processes.h"
#include "inside/watchers.h"
#include "serve/exchange.h"

namespace hearth::envd {

// One of so many that there may be at once; false where all are taken.
class Seat {
 public:
  Seat(std::atomic<std::size_t>& taken, std::size_t most)
      : taken_(taken), is_mine_(taken.fetch_add(1) < most) {
    if (!is_mine_) --taken_;
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  ~Seat() {
    if (is_mine_) --taken_;
  }
  explicit operator bool() const { return is_mine_; }

 private:
  std::atomic<std::size_t>& taken_;
  const bool is_mine_;
};

class Service {
 public:
  explicit Service(guest::Core& core);

  // Answers every request, and every error in the dialect of the part it is about.
  void handle(serve::Exchange& exchange);

 private:
  using Rpc = void (Service::*)(serve::Exchange&, const Call&);
  using Rest = void (Service::*)(serve::Exchange&);

  struct RpcRoute;
  struct RestRoute;
  static const RpcRoute* find_rpc(std::string_view path);
  static const RestRoute* find_rest(std::string_view path, std::string_view method);

  void route(serve::Exchange& exchange);
  void run_rpc(serve::Exchange& exchange, const RpcRoute& route);

  // rest.cc
  void get_health(serve::Exchange& exchange);
  void get_metrics(serve::Exchange& exchange);
  void get_envs(serve::Exchange& exchange);
  void post_init(serve::Exchange& exchange);
  void write_ids() const;

  // download.cc, upload.cc
  void get_file(serve::Exchange& exchange);
  void post_files(serve::Exchange& exchange);
  void compose_files(serve::Exchange& exchange);

  // process_rpc.cc
  void start(serve::Exchange& exchange, const Call& call);
  void connect(serve::Exchange& exchange, const Call& call);
  void list(serve::Exchange& exchange, const Call& call);
  void update(serve::Exchange& exchange, const Call& call);
  void send_input(serve::Exchange& exchange, const Call& call);
  void stream_input(serve::Exchange& exchange, const Call& call);
  void send_signal(serve::Exchange& exchange, const Call& call);
  void close_stdin(serve::Exchange& exchange, const Call& call);
  inside::StartOrder make_order(const StartRequest& request, const Call& call) const;
  static void rehearse();
  std::shared_ptr<inside::Process> start_process(inside::StartOrder order);
  std::shared_ptr<inside::Process> select(const std::optional<ProcessSelector>& selector);
  std::shared_ptr<inside::Process> select_running(const std::optional<ProcessSelector>& selector);

  // filesystem_rpc.cc
  void stat(serve::Exchange& exchange, const Call& call);
  void make_dir(serve::Exchange& exchange, const Call& call);
  void move(serve::Exchange& exchange, const Call& call);
  void list_dir(serve::Exchange& exchange, const Call& call);
  void remove(serve::Exchange& exchange, const Call& call);

  // watch_rpc.cc
  void watch_dir(serve::Exchange& exchange, const Call& call);
  void create_watcher(serve::Exchange& exchange, const Call& call);
  void get_watcher_events(serve::Exchange& exchange, const Call& call);
  void remove_watcher(serve::Exchange& exchange, const Call& call);

  // A call's user, and a path as that user means it.
  struct Place {
    guest::User user;
    std::string path;
    inside::Owner owner() const { return {.uid = user.uid, .gid = user.gid}; }
  };
  Place place_of(const std::string& user, const std::string& path) const;
  // The same for the REST part, in its words.
  Place rest_place_of(const std::string& user, const std::string& path) const;

  guest::Core& core_;
  inside::Processes processes_;
  inside::Watchers watchers_;
  std::atomic<std::size_t> streams_ = 0;       // that are open
  std::atomic<std::size_t> compressions_ = 0;  // that are under way
};

// service.cc: what the calls have in common.

// The message of a unary call, or the first of a stream.
std::string receive_message(serve::Exchange& exchange, const Call& call);
template <typename M>
M receive(serve::Exchange& exchange, const Call& call) {
  return decode<M>(call.codec, receive_message(exchange, call));
}

http::Response unary_response(const Call& call, std::string body);
template <typename M>
void answer(serve::Exchange& exchange, const Call& call, const M& message) {
  exchange.respond(unary_response(call, encode(call.codec, message)));
}

void respond_json(serve::Exchange& exchange, unsigned status, std::string json);

EntryInfo entry_info(inside::Entry entry, bool shortened = false);
// The variables of every command: what the sandbox was given, and that it is one.
std::vector<std::pair<std::string, std::string>> sandbox_variables(
    const std::vector<std::string>& environment);

}  // namespace hearth::envd
