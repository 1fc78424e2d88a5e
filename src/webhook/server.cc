#include "webhook/server.h"

#include <functional>
#include <optional>
#include <semaphore>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/error.h"
#include "net/server.h"
#include "net/stream.h"
#include "net/workers.h"
#include "webhook/review.h"

namespace hearth::webhook {
namespace {

// kube-apiserver has a connection for each review that is under way, and keeps some of them.
constexpr std::size_t kMostConnections = 256;
// Most reviews are of one object. Lists come in one review with all of their objects, and a large
// one costs several times its size while it is converted: few at once, so that connections times
// sizes fit into the memory of a small pod.
constexpr std::uint64_t kSmallBytes = 1 << 20;
constexpr std::uint64_t kMostBytes = 32 << 20;
constexpr std::ptrdiff_t kMostLarge = 4;
constexpr unsigned kWorkers = 2;
constexpr Duration kGrace = std::chrono::seconds(5);

// Room for a large review, or none; given back at the end.
class LargeTurn {
 public:
  explicit LargeTurn(std::counting_semaphore<kMostLarge>& turns)
      : turns_(turns.try_acquire() ? &turns : nullptr) {}
  LargeTurn(const LargeTurn&) = delete;
  LargeTurn& operator=(const LargeTurn&) = delete;
  ~LargeTurn() {
    if (turns_ != nullptr) turns_->release();
  }
  explicit operator bool() const { return turns_ != nullptr; }

 private:
  std::counting_semaphore<kMostLarge>* turns_;
};

// A body that does not say how long it is may be of any length.
bool is_large(const net::Request& request) {
  const auto length = net::parse_number(request.headers.value("Content-Length"));
  return !length || *length > kSmallBytes;
}

net::Response busy() {
  net::Response response = net::text_response(503, "too many large reviews at once\n");
  // With it kube-apiserver asks again by itself.
  response.headers.set("Retry-After", "1");
  return response;
}

}  // namespace

struct Server::State {
  explicit State(linux::Fd listening) : socket(std::move(listening)) {}

  net::Router router() {
    net::Router router;
    router.add_stream("POST", kPath, std::bind_front(&State::convert, this),
                      {.max_body_bytes = kMostBytes});
    return router;
  }

  boost::asio::awaitable<void> convert(net::Request request, net::Stream& stream) {
    std::optional<LargeTurn> turn;
    if (is_large(request) && !turn.emplace(large)) {
      co_await stream.respond(busy());
      co_return;
    }
    const std::string body = co_await stream.read_all(kMostBytes);
    std::function<std::string()> work = [&body] { return answer_review(body); };
    std::string answer = co_await workers.run(std::move(work));
    net::Response response = net::json_response(200, std::move(answer));
    co_await stream.respond(std::move(response));
  }

  linux::Fd socket;
  std::counting_semaphore<kMostLarge> large{kMostLarge};
  net::Workers workers{kWorkers, kMostConnections};
  std::optional<net::Server> server;
};

Server::Server(linux::Fd socket) : state_(std::make_unique<State>(std::move(socket))) {}

Server::~Server() {
  if (state_->server) state_->server->stop(kGrace);
}

void Server::serve(const pki::Identity& identity) {
  net::ServerOptions options;
  options.tls.emplace();
  options.tls->certificate.text = identity.certificate;
  options.tls->key.text = identity.key;
  options.max_connections = kMostConnections;
  net::make_tls_context(*options.tls);  // throws while the one before still serves
  // Who comes between the two waits in the socket's queue.
  options.listen_fd = linux::duplicate(state_->socket.get()).release();
  if (state_->server) state_->server->stop(kGrace);
  state_->server.emplace(std::move(options), state_->router());
  state_->server->start();
}

}  // namespace hearth::webhook
