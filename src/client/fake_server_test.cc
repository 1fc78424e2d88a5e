#include <algorithm>

#include <boost/asio/awaitable.hpp>

#include "base/guarded.h"
#include "client/fake_server_internal.h"
#include "net/server.h"
#include "net/stream.h"

namespace hearth::client {

namespace asio = boost::asio;

struct FakeServer::State {
  asio::awaitable<void> serve(http::Request request, net::Stream& stream) {
    request.body = co_await stream.read_all(1 << 20);
    const std::size_t index = requests.with([&](auto& all) {
      all.push_back(std::move(request));
      return all.size() - 1;
    });
    const FakeAnswer answer = answers.with([&](auto& all) {
      return all.empty() ? FakeAnswer{} : all[std::min(index, all.size() - 1)];
    });
    http::Response response{.status = answer.status, .headers = answer.headers};
    if (answer.pieces.empty() && answer.then == FakeAnswer::Then::end) {
      response.body = answer.body;
      co_await stream.respond(std::move(response));
      co_return;
    }
    co_await stream.write_head(std::move(response));
    for (const std::string& piece : answer.pieces) co_await stream.write(piece);
    if (answer.then == FakeAnswer::Then::tear) fail(Code::internal, "torn");
    if (answer.then == FakeAnswer::Then::stay) co_await stream.wait_disconnect();
  }

  bool is_tls = false;
  Guarded<std::vector<FakeAnswer>> answers;
  Guarded<std::vector<http::Request>> requests;
  std::optional<net::Server> server;
};

FakeServer::FakeServer(std::optional<net::TlsServerOptions> tls)
    : state_(std::make_unique<State>()) {
  state_->is_tls = tls.has_value();
  net::Router router;
  router.add_stream("*", "/{rest...}", std::bind_front(&State::serve, state_.get()));
  net::ServerOptions options;
  options.tls = std::move(tls);
  state_->server.emplace(std::move(options), std::move(router));
  state_->server->start();
}

FakeServer::~FakeServer() = default;

void FakeServer::say(FakeAnswer answer) {
  state_->answers.with([&](auto& all) { all.push_back(std::move(answer)); });
}

std::vector<http::Request> FakeServer::requests() const {
  return state_->requests.with([](const auto& all) { return all; });
}

std::string FakeServer::url() const {
  return fmt::format("http{}://127.0.0.1:{}", state_->is_tls ? "s" : "", state_->server->port());
}

void FakeServer::stop() {
  state_->server->stop();
}

std::string pod_text(const std::string& name, int version) {
  return fmt::format(R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}",)"
                     R"("namespace":"a","uid":"u-{}","resourceVersion":"{}"}}}})",
                     name, name, version);
}

}  // namespace hearth::client
