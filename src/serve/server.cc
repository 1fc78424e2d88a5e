#include "serve/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/thread_name.h"

namespace hearth::serve {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock::time_point;

// Handlers keep what is large on the heap; the rest of this is never touched.
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

// What a handler takes of its stack before it does anything of its own.
constexpr std::size_t kUsualStack = std::size_t{12} << 10;

// Whoever is served first shall not wait for the pages.
void touch_stack() {
  constexpr std::size_t kPage = 4096;
  std::array<volatile char, kUsualStack> room;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (std::size_t i = 0; i < room.size(); i += kPage) room[i] = 0;
}

// What an event is about: an entrance's place, the stop bell, or a connection's id.
constexpr std::uint64_t kStop = 0xFFFF;
constexpr std::uint64_t kFirstConnection = 0x10000;

unsigned status_of(const Error& error) {
  const auto* bad = dynamic_cast<const BadHead*>(&error);
  return bad != nullptr ? bad->status() : http::status_from_code(error.code());
}

void answer_error(Exchange& exchange, const Error& error) {
  exchange.abandon();
  if (exchange.begun()) return;
  exchange.respond(http::render_json_problem(
      {.status = status_of(error), .code = error.code(), .message = error.what()}));
}

}  // namespace

class Server::State {
 public:
  State(std::vector<Entrance> entrances, ServerOptions options)
      : entrances_(std::move(entrances)), options_(options) {
    epoll_ = linux::Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) throw_errno("make an epoll");
    bell_ = linux::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell_) throw_errno("make an eventfd");
    add(bell_.get(), kStop, EPOLLIN);
    for (std::size_t i = 0; i < entrances_.size(); ++i)
      add(entrances_[i].listen.get(), i, EPOLLIN | EPOLLEXCLUSIVE);
    const std::lock_guard lock(mutex_);
    if (!start_thread()) fail(Code::exhausted, "no thread can be started to serve");
  }

  void stop() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = ::write(bell_.get(), &one, sizeof one);
    for (auto& [id, connection] : connections_) ::shutdown(connection.wire.fd(), SHUT_RDWR);
    all_gone_.wait(lock, [this] { return threads_ == 0; });
  }

 private:
  struct Connection {
    Connection(linux::Fd socket, const Patience& patience, const Handler& its_handler)
        : wire(std::move(socket), patience), handler(its_handler) {}
    Wire wire;
    const Handler& handler;
    bool busy = false;
    SteadyTime idle_since = std::chrono::steady_clock::now();
  };

  void add(int fd, std::uint64_t tag, std::uint32_t events) const {
    epoll_event event{.events = events, .data = {.u64 = tag}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      throw_errno("watch a connection");
  }

  // With the lock held.
  bool start_thread() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const auto work = [](void* self) -> void* {
      static_cast<State*>(self)->work();
      return nullptr;
    };
    const int error = pthread_create(&thread, &attributes, work, this);
    pthread_attr_destroy(&attributes);
    if (error != 0) return false;
    ++threads_;
    ++waiting_;
    return true;
  }

  void work() {
    name_thread("serve");
    // Signals are others' business; a peer that left is an error of write(2) and no signal.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    touch_stack();
    while (const auto tag = wait()) {
      if (*tag < entrances_.size()) {
        let_in(entrances_[*tag]);
      } else {
        rest(*tag, serve(*tag));
      }
    }
    const std::lock_guard lock(mutex_);
    if (--threads_ == 0) all_gone_.notify_all();
  }

  // The next event, or nothing when this thread is to end.
  std::optional<std::uint64_t> wait() {
    while (true) {
      epoll_event event{};
      const int count = ::epoll_wait(epoll_.get(), &event, 1, wait_milliseconds_);
      const std::lock_guard lock(mutex_);
      if (stopping_ || (count == 0 && waiting_ > needed_waiters())) {
        --waiting_;
        return std::nullopt;
      }
      if (count == 0) close_stale();
      if (count <= 0) continue;
      const std::uint64_t tag = event.data.u64;  // in a packed struct: nothing may refer to it
      // Letting somebody in takes no time; what is asked may take any.
      if (tag < entrances_.size()) return tag;
      if (--waiting_ == 0 && threads_ < options_.threads) start_thread();
      return tag;
    }
  }

  // Whoever came in will ask for something, and shall not wait for a thread to be made then: one
  // takes it, and the other stays for the next. With the lock held.
  std::size_t needed_waiters() const { return connections_.empty() ? 1 : 2; }

  void let_in(const Entrance& entrance) {
    try {
      accept_from(entrance);
    } catch (const Error&) {  // of one who is gone again
    }
    {
      const std::lock_guard lock(mutex_);
      if (waiting_ < needed_waiters() && threads_ < options_.threads) start_thread();
    }
    // Another thread waits for what the client wants meanwhile.
    if (entrance.rehearsal && !is_rehearsed_.exchange(true)) rehearse(entrance);
  }

  void rehearse(const Entrance& entrance) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
      return;
    const linux::Fd nobody(ends[0]);
    Connection connection(linux::Fd(ends[1]), options_.patience, entrance.handler);
    try {
      const std::string request = entrance.rehearsal();
      if (std::cmp_equal(::send(nobody.get(), request.data(), request.size(), MSG_NOSIGNAL),
                         request.size()))
        serve_one(connection);
    } catch (const Error&) {
      // Whoever asks for the same is told why.
    }
  }

  void accept_from(const Entrance& entrance) {
    while (true) {
      linux::Fd socket(
          ::accept4(entrance.listen.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;  // taken by another thread, or gone again
      const int on = 1;     // fails for what is no TCP, and does not matter there
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      const int fd = socket.get();
      const std::lock_guard lock(mutex_);
      if (stopping_ || (connections_.size() >= options_.connections && !close_oldest())) continue;
      const std::uint64_t id = next_id_++;
      connections_.try_emplace(id, std::move(socket), options_.patience, entrance.handler);
      add(fd, id, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT);
    }
  }

  Connection* take(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(id);
    if (found == connections_.end()) return nullptr;
    found->second.busy = true;
    return &found->second;
  }

  // Whether it goes on.
  bool serve(std::uint64_t id) {
    Connection* connection = take(id);
    if (connection == nullptr) return false;
    try {
      do {
        if (!serve_one(*connection)) return false;
      } while (!connection->wire.unread().empty());
      connection->wire.rest();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // In this order: what comes on it next may be another thread's, who must not think that nobody is
  // left to wait.
  void rest(std::uint64_t id, bool goes_on) {
    const std::lock_guard lock(mutex_);
    ++waiting_;
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    connection.busy = false;
    connection.idle_since = std::chrono::steady_clock::now();
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = id}};
    if (!goes_on || ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.wire.fd(), &event) != 0)
      connections_.erase(found);
  }

  // Whether the connection can carry another request.
  bool serve_one(Connection& connection) {
    try {
      auto head = connection.wire.read_head();
      if (!head) return false;
      Exchange exchange(connection.wire, std::move(*head), &allowance_);
      handle(connection.handler, exchange);
      return exchange.finish();
    } catch (const BadHead& bad) {
      Exchange exchange(connection.wire, http::Head{.method = "GET", .target = "/"});
      answer_error(exchange, bad);
      return false;
    }
  }

  static void handle(const Handler& handler, Exchange& exchange) {
    try {
      handler(exchange);
      if (!exchange.begun()) fail(Code::internal, "the request was not answered");
    } catch (const Error& error) {
      answer_error(exchange, error);
    } catch (const std::exception&) {
      answer_error(exchange, Error(Code::internal, "something went wrong inside the guest"));
    }
  }

  // With the lock held, all of these.
  bool close_oldest() {
    const auto none = connections_.end();
    auto oldest = none;
    for (auto at = connections_.begin(); at != none; ++at) {
      if (!at->second.busy && (oldest == none || at->second.idle_since < oldest->second.idle_since))
        oldest = at;
    }
    if (oldest == none) return false;
    connections_.erase(oldest);
    return true;
  }

  void close_stale() {
    const SteadyTime limit = std::chrono::steady_clock::now() - options_.patience.idle;
    std::erase_if(connections_, [&](const auto& each) {
      return !each.second.busy && each.second.idle_since < limit;
    });
  }

  const std::vector<Entrance> entrances_;
  const ServerOptions options_;
  Allowance allowance_{options_.bodies};
  const int wait_milliseconds_ =
      static_cast<int>(options_.thread_patience / std::chrono::milliseconds(1));
  std::atomic<bool> is_rehearsed_ = false;
  linux::Fd epoll_;
  linux::Fd bell_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable all_gone_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t next_id_ = kFirstConnection;
  std::size_t threads_ = 0;
  std::size_t waiting_ = 0;  // of these
  bool stopping_ = false;
};

Server::Server(std::vector<Entrance> entrances, ServerOptions options)
    : state_(std::make_unique<State>(std::move(entrances), options)) {}

Server::~Server() {
  state_->stop();
}

}  // namespace hearth::serve
