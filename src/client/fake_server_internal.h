// A server that does what a test tells it, however wrong; and the fixture of tests that use it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "client/http_client.h"
#include "http/http.h"
#include "net/tls.h"

namespace hearth::client {

// What the server does with one request.
struct FakeAnswer {
  unsigned status = 200;
  std::string body = "{}";
  http::Headers headers = {};
  // Sent in these pieces instead of the body.
  std::vector<std::string> pieces = {};
  enum class Then { end, tear, stay } then = Then::end;
};

// Says what it is told, in order; then the last thing for ever.
class FakeServer {
 public:
  explicit FakeServer(std::optional<net::TlsServerOptions> tls = {});
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer();

  void say(FakeAnswer answer);
  std::vector<http::Request> requests() const;
  http::Request last() const { return requests().back(); }
  std::string url() const;
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A pod of the namespace "a".
std::string pod_text(const std::string& name, int version);

// A client of a FakeServer, and what it did.
class HttpClientTest : public testing::Test {
 protected:
  HttpClient& client() {
    if (access_.server.empty()) access_.server = server_.url();
    options_.pause = [this](Duration time) { pauses_.push_back(time); };
    if (!client_) client_.emplace(access_, options_);
    return *client_;
  }
  model::Status refusal(const std::function<void()>& ask) {
    try {
      ask();
    } catch (const model::StatusError& error) {
      return error.status();
    }
    ADD_FAILURE() << "not refused";
    return {};
  }
  Code failure(const std::function<void()>& ask) {
    try {
      ask();
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "did not fail";
    return Code::internal;
  }
  WatchEnd watch(const WatchOptions& options = {}) {
    return client().watch({"", "v1", "pods"}, options,
                          [this](Event event) { events_.push_back(std::move(event)); }, {});
  }
  std::string target() const { return server_.last().target; }

  FakeServer server_;
  ClusterAccess access_;
  HttpClientOptions options_;
  std::vector<Duration> pauses_;
  std::vector<Event> events_;
  std::optional<HttpClient> client_;
};

}  // namespace hearth::client
