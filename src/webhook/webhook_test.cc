#include "webhook/webhook.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/base64.h"
#include "client/kinds.h"
#include "net/client.h"
#include "webhook/trust.h"

namespace hearth::webhook {
namespace {

using apiserver::json;
using model::Json;
using namespace std::chrono_literals;

const client::ResourceId kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false};
// Which our CRDs name, unless they are told otherwise.
const model::Key kService{"agent-sandbox-system", "agent-sandbox-webhook-service"};
constexpr std::string_view kReview =
    R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"r",
      "desiredAPIVersion":"agents.x-k8s.io/v1beta1","objects":[{"apiVersion":
      "agents.x-k8s.io/v1alpha1","kind":"Sandbox","metadata":{"name":"x"},"spec":{"replicas":0}}]}})";

struct Listener {
  linux::Fd socket;
  std::uint16_t port = 0;
};

Listener listen() {
  Listener made{linux::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(made.socket.get(), any, length), 0);
  EXPECT_EQ(::listen(made.socket.get(), 64), 0);
  EXPECT_EQ(::getsockname(made.socket.get(), any, &length), 0);
  made.port = ntohs(address.sin_port);
  return made;
}

// As kube-apiserver asks: by the Service's name, trusting just this.
net::TlsClientOptions trusting(const std::string& authority) {
  net::TlsClientOptions tls;
  tls.ca.text = authority;
  tls.server_name = "agent-sandbox-webhook-service.agent-sandbox-system.svc";
  return tls;
}

net::Response ask(std::uint16_t port, const std::string& authority, std::string body = {},
                  const std::string& path = "/convert") {
  net::Client client({.port = port, .tls = net::make_tls_context(trusting(authority))});
  if (body.empty()) body = kReview;
  return client.fetch({.method = "POST", .target = path, .body = std::move(body)},
                      {.max_body_bytes = 128 << 20});
}

class WebhookTest : public testing::Test {
 protected:
  WebhookTest() {
    client().create(client::kNamespaces, json(R"({"apiVersion":"v1","kind":"Namespace",
      "metadata":{"name":"agent-sandbox-system"}})"));
  }

  client::Client& client() { return server_.client(); }
  Json secret() { return client().get(client::kSecrets, kService.ns, kSecretName); }
  std::string kept(std::string_view name) {
    return base64_decode(model::text_at(secret(), {"data", name})).value_or("");
  }
  std::string bundle_of(const std::string& crd) {
    const Json found = client().get(kCrds, "", crd);
    return base64_decode(
               model::text_at(found, {"spec", "conversion", "webhook", "clientConfig", "caBundle"}))
        .value_or("");
  }
  void change_crd(const std::string& name, std::string_view conversion) {
    client().patch(kCrds, "", name, client::PatchKind::merge,
                   json(fmt::format(R"({{"spec":{{"conversion":{}}}}})", conversion)));
  }

  apiserver::TestServer server_;
  // Long ago, so that what is renewed later is good now.
  ManualClock clock_{std::chrono::system_clock::now() - 400 * 24h};
};

TEST_F(WebhookTest, ConvertsForWhoeverTrustsTheCrds) {
  Listener listener = listen();
  const Webhook webhook(client(), clock_, {.service = kService}, std::move(listener.socket));

  const std::string bundle = bundle_of("sandboxes.agents.x-k8s.io");
  EXPECT_EQ(bundle, kept("ca.crt"));
  for (const char* crd :
       {"sandboxclaims.extensions.agents.x-k8s.io", "sandboxtemplates.extensions.agents.x-k8s.io",
        "sandboxwarmpools.extensions.agents.x-k8s.io"})
    EXPECT_EQ(bundle_of(crd), bundle) << crd;
  const net::Response response = ask(listener.port, bundle);
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(response.headers.value("Content-Type"), "application/json");
  EXPECT_NE(response.body.find(R"("operatingMode":"Suspended")"), std::string::npos);
}

TEST_F(WebhookTest, WhatIsNoReviewIsRefused) {
  Listener listener = listen();
  const Webhook webhook(client(), clock_, {.service = kService}, std::move(listener.socket));

  const std::string bundle = kept("ca.crt");
  EXPECT_EQ(ask(listener.port, bundle, "nonsense").status, 400U);
  EXPECT_EQ(ask(listener.port, bundle, "{}", "/other").status, 404U);
  EXPECT_EQ(ask(listener.port, bundle, std::string((32U << 20) + 1, ' ')).status, 413U);
  EXPECT_EQ(ask(listener.port, bundle).status, 200U) << "and it goes on";
}

TEST_F(WebhookTest, AListOfManyIsOneReview) {
  Listener listener = listen();
  const Webhook webhook(client(), clock_, {.service = kService}, std::move(listener.socket));
  Json review = json(kReview);
  model::JsonArray& objects = model::find(review, {"request", "objects"})->as_array();
  const Json first = objects.front();
  while (objects.size() < 20'000) objects.push_back(first);

  const net::Response response = ask(listener.port, kept("ca.crt"), model::to_text(review));

  ASSERT_EQ(response.status, 200U);
  EXPECT_EQ(model::array_at(json(response.body), {"response", "convertedObjects"})->size(),
            20'000U);
}

// Begins large reviews and does not go on with them, until it goes itself.
class Dawdlers {
 public:
  Dawdlers(std::uint16_t port, const std::string& authority)
      : client_({.port = port, .tls = net::make_tls_context(trusting(authority))}) {}

  void begin() { run(open()); }
  // What the last one is answered although it has not said it all.
  net::Response answer() {
    run(read());
    return answer_;
  }

 private:
  void run(boost::asio::awaitable<void> work) {
    bool is_done = false;
    boost::asio::co_spawn(context_, std::move(work), [&](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      is_done = true;
    });
    // Not until the last timer has run out.
    while (!is_done) context_.run_one();
  }
  boost::asio::awaitable<void> open() {
    net::Request request{.method = "POST", .target = "/convert"};
    request.headers.set("Content-Length", std::to_string(2 << 20));
    net::OpenOptions options{.streams_body = true};
    begun_.push_back(co_await client_.open(std::move(request), options));
  }
  boost::asio::awaitable<void> read() { answer_ = co_await begun_.back()->read_head(1min); }

  boost::asio::io_context context_;
  net::AsyncClient client_;
  std::vector<std::unique_ptr<net::Exchange>> begun_;
  net::Response answer_;
};

TEST_F(WebhookTest, FewLargeReviewsAtOnceAndSmallOnesBesides) {
  Listener listener = listen();
  const Webhook webhook(client(), clock_, {.service = kService}, std::move(listener.socket));
  const std::string authority = kept("ca.crt");
  const std::string large = std::string(kReview) + std::string(2 << 20, ' ');

  std::optional<Dawdlers> dawdlers(std::in_place, listener.port, authority);
  for (int i = 0; i < 5; ++i) dawdlers->begin();
  const net::Response answer = dawdlers->answer();

  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.headers.value("Retry-After"), "1");
  EXPECT_EQ(ask(listener.port, authority).status, 200U);
  dawdlers.reset();
  EXPECT_TRUE(
      apiserver::eventually([&] { return ask(listener.port, authority, large).status == 200U; }));
}

TEST_F(WebhookTest, ReplicasShowTheSameIdentity) {
  Listener first = listen(), second = listen();
  const Webhook one(client(), clock_, {.service = kService}, std::move(first.socket));
  const Json before = secret();
  const Webhook other(client(), clock_, {.service = kService}, std::move(second.socket));

  EXPECT_TRUE(model::is_same(before, secret()));
  EXPECT_EQ(ask(second.port, kept("ca.crt")).status, 200U);
}

TEST_F(WebhookTest, LooksAfterCrdsThatWereAppliedAnew) {
  Listener listener = listen();
  Webhook webhook(client(), clock_, {.service = kService}, std::move(listener.socket));
  const std::string crd = "sandboxes.agents.x-k8s.io";
  change_crd(crd, R"({"webhook":{"clientConfig":{"caBundle":null}}})");
  ASSERT_EQ(bundle_of(crd), "");

  webhook.look_again();

  EXPECT_EQ(bundle_of(crd), kept("ca.crt"));
}

TEST_F(WebhookTest, LeavesOthersCrdsAlone) {
  const std::string crd = "sandboxes.agents.x-k8s.io";
  change_crd(crd, R"({"webhook":{"clientConfig":{"service":{"name":"other"}}}})");
  change_crd("sandboxwarmpools.extensions.agents.x-k8s.io",
             R"({"strategy":"None","webhook":null})");

  EXPECT_EQ(trust_authority(client(), kService, "authority"),
            (std::vector<std::string>{
                "sandboxes.agents.x-k8s.io is converted by Service 'agent-sandbox-system/other', "
                "not by 'agent-sandbox-system/agent-sandbox-webhook-service'",
                "sandboxwarmpools.extensions.agents.x-k8s.io is not converted by a Service"}));
  EXPECT_EQ(bundle_of(crd), "");
  EXPECT_EQ(bundle_of("sandboxclaims.extensions.agents.x-k8s.io"), "authority");
  EXPECT_FALSE(is_converted_by(client(), kService));
  EXPECT_TRUE(is_converted_by(client(), {kService.ns, "other"}));
}

TEST_F(WebhookTest, RenewsWhatComesNearItsEnd) {
  Listener listener = listen();
  Webhook webhook(client(), clock_, {.service = kService}, std::move(listener.socket));
  const std::string before = kept("tls.crt"), authority = kept("ca.crt");

  clock_.advance(400 * 24h);
  webhook.look_again();

  EXPECT_NE(kept("tls.crt"), before);
  EXPECT_EQ(kept("ca.crt"), authority);
  EXPECT_EQ(ask(listener.port, authority).status, 200U);
}

TEST_F(WebhookTest, TakesOverASecretThatSomebodyElseFilled) {
  client().create(client::kSecrets, json(R"({"apiVersion":"v1","kind":"Secret",
    "metadata":{"name":"agent-sandbox-webhook-certs","namespace":"agent-sandbox-system"},
    "data":{"ca.crt":"bm9uc2Vuc2U=","tls.crt":"Lg==","more":"bW9yZQ=="}})"));
  Listener listener = listen();
  const Webhook webhook(client(), clock_, {.service = kService}, std::move(listener.socket));

  EXPECT_EQ(ask(listener.port, kept("ca.crt")).status, 200U);
  EXPECT_EQ(kept("more"), "more");
}

TEST_F(WebhookTest, ShowsTheFilesThatItIsGivenAndTellsNoCrd) {
  const auto folder = std::filesystem::temp_directory_path() / ("webhook-" + random_hex(6));
  std::filesystem::create_directories(folder);
  const std::vector<std::string> names = names_of_service(kService, "cluster.local");
  const auto write = [&](const pki::Identity& identity) {
    std::ofstream(folder / "tls.crt") << identity.certificate;
    std::ofstream(folder / "tls.key") << identity.key;
  };
  const pki::Serving first = pki::renew_serving({}, names, clock_.now());
  const pki::Serving second = pki::renew_serving({}, names, clock_.now());
  write(first.server);
  Listener listener = listen();
  {
    Webhook webhook(client(), clock_,
                    {.service = kService,
                     .certificate_file = folder / "tls.crt",
                     .key_file = folder / "tls.key"},
                    std::move(listener.socket));
    EXPECT_EQ(ask(listener.port, first.authority).status, 200U);
    write({second.server.certificate, "torn"});
    webhook.look_again();
    EXPECT_EQ(ask(listener.port, first.authority).status, 200U) << "as before";
    write(second.server);
    webhook.look_again();
    EXPECT_EQ(ask(listener.port, second.authority).status, 200U);
  }
  EXPECT_EQ(bundle_of("sandboxes.agents.x-k8s.io"), "");
  EXPECT_FALSE(client().find(client::kSecrets, kService.ns, kSecretName));
  std::filesystem::remove_all(folder);
}

TEST_F(WebhookTest, SaysWhatKeepsItFromServing) {
  const model::Key nowhere{"nowhere", "hook"};
  EXPECT_EQ(apiserver::refusal([&] {
              const Webhook webhook(client(), clock_, {.service = nowhere}, listen().socket);
            }).code,
            404U);
}

}  // namespace
}  // namespace hearth::webhook
