// What new objects are given as they are made (client/welcome.h).
#include <atomic>
#include <thread>
#include <vector>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "model/meta.h"

namespace hearth::apiserver {
namespace {

using model::Json;

class WelcomeTest : public testing::Test {
 protected:
  WelcomeTest() {
    client().create(client::kSandboxes, json(R"({"apiVersion":"agents.x-k8s.io/v1beta1",
      "kind":"Sandbox","metadata":{"namespace":"default","name":"gift"},
      "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}})"));
    server_->welcome(client::kSandboxClaims, [this](const Json& claim) {
      ++asked_;
      return welcome(claim);
    });
  }

  // Gives every claim the one sandbox, by a label.
  std::optional<client::Welcome> welcome(const Json& claim) {
    if (!has_any_) return std::nullopt;
    return client::Welcome{
        .status = json(R"({"sandbox":{"name":"gift"}})"),
        .kind = client::kSandboxes,
        .key = {"default", "gift"},
        .patch = json(R"({"metadata":{"labels":{"for":")" + std::string(model::name_of(claim)) +
                      R"("},"resourceVersion":")" + seen_version() + "\"}}"),
        .kept = [held = held_, this](const client::Object& made, const client::Object& other) {
          kept_.push_back(std::string(model::name_of(*made)) + " with " +
                          std::string(model::label_of(*other, "for")));
        }};
  }
  std::string seen_version() {
    return version_.empty() ? std::string(model::resource_version_of(gift())) : version_;
  }

  client::Client& client() { return server_.client(); }
  Json gift() { return client().get(client::kSandboxes, "default", "gift"); }
  Json claim(std::string_view metadata, bool is_dry_run = false,
             const client::ResourceId& kind = client::kSandboxClaims) {
    Json object = json(R"({"kind":"SandboxClaim","spec":{"warmPoolRef":{"name":"p"}}})");
    if (kind.version == "v1alpha1")
      object.at("spec") = json(R"({"sandboxTemplateRef":{"name":"p"}})");
    object.as_object()["apiVersion"] = kind.api_version();
    object.as_object()["metadata"] = json(metadata);
    object.at("metadata").as_object()["namespace"] = "default";
    return client().create(kind, object, {.dry_run = is_dry_run});
  }
  static std::string_view sandbox_in(const Json& claim) {
    return model::text_at(claim, {"status", "sandbox", "name"});
  }

  TestServer server_;
  int asked_ = 0;
  bool has_any_ = true;
  std::string version_;  // that the patch is meant for; empty: of now
  std::shared_ptr<int> held_ = std::make_shared<int>();
  std::vector<std::string> kept_;
};

TEST_F(WelcomeTest, BothAreKeptTogether) {
  const Json made = claim(R"({"name":"c"})");
  EXPECT_EQ(sandbox_in(made), "gift");
  EXPECT_EQ(sandbox_in(client().get(client::kSandboxClaims, "default", "c")), "gift");
  EXPECT_EQ(model::label_of(gift(), "for"), "c");
  EXPECT_EQ(kept_, std::vector<std::string>{"c with c"});
  EXPECT_EQ(held_.use_count(), 1);
}

TEST_F(WelcomeTest, AGeneratedNameIsKnownByThen) {
  const Json made = claim(R"({"generateName":"c-"})");
  EXPECT_EQ(sandbox_in(made), "gift");
  EXPECT_EQ(model::label_of(gift(), "for"), model::name_of(made));
}

TEST_F(WelcomeTest, WatchersSeeItWithEverything) {
  const std::string before(model::resource_version_of(gift()));
  claim(R"({"name":"c"})");
  std::vector<std::string> seen;
  std::stop_source stop;
  client().watch(
      client::kSandboxClaims, {.resource_version = before},
      [&](const client::Event& event) {
        seen.emplace_back(sandbox_in(*event.object));
        stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(seen, std::vector<std::string>{"gift"});
}

TEST_F(WelcomeTest, WithoutOneItIsMadeLikeAnyOther) {
  has_any_ = false;
  EXPECT_EQ(model::find(claim(R"({"name":"c"})"), {"status"}), nullptr);
  EXPECT_EQ(asked_, 1);
}

TEST_F(WelcomeTest, AGiftThatHasChangedIsLeftAlone) {
  version_ = "1";
  EXPECT_EQ(model::find(claim(R"({"name":"c"})"), {"status"}), nullptr);
  EXPECT_EQ(model::label_of(gift(), "for"), "");
  EXPECT_EQ(kept_, std::vector<std::string>());
  EXPECT_EQ(held_.use_count(), 1);
}

TEST_F(WelcomeTest, NobodyIsAskedAboutWhatIsNotKept) {
  claim(R"({"name":"c"})", /*is_dry_run=*/true);
  EXPECT_EQ(refusal([&] { claim(R"({"name":"Not a name"})"); }).reason, "Invalid");
  EXPECT_EQ(asked_, 0);
  claim(R"({"name":"c"})");
  EXPECT_EQ(refusal([&] { claim(R"({"name":"c"})"); }).reason, "AlreadyExists");
  EXPECT_EQ(asked_, 1);
}

TEST_F(WelcomeTest, OlderVersionsAreLeftToTheController) {
  client::ResourceId old = client::kSandboxClaims;
  old.version = "v1alpha1";
  claim(R"({"name":"c"})", false, old);
  EXPECT_EQ(asked_, 0);
}

TEST_F(WelcomeTest, NobodyIsAskedAnyMore) {
  server_->welcome(client::kSandboxClaims, {});
  claim(R"({"name":"c"})");
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(model::label_of(gift(), "for"), "");
}

// However many come: creates never stop for the end of who was asked.
TEST_F(WelcomeTest, TheEndOfAskingIsNotPutOffByThoseWhoCome) {
  has_any_ = false;
  std::atomic<bool> is_over = false;
  std::atomic<int> made = 0;
  server_->welcome(client::kSandboxClaims, [&](const Json&) -> std::optional<client::Welcome> {
    EXPECT_FALSE(is_over);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::nullopt;
  });
  std::vector<std::jthread> makers;
  for (int i = 0; i < 4; ++i)
    makers.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        claim(R"({"generateName":"c-"})");
        ++made;
      }
    });
  EXPECT_TRUE(eventually([&] { return made > 20; }));
  server_->welcome(client::kSandboxClaims, {});
  is_over = true;
  const int before = made;
  EXPECT_TRUE(eventually([&] { return made > before + 20; }));
}

}  // namespace
}  // namespace hearth::apiserver
