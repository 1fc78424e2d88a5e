// Pulls from a registry that misbehaves in one way at a time.
#include "registry/pull.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "registry/fake_registry_internal.h"
#include "registry/testing_internal.h"

namespace hearth::registry {
namespace {

using net::Request;

class PullTest : public testing::Test {
 protected:
  PullTest() {
    options_.downloads = folder_.path("downloads");
    options_.plain_http = true;
    options_.retry_pause = std::chrono::microseconds(1);
  }
  image::Image pull_it(const std::string& version = ":1") {
    return pull(registry_.reference(version), options_, sink_, progress_);
  }
  Error failure(const std::string& version = ":1") {
    return failure_of([&] { pull_it(version); }, sink_);
  }

  TemporaryFolder folder_;
  FakeRegistry registry_;
  MemorySink sink_;
  QuietProgress progress_;
  PullOptions options_;
};

TEST_F(PullTest, BringsLayersInOrderAndTheImageLast) {
  const image::Image image = pull_it();

  ASSERT_EQ(sink_.images.size(), 1U);
  EXPECT_EQ(sink_.images[0], image);
  EXPECT_EQ(image.name, registry_.host() + "/app:1");
  EXPECT_TRUE(registry_.blobs.contains(image.id));
  EXPECT_EQ(image.layers.size(), 3U);
  EXPECT_EQ(image.config.command, std::vector<std::string>{"sh"});
  ASSERT_EQ(sink_.contents.size(), 2U);  // one of the three is named twice
  EXPECT_EQ(sink_.contents[0], std::string(300'000, 'x'));
  EXPECT_EQ(sink_.contents[1], "second layer");
  EXPECT_EQ(sink_.blobs[0].digest, image.layers[0]);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("downloads")));
}

TEST_F(PullTest, DoesNotDownloadWhatIsThere) {
  sink_.present.insert(sha256_of(std::string(300'000, 'x')));

  pull_it();

  EXPECT_EQ(sink_.contents, std::vector<std::string>{"second layer"});
  EXPECT_EQ(registry_.count(sha256_of(std::string(300'000, 'x'))), 0U);
}

TEST_F(PullTest, ChoosesFromAnIndex) {
  const std::string manifest = registry_.manifests["1"];
  registry_.manifests[sha256_of(manifest)] = manifest;
  registry_.manifests["many"] = fmt::format(
      R"({{"manifests":[{},{}]}})",
      make_descriptor("x", "other", R"(,"platform":{"os":"linux","architecture":"vax"})"),
      make_descriptor("x", manifest,
                      fmt::format(R"(,"platform":{{"os":"linux","architecture":"{}"}})",
                                  this_platform().architecture)));
  registry_.content_type.clear();

  EXPECT_EQ(pull_it(":many").layers.size(), 3U);
}

TEST_F(PullTest, ByDigest) {
  const std::string manifest = registry_.manifests["1"];
  registry_.manifests[sha256_of(manifest)] = manifest;
  EXPECT_EQ(pull_it("@" + sha256_of(manifest)).name,
            registry_.host() + "/app@" + sha256_of(manifest));

  sink_.images.clear();
  const std::string other = sha256_of("something else");
  registry_.manifests[other] = manifest;
  EXPECT_TRUE(says(failure("@" + other), "is not what its digest says"));
}

TEST_F(PullTest, SaysThatThereIsNoSuchTag) {
  const Error error = failure(":2");
  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_TRUE(says(error, "there is no manifest '2' of 'app'")) << error.what();
  EXPECT_TRUE(says(error, "MANIFEST_UNKNOWN")) << error.what();
}

TEST_F(PullTest, ContinuesWhereTheConnectionBroke) {
  registry_.cut_after = 100'000;
  registry_.cuts = 2;

  pull_it();

  EXPECT_EQ(sink_.contents[0], std::string(300'000, 'x'));
  const auto seen = registry_.seen();
  EXPECT_TRUE(std::ranges::any_of(seen, [](const Request& r) {
    const auto range = r.headers.value("Range");
    return !range.empty() && range != "bytes=0-";
  }));
  EXPECT_NE(progress_.notes.find("trying again"), std::string::npos);
}

TEST_F(PullTest, ContinuesWhatAnEarlierAttemptLeft) {
  std::filesystem::create_directory(folder_.path("downloads"));
  std::filesystem::permissions(folder_.path("downloads"), std::filesystem::perms::owner_all);
  std::string name = sha256_of(std::string(300'000, 'x')) + ".part";
  name[6] = '-';
  std::ofstream(folder_.path("downloads/" + name)) << std::string(200'000, 'x');

  pull_it();

  EXPECT_EQ(sink_.contents[0], std::string(300'000, 'x'));
  const auto seen = registry_.seen();
  EXPECT_TRUE(std::ranges::any_of(
      seen, [](const Request& r) { return r.headers.value("Range") == "bytes=200000-"; }));
}

TEST_F(PullTest, StartsOverWhenWhatWasLeftIsWrong) {
  std::filesystem::create_directory(folder_.path("downloads"));
  std::filesystem::permissions(folder_.path("downloads"), std::filesystem::perms::owner_all);
  std::string name = sha256_of(std::string(300'000, 'x')) + ".part";
  name[6] = '-';
  std::ofstream(folder_.path("downloads/" + name)) << std::string(200'000, 'y');

  pull_it();

  EXPECT_EQ(sink_.contents[0], std::string(300'000, 'x'));
}

TEST_F(PullTest, AServerWithoutRangesIsReadFromTheStart) {
  registry_.knows_ranges = false;
  registry_.cut_after = 100'000;
  registry_.cuts = 2;

  pull_it();

  EXPECT_EQ(sink_.contents[0], std::string(300'000, 'x'));
}

TEST_F(PullTest, GivesUpWhenThereIsNoProgressAndKeepsWhatCame) {
  registry_.cut_after = 1000;
  registry_.cuts = 1'000'000;
  registry_.knows_ranges = false;

  const Error error = failure();

  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_FALSE(std::filesystem::is_empty(folder_.path("downloads")));
}

TEST_F(PullTest, RefusesALayerThatIsNotWhatItsDigestSays) {
  registry_.blobs[sha256_of("second layer")] = "second LAYER";

  const Error error = failure();

  EXPECT_EQ(error.code(), Code::invalid);
  EXPECT_TRUE(says(error, "is not what its digest says")) << error.what();
}

TEST_F(PullTest, RefusesALayerThatIsLargerThanItsManifestSays) {
  registry_.blobs[sha256_of("second layer")] = std::string(5'000'000, 'z');

  EXPECT_TRUE(says(failure(), "larger than its manifest says"));
}

TEST_F(PullTest, BoundsEverything) {
  registry_.manifests["huge"] = std::string(5 << 20, ' ');
  EXPECT_EQ(failure(":huge").code(), Code::exhausted);
  registry_.manifests["garbage"] = "<html>";
  EXPECT_EQ(failure(":garbage").code(), Code::invalid);
  options_.max_bytes = 300'000;
  EXPECT_EQ(failure().code(), Code::exhausted);
  EXPECT_EQ(registry_.count("blobs/" + sha256_of("second layer")), 0U);
}

TEST_F(PullTest, RefusesAnImageForAnotherMachine) {
  const std::string config = make_config({"layer"}, "vax");
  registry_.blobs[sha256_of(config)] = config;
  registry_.manifests["vax"] = make_manifest(config, {"layer"});

  EXPECT_TRUE(says(failure(":vax"), "the image is for 'linux/vax'"));
}

TEST_F(PullTest, WaitsForABusyServer) {
  registry_.refusals = 3;
  pull_it();
  EXPECT_NE(progress_.notes.find("429"), std::string::npos);

  sink_ = {};
  registry_.refusals = 1000;
  registry_.refusal_status = 503;
  EXPECT_EQ(failure().code(), Code::unavailable);
}

TEST_F(PullTest, FetchesAToken) {
  registry_.wants = "Bearer t0ken";
  registry_.challenge =
      fmt::format(R"(Bearer realm="http://{}/token",service="s p",scope="repository:app:pull")",
                  registry_.host());

  pull_it();

  EXPECT_EQ(registry_.count("/token?service=s%20p&scope=repository%3Aapp%3Apull"), 1U);
  const auto seen = registry_.seen();
  EXPECT_TRUE(std::ranges::none_of(seen, [](const Request& r) {
    return r.path == "/token" && r.headers.find("Authorization") != nullptr;
  }));
}

TEST_F(PullTest, ShowsItsCredentialsToTheTokenServer) {
  registry_.wants = "Bearer t0ken";
  registry_.challenge = fmt::format(R"(Bearer realm="http://{}/token")", registry_.host());
  options_.credentials = {.username = "me", .password = "secret"};
  pull_it();
  auto seen = registry_.seen();
  EXPECT_TRUE(std::ranges::any_of(seen, [](const Request& r) {
    return r.path == "/token" && r.headers.value("Authorization") == "Basic bWU6c2VjcmV0";
  }));

  options_.credentials = {.identity_token = "refresh&me"};
  pull_it();
  seen = registry_.seen();
  EXPECT_TRUE(std::ranges::any_of(seen, [](const Request& r) {
    return r.method == "POST" && r.body.find("refresh_token=refresh%26me") != std::string::npos;
  }));
}

TEST_F(PullTest, BasicCredentialsFromADockerConfig) {
  registry_.wants = "Basic bWU6c2VjcmV0";
  registry_.challenge = "Basic realm=registry";
  options_.docker_config = parse_docker_config(
      fmt::format(R"({{"auths":{{"{}":{{"auth":"bWU6c2VjcmV0"}}}}}})", registry_.host()));

  EXPECT_NO_THROW(pull_it());
}

TEST_F(PullTest, ErrorsHoldNoSecrets) {
  registry_.wants = "Basic other";
  registry_.challenge = "Basic realm=registry";
  EXPECT_EQ(failure().code(), Code::unauthenticated);

  options_.credentials = {.username = "me", .password = "SECRET"};
  Error error = failure();
  EXPECT_EQ(error.code(), Code::unauthenticated);
  EXPECT_FALSE(says(error, "SECRET")) << error.what();

  registry_.challenge = fmt::format(R"(Bearer realm="http://{}/token?SECRET")", registry_.host());
  registry_.token_status = 403;
  error = failure();
  EXPECT_EQ(error.code(), Code::unauthenticated);
  EXPECT_FALSE(says(error, "SECRET")) << error.what();
}

TEST_F(PullTest, RedirectsDoNotTakeTheAuthorizationAlong) {
  FakeRegistry storage;
  storage.blobs = registry_.blobs;
  registry_.redirect_blobs = "http://" + storage.host() + "/v2/app/blobs/";
  registry_.wants = "Basic bWU6c2VjcmV0";
  registry_.challenge = "Basic realm=registry";
  options_.credentials = {.username = "me", .password = "secret"};

  pull_it();

  const auto seen = storage.seen();
  EXPECT_GE(seen.size(), 3U);
  for (const Request& request : seen) {
    EXPECT_EQ(request.headers.find("Authorization"), nullptr);
  }
}

TEST_F(PullTest, RedirectsEnd) {
  registry_.redirect_blobs = "/v2/app/blobs/";
  EXPECT_TRUE(says(failure(), "redirects more than"));
}

TEST_F(PullTest, AsksMirrorsFirst) {
  FakeRegistry mirror;
  options_.mirrors = {"http://" + mirror.host()};
  pull_it();
  EXPECT_TRUE(registry_.seen().empty());

  // One that lacks the image, and one that has it but spoils a layer.
  sink_ = {};
  mirror.manifests.clear();
  pull_it();
  EXPECT_FALSE(registry_.seen().empty());

  sink_ = {};
  mirror.manifests = registry_.manifests;
  mirror.blobs[sha256_of("second layer")] = "second LAYER";
  pull_it();
  EXPECT_EQ(sink_.contents[1], "second layer");
}

TEST_F(PullTest, SpeaksTlsUnlessToldOtherwise) {
  options_.plain_http = false;
  const Error error = failure();
  EXPECT_TRUE(registry_.seen().empty());
  EXPECT_TRUE(says(error, "does not speak TLS")) << error.what();
}

TEST_F(PullTest, AServerThatIsNotThereIsNamed) {
  registry_.stop();
  const Error error = failure();
  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_TRUE(says(error, registry_.host())) << error.what();
}

}  // namespace
}  // namespace hearth::registry
