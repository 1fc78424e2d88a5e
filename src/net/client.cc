#include "net/client.h"

#include <exception>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/error.h"
#include "base/guarded.h"

namespace hearth::net {
namespace {

namespace asio = boost::asio;

// An event loop that turns only while a caller waits in it, and a connection on it.
struct Unit {
  Unit(const Endpoint& endpoint, ClientOptions options) : client(endpoint, options) {}

  asio::io_context io{1};
  AsyncClient client;
};

}  // namespace

struct Client::State {
  Endpoint endpoint;
  ClientOptions options;
  Guarded<std::vector<std::unique_ptr<Unit>>> idle;
};

Client::Client(Endpoint endpoint, ClientOptions options) : state_(std::make_unique<State>()) {
  state_->endpoint = std::move(endpoint);
  state_->options = options;
}

Client::~Client() = default;

Response Client::fetch(Request request, FetchOptions options) {
  return run([&](AsyncClient& client) { return client.fetch(std::move(request), options); }, {});
}

Response Client::fetch_into(Request request, BodyReceiver receiver, FetchOptions options,
                            const std::stop_token& stop) {
  return run(
      [&](AsyncClient& client) {
        return client.fetch_into(std::move(request), std::move(receiver), options);
      },
      stop);
}

Response Client::run(const std::function<asio::awaitable<Response>(AsyncClient&)>& begin,
                     const std::stop_token& stop) {
  auto unit = state_->idle.with([](auto& idle) -> std::unique_ptr<Unit> {
    if (idle.empty()) return nullptr;
    auto last = std::move(idle.back());
    idle.pop_back();
    return last;
  });
  if (!unit) {
    ClientOptions one = state_->options;
    one.idle_connections = 1;
    unit = std::make_unique<Unit>(state_->endpoint, one);
  }

  bool is_done = false;
  std::exception_ptr failure;
  Response response;
  unit->io.restart();
  asio::co_spawn(unit->io, begin(unit->client), [&](std::exception_ptr thrown, Response got) {
    failure = std::move(thrown);
    response = std::move(got);
    is_done = true;
  });
  // Not run(): a watchdog's timer may still be ticking when the answer is here.
  {
    // The post is there to wake the loop.
    const std::stop_callback wake(stop, [&] { asio::post(unit->io, [] {}); });
    while (!is_done && !stop.stop_requested()) unit->io.run_one();
  }
  // What is under way goes with its loop.
  if (!is_done) fail(Code::unavailable, "asking {} was called off", state_->endpoint.text());

  state_->idle.with([&](auto& idle) {
    if (idle.size() < state_->options.idle_connections) idle.push_back(std::move(unit));
  });
  if (failure) std::rethrow_exception(failure);
  return response;
}

}  // namespace hearth::net
