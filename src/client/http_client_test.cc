#include "client/http_client.h"

#include <algorithm>
#include <functional>
#include <future>
#include <latch>
#include <optional>

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/guarded.h"
#include "client/testing_internal.h"
#include "client/watch_cache.h"
#include "net/server.h"
#include "net/stream.h"

namespace hearth::client {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

const ResourceId kPods{"", "v1", "pods"};
const ResourceId kNodes{"", "v1", "nodes", /*namespaced=*/false};

// What the server does with one request.
struct Answer {
  unsigned status = 200;
  std::string body = "{}";
  http::Headers headers = {};
  // Sent in these pieces instead of the body.
  std::vector<std::string> pieces = {};
  enum class Then { end, tear, stay } then = Then::end;
};

std::string pod_text(const std::string& name, int version) {
  return fmt::format(R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}",)"
                     R"("namespace":"a","uid":"u-{}","resourceVersion":"{}"}}}})",
                     name, name, version);
}

std::string line(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

std::string bookmark(int version, bool is_initial_end = false) {
  return line(
      "BOOKMARK",
      fmt::format(R"({{"kind":"Pod","metadata":{{"resourceVersion":"{}"{}}}}})", version,
                  is_initial_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : ""));
}

const std::string kExpired =
    line("ERROR", R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})");

// Says what it is told, in order; then the last thing for ever.
class FakeServer {
 public:
  explicit FakeServer(std::optional<net::TlsServerOptions> tls = {}) : is_tls_(tls.has_value()) {
    net::Router router;
    router.add_stream("*", "/{rest...}", std::bind_front(&FakeServer::serve, this));
    net::ServerOptions options;
    options.tls = std::move(tls);
    server_.emplace(std::move(options), std::move(router));
    server_->start();
  }

  void say(Answer answer) {
    answers_.with([&](auto& all) { all.push_back(std::move(answer)); });
  }
  std::vector<http::Request> requests() const {
    return requests_.with([](const auto& all) { return all; });
  }
  http::Request last() const { return requests().back(); }
  std::string url() const {
    return fmt::format("http{}://127.0.0.1:{}", is_tls_ ? "s" : "", server_->port());
  }
  void stop() { server_->stop(); }

 private:
  asio::awaitable<void> serve(http::Request request, net::Stream& stream) {
    request.body = co_await stream.read_all(1 << 20);
    const std::size_t index = requests_.with([&](auto& all) {
      all.push_back(std::move(request));
      return all.size() - 1;
    });
    const Answer answer = answers_.with(
        [&](auto& all) { return all.empty() ? Answer{} : all[std::min(index, all.size() - 1)]; });
    http::Response response{.status = answer.status, .headers = answer.headers};
    if (answer.pieces.empty() && answer.then == Answer::Then::end) {
      response.body = answer.body;
      co_await stream.respond(std::move(response));
      co_return;
    }
    co_await stream.write_head(std::move(response));
    for (const std::string& piece : answer.pieces) co_await stream.write(piece);
    if (answer.then == Answer::Then::tear) fail(Code::internal, "torn");
    if (answer.then == Answer::Then::stay) co_await stream.wait_disconnect();
  }

  bool is_tls_;
  Guarded<std::vector<Answer>> answers_;
  Guarded<std::vector<http::Request>> requests_;
  std::optional<net::Server> server_;
};

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
    return client().watch(kPods, options,
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

TEST_F(HttpClientTest, AsksInTheWordsOfTheApi) {
  access_.server = server_.url() + "/base/";
  access_.token = "secret";
  access_.as = "other";
  access_.as_groups = {"a", "b"};
  server_.say({.body = pod_text("x", 1)});

  EXPECT_EQ(model::text_at(client().get(kPods, "a", "x"), {"metadata", "name"}), "x");

  const http::Request request = server_.last();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/base/api/v1/namespaces/a/pods/x");
  EXPECT_EQ(request.headers.value("Authorization"), "Bearer secret");
  EXPECT_EQ(request.headers.value("User-Agent"), "hearth/" HEARTH_VERSION);
  EXPECT_EQ(request.headers.value("Accept"), "application/json");
  EXPECT_EQ(request.headers.value("Impersonate-User"), "other");
  EXPECT_EQ(std::ranges::count(request.headers, "Impersonate-Group", &http::Field::name), 2);
}

TEST_F(HttpClientTest, Writes) {
  const Json pod = model::parse_json(pod_text("x", 1)).value;

  client().create(kPods, pod, {});
  EXPECT_EQ(server_.last().method, "POST");
  EXPECT_EQ(target(), "/api/v1/namespaces/a/pods?fieldManager=hearth");
  EXPECT_EQ(server_.last().body, model::to_text(pod));
  EXPECT_EQ(server_.last().headers.value("Content-Type"), "application/json");

  client().update(kPods, pod, "status", {.manager = "me", .dry_run = true});
  EXPECT_EQ(server_.last().method, "PUT");
  EXPECT_EQ(target(), "/api/v1/namespaces/a/pods/x/status?fieldManager=me&dryRun=All");

  client().patch(kPods, "a", "x", PatchKind::apply, pod, {.force = true});
  EXPECT_EQ(server_.last().method, "PATCH");
  EXPECT_EQ(target(), "/api/v1/namespaces/a/pods/x?fieldManager=hearth&force=true");
  EXPECT_EQ(server_.last().headers.value("Content-Type"), "application/apply-patch+yaml");

  client().remove(kPods, "a", "x", {.propagation = "Foreground"});
  EXPECT_EQ(server_.last().method, "DELETE");
  EXPECT_NE(server_.last().body.find("Foreground"), std::string::npos);

  client().post(kPods, "a", "x", "eviction", model::JsonObject{});
  EXPECT_EQ(target(), "/api/v1/namespaces/a/pods/x/eviction");

  client().create(kNodes, model::JsonObject{}, {});
  EXPECT_EQ(target(), "/api/v1/nodes?fieldManager=hearth");
}

TEST_F(HttpClientTest, AnEmptyNameIsNotTheNameOfACollection) {
  EXPECT_EQ(failure([&] { client().get(kPods, "a", ""); }), Code::invalid);
  EXPECT_EQ(failure([&] { client().get(kPods, "", "x"); }), Code::invalid);
  EXPECT_EQ(failure([&] { client().remove(kNodes, "", "", {}); }), Code::invalid);
  EXPECT_EQ(failure([&] { client().update(kNodes, model::JsonObject{}, "", {}); }), Code::invalid);
  EXPECT_EQ(failure([&] { client().create(kPods, model::JsonObject{}, {}); }), Code::invalid);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(HttpClientTest, Lists) {
  server_.say({.body = R"({"kind":"PodList","metadata":{"resourceVersion":"9","continue":"n"},)"
                       R"("items":[{"metadata":{"name":"x"}}]})"});
  server_.say({.body = R"({"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{}]})"});

  const List all = client().list_all(kPods, {.label_selector = "a=b"});

  EXPECT_EQ(all.items.size(), 2U);
  EXPECT_EQ(model::text_at(all.items[0], {"kind"}), "Pod");
  EXPECT_EQ(server_.requests()[0].target, "/api/v1/pods?labelSelector=a%3Db&limit=500");
  EXPECT_EQ(target(), "/api/v1/pods?labelSelector=a%3Db&limit=500&continue=n");
}

TEST_F(HttpClientTest, ARefusalIsAStatus) {
  server_.say({.status = 409,
               .body = R"({"kind":"Status","code":409,"reason":"AlreadyExists",)"
                       R"("message":"pods \"x\" already exists"})"});
  const model::Status status = refusal([&] { client().get(kPods, "a", "x"); });
  EXPECT_EQ(status.code, 409U);
  EXPECT_EQ(status.reason, "AlreadyExists");
  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::already_exists);
}

TEST_F(HttpClientTest, AProxysPageBecomesAStatus) {
  server_.say({.status = 404, .body = "404 page not found\n"});
  server_.say({.status = 502, .body = std::string(5000, 'x')});
  server_.say({.status = 302, .body = ""});
  EXPECT_FALSE(client().find(kPods, "a", "x"));
  const model::Status status = refusal([&] { client().get(kPods, "a", "x"); });
  EXPECT_EQ(status.code, 502U);
  EXPECT_EQ(status.reason, "BadGateway");
  EXPECT_LT(status.message.size(), 700U);
  EXPECT_EQ(refusal([&] { client().get(kPods, "a", "x"); }).code, 302U);
}

TEST_F(HttpClientTest, AnAnswerThatIsNoJsonIsInvalid) {
  server_.say({.body = "<html>"});
  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::invalid);
}

TEST_F(HttpClientTest, AnAnswerThatIsTooLongIsRefused) {
  options_.most_body_bytes = 100;
  server_.say({.body = std::string(101, ' ')});
  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::exhausted);
}

TEST_F(HttpClientTest, TriesAgainWhenTheServerSaysSo) {
  server_.say({.status = 429, .headers = {{"Retry-After", "2"}}});
  server_.say({.status = 503, .headers = {{"Retry-After", "1"}}});
  server_.say({.body = pod_text("x", 1)});

  client().create(kPods, model::parse_json(pod_text("x", 1)).value, {});

  EXPECT_EQ(server_.requests().size(), 3U);
  ASSERT_EQ(pauses_.size(), 2U);
  EXPECT_GT(pauses_[0], 2s);
  EXPECT_GT(pauses_[1], 1s);
  EXPECT_LT(pauses_[1], 2s);
}

TEST_F(HttpClientTest, DoesNotTryAgainUnasked) {
  server_.say({.status = 500});
  EXPECT_EQ(refusal([&] { client().get(kPods, "a", "x"); }).code, 500U);
  EXPECT_EQ(server_.requests().size(), 1U);
  server_.say({.status = 429});
  server_.say({.status = 429, .headers = {{"Retry-After", "tomorrow"}}});
  EXPECT_EQ(refusal([&] { client().get(kPods, "a", "x"); }).code, 429U);
  EXPECT_EQ(refusal([&] { client().get(kPods, "a", "x"); }).code, 429U);
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(HttpClientTest, GivesUpAtLast) {
  options_.tries = 3;
  server_.say({.status = 429, .headers = {{"Retry-After", "0"}}});
  EXPECT_EQ(refusal([&] { client().get(kPods, "a", "x"); }).code, 429U);
  EXPECT_EQ(server_.requests().size(), 3U);
}

TEST_F(HttpClientTest, DoesNotWaitPastItsDeadline) {
  server_.say({.status = 503, .headers = {{"Retry-After", "3600"}}});
  const model::Status status = refusal([&] { client().get(kPods, "a", "x"); });
  EXPECT_EQ(status.code, 503U);
  EXPECT_EQ(status.retry_after_seconds, 3600);
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(HttpClientTest, AFailedConnectionIsTriedAgainForWhatCanBeAskedTwice) {
  options_.tries = 3;
  client();
  server_.stop();

  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::unavailable);
  EXPECT_EQ(pauses_.size(), 2U);
  pauses_.clear();
  const Json pod = model::parse_json(pod_text("x", 1)).value;
  EXPECT_EQ(failure([&] { client().create(kPods, pod, {}); }), Code::unavailable);
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(HttpClientTest, ASilentServerMeetsTheDeadline) {
  options_.timeout = 50ms;
  server_.say({.then = Answer::Then::stay});
  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::timeout);
}

TEST_F(HttpClientTest, ATokenThatRotatedIsReadAfterA401) {
  const TestFolder folder;
  access_.token_file = folder.write("token", "old");
  server_.say({});
  server_.say({.status = 401});
  server_.say({});
  client().get(kPods, "a", "x");
  folder.write("token", "new");

  client().get(kPods, "a", "x");

  EXPECT_EQ(server_.requests().size(), 3U);
  EXPECT_EQ(server_.last().headers.value("Authorization"), "Bearer new");
}

TEST_F(HttpClientTest, A401WithNothingNewIsARefusal) {
  access_.token = "wrong";
  server_.say({.status = 401});
  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::unauthenticated);
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(HttpClientTest, FetchesOtherThings) {
  server_.say({.body = "ok"});
  EXPECT_EQ(client().fetch({.target = "/readyz?verbose"}).body, "ok");
  EXPECT_EQ(target(), "/readyz?verbose");
}

TEST_F(HttpClientTest, WatchesLineByLine) {
  const std::string added = line("ADDED", pod_text("x", 1));
  server_.say({.pieces = {added.substr(0, 10), added.substr(10) + "\n" + bookmark(2), "{\"half"}});

  EXPECT_EQ(watch({.ns = "a", .resource_version = "0"}), WatchEnd::closed);

  EXPECT_EQ(target(),
            "/api/v1/namespaces/a/pods?watch=true&resourceVersion=0&"
            "allowWatchBookmarks=true&timeoutSeconds=300");
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[0].kind, EventKind::added);
  EXPECT_EQ(events_[1].kind, EventKind::bookmark);
}

TEST_F(HttpClientTest, ATornWatchIsClosed) {
  server_.say({.pieces = {line("ADDED", pod_text("x", 1)), "{\"ty"}, .then = Answer::Then::tear});
  server_.say({.then = Answer::Then::tear});
  EXPECT_EQ(watch(), WatchEnd::closed);
  EXPECT_EQ(events_.size(), 1U);
  EXPECT_EQ(watch(), WatchEnd::closed);
}

TEST_F(HttpClientTest, AWatchExpires) {
  server_.say(
      {.pieces = {line("ADDED", pod_text("x", 1)) + kExpired + line("ADDED", pod_text("y", 2))},
       .then = Answer::Then::stay});
  server_.say({.status = 410, .body = R"({"kind":"Status","code":410})"});
  EXPECT_EQ(watch(), WatchEnd::expired);
  EXPECT_EQ(events_.size(), 1U);
  EXPECT_EQ(watch(), WatchEnd::expired);
}

TEST_F(HttpClientTest, AWatchIsRefused) {
  server_.say({.status = 422, .body = R"({"kind":"Status","reason":"Invalid","message":"no"})"});
  server_.say({.status = 429, .body = "later", .headers = {{"Retry-After", "7"}}});
  EXPECT_EQ(refusal([&] { watch(); }).reason, "Invalid");
  EXPECT_EQ(refusal([&] { watch(); }).retry_after_seconds, 7);
  server_.stop();
  EXPECT_EQ(failure([&] { watch(); }), Code::unavailable);
}

TEST_F(HttpClientTest, AWatchThatSaysNonsenseFails) {
  server_.say({.pieces = {"garbage\n"}, .then = Answer::Then::stay});
  EXPECT_EQ(failure([&] { watch(); }), Code::invalid);
  server_.say({.pieces = {line("ERROR", R"({"code":500,"message":"oh"})")}});
  EXPECT_EQ(refusal([&] { watch(); }).message, "oh");
}

TEST_F(HttpClientTest, ALineHasABound) {
  options_.most_event_bytes = 1000;
  server_.say(
      {.pieces = {std::string(600, 'x'), std::string(600, 'x')}, .then = Answer::Then::stay});
  EXPECT_EQ(failure([&] { watch(); }), Code::exhausted);
}

TEST_F(HttpClientTest, WhatAHandlerThrowsComesOut) {
  server_.say({.pieces = {line("ADDED", pod_text("x", 1))}, .then = Answer::Then::stay});
  const auto handler = [](Event) { fail(Code::unavailable, "mine"); };
  try {
    client().watch(kPods, {}, handler, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "mine");
  }
  const auto other = [](Event) { throw std::runtime_error("not ours"); };
  EXPECT_THROW(client().watch(kPods, {}, other, {}), std::runtime_error);
}

TEST_F(HttpClientTest, AWatchStopsAtOnce) {
  server_.say({.pieces = {line("ADDED", pod_text("x", 1))}, .then = Answer::Then::stay});
  std::stop_source source;
  std::latch heard{1};
  auto end = std::async(std::launch::async, [&] {
    return client().watch(kPods, {}, [&](Event) { heard.count_down(); }, source.get_token());
  });
  heard.wait();

  source.request_stop();

  EXPECT_EQ(end.get(), WatchEnd::stopped);
}

class TlsTest : public HttpClientTest {
 protected:
  net::TlsServerOptions server_options() {
    return {.certificate = {.file = {}, .text = kServerCertificate},
            .key = {.file = {}, .text = kServerKey},
            .client_ca = {.file = {}, .text = kServerCertificate}};
  }
  FakeServer tls_{server_options()};
};

TEST_F(TlsTest, VerifiesTheServer) {
  access_.server = tls_.url();
  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::unauthenticated);
  EXPECT_TRUE(pauses_.empty());
  EXPECT_TRUE(tls_.requests().empty());
}

TEST_F(TlsTest, KnowsItsAuthorityAndName) {
  access_.server = tls_.url();
  access_.ca.text = kServerCertificate;
  access_.tls_server_name = "cluster.test";
  client().get(kPods, "a", "x");
  EXPECT_EQ(tls_.requests().size(), 1U);
  access_.tls_server_name = "other.test";
  client_.reset();
  EXPECT_EQ(failure([&] { client().get(kPods, "a", "x"); }), Code::unauthenticated);
}

TEST_F(TlsTest, MayBeToldNotToVerify) {
  access_.server = tls_.url();
  access_.is_insecure = true;
  client().get(kPods, "a", "x");
  EXPECT_EQ(tls_.requests().size(), 1U);
}

TEST_F(TlsTest, ShowsItsCertificate) {
  const TestFolder folder;
  access_.server = tls_.url();
  access_.ca.file = folder.write("ca.crt", kServerCertificate);
  access_.certificate.file = folder.write("user.crt", kUserCertificate);
  access_.key.text = kUserKey;
  client().get(kPods, "a", "x");
  EXPECT_EQ(tls_.last().peer_certificate, "jane");
}

// The cache over a server that does everything wrong once.
TEST_F(HttpClientTest, AWatchCacheSurvivesAllOfIt) {
  const std::string initial = line("ADDED", pod_text("x", 1)) + bookmark(5, true);
  server_.say({.status = 429, .headers = {{"Retry-After", "0"}}});
  server_.say({.status = 500});
  server_.say({.pieces = {"garbage\n"}});
  server_.say({.body = R"({"kind":"PodList","metadata":{"resourceVersion":"3"},"items":[]})"});
  server_.say({.pieces = {line("ADDED", pod_text("y", 4)), "{\"torn"}, .then = Answer::Then::tear});
  server_.say({.pieces = {kExpired}});
  server_.say(
      {.pieces = {initial + line("MODIFIED", pod_text("x", 6))}, .then = Answer::Then::stay});
  WatchCache cache(client(), kPods, {.first_pause = 1ms, .most_pause = 1ms});
  Guarded<std::vector<std::string>> heard;
  std::latch updated{1};
  const auto note = [&](const std::string& what, const Object& object) {
    heard.with([&](auto& all) {
      all.push_back(what + std::string(model::text_at(*object, {"metadata", "name"})));
    });
  };
  cache.add_handlers({.on_add = [&](const Object& now) { note("+", now); },
                      .on_update =
                          [&](const Object&, const Object& now) {
                            note("~", now);
                            updated.count_down();
                          },
                      .on_delete = [&](const Object& last) { note("-", last); }});

  cache.start();
  updated.wait();

  EXPECT_TRUE(cache.is_synced());
  EXPECT_EQ(heard.with([](auto& all) { return all; }),
            (std::vector<std::string>{"+y", "-y", "+x", "~x"}));
  EXPECT_TRUE(cache.find("a", "x"));
  EXPECT_FALSE(cache.find("a", "y"));
}

}  // namespace
}  // namespace hearth::client
