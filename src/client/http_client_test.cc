#include "client/http_client.h"

#include <algorithm>

#include "client/fake_server_internal.h"
#include "client/testing_internal.h"

namespace hearth::client {
namespace {

using namespace std::chrono_literals;

const ResourceId kPods{"", "v1", "pods"};
const ResourceId kNodes{"", "v1", "nodes", /*namespaced=*/false};

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
  server_.say({.then = FakeAnswer::Then::stay});
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

}  // namespace
}  // namespace hearth::client
