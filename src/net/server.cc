#include "net/server.h"

#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "base/thread_name.h"
#include "net/connection_internal.h"
#include "net/listener_internal.h"
#include "net/socket_stream_internal.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;

// After accept(2) failed for lack of descriptors or memory: long enough for some to come free.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
    "Connection: close\r\n\r\n";

// A connection as its thread keeps it, from accept to close.
struct Session {
  Connection* connection = nullptr;  // null while TLS shakes hands, and at the end
  asio::cancellation_signal cancel;
};

// Lets a session know its connection for exactly as long as there is one: the session itself ends
// a little later.
class Known {
 public:
  Known(Session& session, Connection& connection) : session_(session) {
    session_.connection = &connection;
  }
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;
  ~Known() { session_.connection = nullptr; }

 private:
  Session& session_;
};

}  // namespace

struct Server::State {
  // One thread and what lives on it.
  struct Loop {
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> guard{io.get_executor()};
    std::list<Session> sessions;  // only on the loop's thread
    bool draining = false;        // the same
    std::jthread thread;
  };

  State(ServerOptions given, Router given_router);

  void listen();
  void begin(Socket socket, Loop& loop);
  asio::awaitable<void> accept_forever();
  asio::awaitable<void> serve(Socket socket, Loop& loop, std::list<Session>::iterator session);
  void drain(Loop& loop);
  static void cut(Loop& loop);
  void ended();

  const ServerOptions options;
  const Router router;
  std::shared_ptr<TlsContext> tls;

  std::vector<std::unique_ptr<Loop>> loops;
  std::optional<UnixPath> unix_path;
  std::optional<Acceptor> acceptor;  // only on the first loop's thread
  std::uint16_t port = 0;
  std::size_t next_loop = 0;

  std::atomic<std::size_t> open = 0;
  std::mutex mutex;  // guards nothing but the wait for open == 0
  std::condition_variable all_ended;
  bool running = false;  // between start() and stop()
};

Server::State::State(ServerOptions given, Router given_router)
    : options(std::move(given)), router(std::move(given_router)) {
  if (options.tls) tls = make_tls_context(*options.tls);
}

void Server::State::listen() {
  asio::io_context& io = loops.front()->io;
  if (options.listen_fd >= 0) {
    acceptor.emplace(adopt_listener(io, options.listen_fd));
  } else if (!options.unix_path.empty()) {
    unix_path.emplace(options.unix_path);
    acceptor.emplace(unix_path->listen(io));
  } else {
    acceptor.emplace(listen_tcp(io, options.address, options.port));
  }
  port = port_of(*acceptor);
}

asio::awaitable<void> Server::State::accept_forever() {
  const auto token = asio::as_tuple(asio::use_awaitable);
  asio::steady_timer pause(loops.front()->io);
  while (acceptor->is_open()) {
    Loop& loop = *loops[next_loop++ % loops.size()];
    auto [error, socket] = co_await acceptor->async_accept(loop.io, token);
    if (error == asio::error::operation_aborted || !acceptor->is_open()) co_return;
    if (error) {
      log::debug("accept failed", {{"error", error.message()}});
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(token);
    } else if (open.load() >= options.max_connections) {
      // Best effort, without waiting: a peer that has to be told slowly is not told.
      if (!tls)
        ::send(socket.native_handle(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      ++open;
      begin(std::move(socket), loop);
    }
  }
}

void Server::State::begin(Socket socket, Loop& loop) {
  auto shared = std::make_shared<Socket>(std::move(socket));
  asio::post(loop.io, [this, shared, &loop] {
    if (loop.draining) {
      ended();
      return;
    }
    const auto session = loop.sessions.emplace(loop.sessions.end());
    auto done = [this, &loop, session](const std::exception_ptr&) {
      // Not destroyed before the coroutine is, which still knows the cancellation slot.
      auto last = std::make_shared<std::list<Session>>();
      last->splice(last->end(), loop.sessions, session);
      asio::post(loop.io, [last] {});
      ended();
    };
    asio::co_spawn(loop.io, serve(std::move(*shared), loop, session),
                   asio::bind_cancellation_slot(session->cancel.slot(), std::move(done)));
  });
}

asio::awaitable<void> Server::State::serve(Socket socket, Loop& loop,
                                           std::list<Session>::iterator session) {
  std::unique_ptr<ByteStream> stream;
  if (tls) {
    stream = co_await accept_tls(std::move(socket), tls, options.timeouts.handshake);
    if (!stream) co_return;
  } else {
    stream = make_socket_stream(std::move(socket));
  }
  Connection connection(*stream, router, options.limits, options.timeouts);
  const Known known(*session, connection);
  if (loop.draining) connection.drain();
  co_await connection.serve();
}

void Server::State::drain(Loop& loop) {
  loop.draining = true;
  if (&loop == loops.front().get()) acceptor->close();
  for (auto next = loop.sessions.begin(); next != loop.sessions.end();) {
    Session& session = *next++;
    if (session.connection != nullptr) {
      session.connection->drain();
    } else {
      session.cancel.emit(asio::cancellation_type::terminal);
    }
  }
}

void Server::State::cut(Loop& loop) {
  for (auto next = loop.sessions.begin(); next != loop.sessions.end();) {
    Session& session = *next++;
    if (session.connection != nullptr) session.connection->cut();
    session.cancel.emit(asio::cancellation_type::terminal);
  }
}

void Server::State::ended() {
  if (--open > 0) return;
  {
    const std::lock_guard lock(mutex);
  }
  all_ended.notify_all();
}

Server::Server(ServerOptions options, Router router)
    : state_(std::make_unique<State>(std::move(options), std::move(router))) {}

Server::~Server() {
  stop();
}

void Server::start() {
  State& state = *state_;
  HEARTH_ASSERT(state.loops.empty());
  OnFailure undo([&state] {
    state.acceptor.reset();
    state.unix_path.reset();
    state.loops.clear();
  });
  const unsigned threads = std::max(1U, state.options.threads);
  for (unsigned i = 0; i < threads; ++i) state.loops.push_back(std::make_unique<State::Loop>());
  state.listen();
  asio::co_spawn(state.loops.front()->io, state.accept_forever(), [](const std::exception_ptr&) {});
  for (auto& loop : state.loops) {
    loop->thread = std::jthread([&io = loop->io] {
      name_thread("http");
      io.run();
    });
  }
  state.running = true;
  undo.release();
}

void Server::stop(Duration grace) {
  State& state = *state_;
  if (!std::exchange(state.running, false)) return;
  // Shared: the last to count down may still be in it when we are through.
  const auto drained =
      std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(state.loops.size()));
  for (auto& loop : state.loops) {
    asio::post(loop->io, [&state, drained, each = loop.get()] {
      state.drain(*each);
      drained->count_down();
    });
  }
  drained->wait();  // from here on no connection begins
  std::unique_lock lock(state.mutex);
  const auto is_over = [&state] { return state.open.load() == 0; };
  state.all_ended.wait_for(lock, grace, is_over);
  for (auto& loop : state.loops) {
    asio::post(loop->io, [each = loop.get()] { State::cut(*each); });
  }
  state.all_ended.wait(lock, is_over);
  lock.unlock();
  for (auto& loop : state.loops) loop->guard.reset();
  for (auto& loop : state.loops) loop->thread.join();
  state.acceptor.reset();
  state.unix_path.reset();
}

std::uint16_t Server::port() const {
  return state_->port;
}

std::size_t Server::connections() const {
  return state_->open.load();
}

}  // namespace hearth::net
