#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/time_text.h"
#include "client/credentials_internal.h"
#include "client/testing_internal.h"
#include "linux/fd.h"

namespace hearth::client {
namespace {

using namespace std::chrono_literals;

constexpr char kV1[] = "client.authentication.k8s.io/v1";

class CredentialsTest : public testing::Test {
 protected:
  Credentials& credentials() {
    if (!credentials_) credentials_.emplace(access_, clock_);
    return *credentials_;
  }
  std::string authorization() { return credentials().current().authorization; }
  // A plugin that notes each call and answers with what `answer` holds.
  void use_plugin(const std::string& answer) {
    write_answer(answer);
    access_.exec = ExecPlugin{
        .api_version = kV1,
        .command = {"sh", "-c",
                    "echo x >> $CALLS; printf %s \"$KUBERNETES_EXEC_INFO\" > $INFO; cat $ANSWER"},
        .environment = {"CALLS=" + folder_.path("calls"), "INFO=" + folder_.path("info"),
                        "ANSWER=" + folder_.path("answer")},
    };
  }
  void write_answer(const std::string& status) {
    folder_.write("answer", fmt::format(R"({{"apiVersion":"{}","kind":"ExecCredential",)"
                                        R"("status":{}}})",
                                        kV1, status));
  }
  std::size_t calls() { return linux::read_file(folder_.path("calls")).size() / 2; }
  std::string refusal() {
    try {
      authorization();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  TestFolder folder_;
  ManualClock clock_;
  ClusterAccess access_;
  std::optional<Credentials> credentials_;
};

TEST_F(CredentialsTest, NobodyHasNone) {
  EXPECT_EQ(credentials().current(), Credential{});
}

TEST_F(CredentialsTest, AreATokenOrAPassword) {
  access_.username = "u";
  access_.password = "p";
  EXPECT_EQ(authorization(), "Basic " + base64_encode("u:p"));
  credentials_.reset();
  access_.token = "t";
  EXPECT_EQ(authorization(), "Bearer t");
}

TEST_F(CredentialsTest, ATokenFileIsReadAgain) {
  access_.token = "old";
  access_.token_file = folder_.write("token", "one\n");
  EXPECT_EQ(authorization(), "Bearer one");
  folder_.write("token", "two");

  EXPECT_EQ(authorization(), "Bearer one");
  clock_.advance(1min);
  EXPECT_EQ(authorization(), "Bearer two");

  // Gone for a moment, as files are that someone replaces.
  std::filesystem::remove(access_.token_file);
  clock_.advance(1min);
  EXPECT_EQ(authorization(), "Bearer two");
}

TEST_F(CredentialsTest, ATokenThatIsRefusedIsReadAtOnce) {
  access_.token_file = folder_.write("token", "one");
  const Credential first = credentials().current();
  folder_.write("token", "two");

  credentials().refuse(first);

  EXPECT_EQ(authorization(), "Bearer two");
  credentials().refuse(first);  // someone who is late
  folder_.write("token", "three");
  EXPECT_EQ(authorization(), "Bearer two");
}

TEST_F(CredentialsTest, ATokenIsOneWord) {
  access_.token_file = folder_.write("token", "a\r\nImpersonate-User: root");
  EXPECT_EQ(refusal().find("root"), std::string::npos);
  EXPECT_THROW(authorization(), Error);
  folder_.write("token", " \n");
  EXPECT_THROW(authorization(), Error);
  access_.token_file = folder_.path("missing");
  credentials_.reset();
  EXPECT_THROW(authorization(), Error);
}

TEST_F(CredentialsTest, CertificatesInFilesAreReadAgain) {
  access_.certificate.file = folder_.write("crt", "one");
  access_.key.file = folder_.write("key", "k");
  EXPECT_EQ(credentials().current().certificate, "one");
  folder_.write("crt", "two");
  clock_.advance(2min);
  EXPECT_EQ(credentials().current().certificate, "two");
  EXPECT_EQ(credentials().current().key, "k");
}

TEST_F(CredentialsTest, APluginIsAskedOnceUntilItsAnswerExpires) {
  const std::string until = format_rfc3339(clock_.now() + 1h);
  use_plugin(R"({"token":"first","expirationTimestamp":")" + until + R"("})");
  EXPECT_EQ(authorization(), "Bearer first");
  write_answer(R"({"token":"second"})");
  clock_.advance(50min);
  EXPECT_EQ(authorization(), "Bearer first");
  EXPECT_EQ(calls(), 1U);

  clock_.advance(10min);

  EXPECT_EQ(authorization(), "Bearer second");
  clock_.advance(10000h);
  EXPECT_EQ(authorization(), "Bearer second");
  EXPECT_EQ(calls(), 2U);
}

TEST_F(CredentialsTest, APluginIsAskedAgainWhenItsAnswerIsRefused) {
  use_plugin(R"({"token":"first"})");
  const Credential first = credentials().current();
  write_answer(R"({"clientCertificateData":"crt","clientKeyData":"key"})");

  credentials().refuse(first);

  EXPECT_EQ(credentials().current(), (Credential{.certificate = "crt", .key = "key"}));
}

TEST_F(CredentialsTest, APluginIsToldAboutTheClusterIfItWantsToKnow) {
  access_.server = "https://a";
  access_.ca.text = "authority";
  use_plugin(R"({"token":"t"})");
  authorization();
  const auto info = [&] { return model::parse_json(linux::read_file(folder_.path("info"))).value; };
  EXPECT_EQ(model::text_at(info(), {"apiVersion"}), kV1);
  EXPECT_FALSE(model::find(info(), {"spec", "cluster"}));

  access_.exec->provide_cluster_info = true;
  access_.exec->cluster_config = model::JsonObject{{"audience", "me"}};
  credentials_.reset();
  authorization();

  const model::Json told = info();
  EXPECT_EQ(model::text_at(told, {"spec", "cluster", "server"}), "https://a");
  EXPECT_EQ(model::text_at(told, {"spec", "cluster", "certificate-authority-data"}),
            base64_encode("authority"));
  EXPECT_EQ(model::text_at(told, {"spec", "cluster", "config", "audience"}), "me");
}

TEST_F(CredentialsTest, APluginMayFail) {
  access_.exec = ExecPlugin{.api_version = kV1, .command = {"sh", "-c", "echo hunter2; exit 3"}};
  EXPECT_EQ(refusal(), "the credential plugin 'sh' failed (exit code 3)");
  access_.exec->command = {"hearth-no-such-plugin"};
  access_.exec->install_hint = "ask Jane";
  credentials_.reset();
  EXPECT_NE(refusal().find("ask Jane"), std::string::npos);
  access_.exec->command = {"yes"};
  credentials_.reset();
  EXPECT_THROW(authorization(), Error);
}

TEST_F(CredentialsTest, APluginMaySayNonsense) {
  for (const char* answer :
       {"{}", R"({"token":""})", R"({"token":"hunter2 x"})", R"({"clientKeyData":"hunter2"})",
        R"({"token":"hunter2","expirationTimestamp":"soon"})", "hunter2"}) {
    use_plugin(answer);
    credentials_.reset();
    EXPECT_THROW(authorization(), Error) << answer;
    EXPECT_EQ(refusal().find("hunter2"), std::string::npos);
  }
}

TEST(ExecCredential, MustBeOfTheVersionThatWasAskedFor) {
  Time expires{};
  EXPECT_THROW(parse_exec_credential(R"({"apiVersion":"client.authentication.k8s.io/v1beta1",
                   "kind":"ExecCredential","status":{"token":"t"}})",
                                     kV1, expires),
               Error);
  EXPECT_THROW(parse_exec_credential("", kV1, expires), Error);
}

}  // namespace
}  // namespace hearth::client
