#include "access/authenticator.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "access/reviews.h"
#include "base/error.h"
#include "base/id.h"
#include "model/status.h"

namespace hearth::access {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

Json parse(std::string_view text) {
  return model::parse_json(text).value;
}

// A server with one static token, and service accounts that a map knows.
class AuthenticatorTest : public testing::Test {
 protected:
  AuthenticatorTest()
      : folder_(std::filesystem::temp_directory_path() / ("hearth-access-" + random_hex(8))),
        signer_(pki::load_token_signer(folder_, "https://issuer")),
        authenticator_({.tokens = {{"admin-token", {"admin", "1", {"system:masters"}, {}}},
                                   {"", {"nobody", "", {"system:masters"}, {}}}},
                        .signer = signer_.get(),
                        .directory = {.account = finder(accounts_), .pod = finder(pods_)}},
                       clock_) {
    accounts_["n/builder"] = "uid-1";
    pods_["n/p"] = "uid-2";
  }
  ~AuthenticatorTest() override { std::filesystem::remove_all(folder_); }
  AuthenticatorTest(const AuthenticatorTest&) = delete;
  AuthenticatorTest& operator=(const AuthenticatorTest&) = delete;

  using Objects = std::map<std::string, std::string>;
  static Directory::FindUid finder(const Objects& objects) {
    return
        [&objects](const std::string& ns, const std::string& name) -> std::optional<std::string> {
          const auto found = objects.find(ns + "/" + name);
          if (found == objects.end()) return std::nullopt;
          return found->second;
        };
  }
  pki::Claims claims() const {
    return {.audiences = {"https://issuer"},
            .ns = "n",
            .account = {"builder", "uid-1"},
            .issued = clock_.now(),
            .expires = clock_.now() + 1h};
  }
  User with_header(const std::string& value) const {
    http::Request request;
    request.headers.add("Authorization", value);
    return authenticator_.authenticate(request);
  }
  // The code of the Status, or 200.
  unsigned code_with(const std::string& value) const {
    try {
      with_header(value);
    } catch (const model::StatusError& error) {
      return error.status().code;
    }
    return 200;
  }

  Objects accounts_;
  Objects pods_;
  ManualClock clock_;
  const std::filesystem::path folder_;
  const std::unique_ptr<pki::TokenSigner> signer_;
  const Authenticator authenticator_;
};

TEST_F(AuthenticatorTest, WithoutCredentialsOneIsAnonymous) {
  const User user = authenticator_.authenticate({});

  EXPECT_EQ(user.name, "system:anonymous");
  EXPECT_EQ(user.groups, Texts{"system:unauthenticated"});
  for (const char* header : {"Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer ", "", "admin-token"})
    EXPECT_EQ(with_header(header).name, "system:anonymous") << header;
}

TEST_F(AuthenticatorTest, AStaticTokenIsItsUser) {
  const User user = with_header("Bearer admin-token");

  EXPECT_EQ(user.name, "admin");
  EXPECT_EQ(user.groups, (Texts{"system:masters", "system:authenticated"}));
  EXPECT_EQ(with_header("bearer admin-token").name, "admin");
}

TEST_F(AuthenticatorTest, AnUnknownTokenIsRefusedInTheUsualWords) {
  try {
    with_header("Bearer nope");
    FAIL();
  } catch (const model::StatusError& error) {
    EXPECT_EQ(model::to_text(model::to_json(error.status())),
              R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
              R"("message":"Unauthorized","reason":"Unauthorized","code":401})");
  }
  EXPECT_EQ(code_with("Bearer admin-token2"), 401U);
  EXPECT_EQ(code_with("Bearer admin-toke"), 401U);
  EXPECT_EQ(code_with("Bearer " + std::string(100'000, 'a')), 401U);
}

TEST_F(AuthenticatorTest, ACertificateIsItsSubject) {
  http::Request request;
  request.peer_certificate = "alice";
  request.peer_groups = {"devs"};
  request.headers.add("Authorization", "Bearer admin-token");

  const User user = authenticator_.authenticate(request);

  EXPECT_EQ(user.name, "alice") << "before tokens, as a real server has it";
  EXPECT_EQ(user.groups, (Texts{"devs", "system:authenticated"}));
}

TEST_F(AuthenticatorTest, AServiceAccountHasItsGroups) {
  pki::Claims bound = claims();
  bound.pod = pki::ObjectId{"p", "uid-2"};

  const User user = with_header("Bearer " + signer_->sign(bound));

  EXPECT_EQ(user.name, "system:serviceaccount:n:builder");
  EXPECT_EQ(user.uid, "uid-1");
  EXPECT_EQ(user.groups,
            (Texts{"system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"}));
  EXPECT_EQ(user.extra.at("authentication.kubernetes.io/pod-name"), Texts{"p"});
}

TEST_F(AuthenticatorTest, ATokenEndsWithWhatItIsBoundTo) {
  pki::Claims bound = claims();
  bound.pod = pki::ObjectId{"p", "uid-2"};
  const std::string header = "Bearer " + signer_->sign(bound);
  EXPECT_EQ(code_with(header), 200U);

  pods_["n/p"] = "another";
  EXPECT_EQ(code_with(header), 401U);
  pods_.erase("n/p");
  EXPECT_EQ(code_with(header), 401U);
  const std::string free = "Bearer " + signer_->sign(claims());
  EXPECT_EQ(code_with(free), 200U);
  accounts_["n/builder"] = "made-again";
  EXPECT_EQ(code_with(free), 401U);
  accounts_.clear();
  EXPECT_EQ(code_with(free), 401U);
}

TEST_F(AuthenticatorTest, ATokenForSomeoneElseIsRefused) {
  pki::Claims vault = claims();
  vault.audiences = {"vault"};
  EXPECT_EQ(code_with("Bearer " + signer_->sign(vault)), 401U);
  const std::string token = signer_->sign(claims());
  clock_.advance(2h);
  EXPECT_EQ(code_with("Bearer " + token), 401U);
}

TEST_F(AuthenticatorTest, TokenReviewsTellWhoseItIs) {
  Json review = parse(R"({"spec":{}})");
  const auto reviewed = [&](const std::string& token, const Json& audiences) {
    review.as_object()["spec"] = JsonObject{{"token", token}, {"audiences", audiences}};
    return review_token(review, authenticator_);
  };
  pki::Claims vault = claims();
  vault.audiences = {"vault"};
  const std::string token = signer_->sign(vault);

  const Json good = reviewed(token, JsonArray{"vault", "other"});
  EXPECT_TRUE(model::is_true_at(good, {"status", "authenticated"}));
  EXPECT_EQ(model::text_at(good, {"status", "user", "username"}),
            "system:serviceaccount:n:builder");
  EXPECT_EQ(model::to_text(*model::find(good, {"status", "audiences"})), R"(["vault"])");
  EXPECT_FALSE(model::is_true_at(reviewed(token, JsonArray()), {"status", "authenticated"}));
  EXPECT_FALSE(model::is_true_at(reviewed("nope", Json()), {"status", "authenticated"}));
  EXPECT_TRUE(model::is_true_at(reviewed("admin-token", Json()), {"status", "authenticated"}));
  EXPECT_FALSE(
      model::is_true_at(reviewed("admin-token", JsonArray{"vault"}), {"status", "authenticated"}));
  EXPECT_THROW(review_token(parse("{}"), authenticator_), model::StatusError);
}

TEST_F(AuthenticatorTest, IssuedTokensAreAccepted) {
  const TokenDesk desk{.signer = signer_.get(),
                       .ns = "n",
                       .account = {"builder", "uid-1"},
                       .find_pod = [](const std::string& name) -> std::optional<BoundPod> {
                         if (name != "p") return std::nullopt;
                         return BoundPod{.uid = "uid-2", .account = "builder", .node = "here"};
                       }};
  const Json issued = issue_token(
      parse(R"({"spec":{"expirationSeconds":600,"boundObjectRef":{"kind":"Pod","apiVersion":"v1",)"
            R"("name":"p"}}})"),
      desk, clock_.now());

  EXPECT_EQ(model::text_at(issued, {"kind"}), "TokenRequest");
  EXPECT_EQ(model::text_at(issued, {"status", "expirationTimestamp"}), "2023-11-14T22:23:20Z");
  EXPECT_EQ(model::to_text(*model::find(issued, {"spec", "audiences"})), R"(["https://issuer"])");
  const std::string header = "Bearer " + std::string(model::text_at(issued, {"status", "token"}));
  EXPECT_EQ(with_header(header).extra.at("authentication.kubernetes.io/node-name"), Texts{"here"});
  clock_.advance(600s);
  EXPECT_EQ(code_with(header), 401U);
}

TEST_F(AuthenticatorTest, BadTokenRequestsAreRefused) {
  const TokenDesk desk{.signer = signer_.get(),
                       .ns = "n",
                       .account = {"builder", "uid-1"},
                       .find_pod = [](const std::string& name) -> std::optional<BoundPod> {
                         if (name != "p") return std::nullopt;
                         return BoundPod{.uid = "uid-2", .account = "someone"};
                       }};
  const auto code_of = [&](std::string_view request) {
    try {
      issue_token(parse(request), desk, clock_.now());
    } catch (const model::StatusError& error) {
      return error.status().code;
    }
    return 200U;
  };

  EXPECT_EQ(code_of("{}"), 200U);
  EXPECT_EQ(code_of(R"({"spec":{"expirationSeconds":599}})"), 422U);
  EXPECT_EQ(code_of(R"({"spec":{"expirationSeconds":4294967297}})"), 422U);
  EXPECT_EQ(code_of(R"({"metadata":{"name":"another"}})"), 422U);
  EXPECT_EQ(code_of(R"({"metadata":{"namespace":"another"}})"), 422U);
  EXPECT_EQ(code_of(R"({"spec":{"boundObjectRef":{"kind":"Secret","name":"s"}}})"), 400U);
  EXPECT_EQ(code_of(R"({"spec":{"boundObjectRef":{"kind":"Pod","name":"gone"}}})"), 404U);
  EXPECT_EQ(code_of(R"({"spec":{"boundObjectRef":{"kind":"Pod","name":"p"}}})"), 400U)
      << "of another account";
}

class ImpersonationTest : public testing::Test {
 protected:
  ImpersonationTest() {
    objects_ = {parse(R"({"kind":"ClusterRole","metadata":{"name":"r"},"rules":[
              {"verbs":["impersonate"],"apiGroups":[""],"resources":["users"],
               "resourceNames":["bob","system:anonymous"]},
              {"verbs":["impersonate"],"apiGroups":[""],"resources":["groups"],
               "resourceNames":["devs"]},
              {"verbs":["impersonate"],"apiGroups":[""],"resources":["serviceaccounts"]},
              {"verbs":["impersonate"],"apiGroups":["authentication.k8s.io"],
               "resources":["userextras/scopes","uids"]}]})"),
                parse(R"({"kind":"ClusterRoleBinding","metadata":{"name":"b"},
              "roleRef":{"kind":"ClusterRole","name":"r"},
              "subjects":[{"kind":"User","name":"alice"}]})")};
    rules_ = Rules(sort_by_kind(objects_));
  }
  User as(const http::Headers& headers) const { return impersonate(alice_, headers, rules_); }
  unsigned code_of(const http::Headers& headers) const {
    try {
      as(headers);
    } catch (const model::StatusError& error) {
      return error.status().code;
    }
    return 200;
  }

  std::vector<Json> objects_;
  Rules rules_;
  const User alice_{.name = "alice", .groups = {"system:authenticated"}};
};

TEST_F(ImpersonationTest, WithoutHeadersNothingChanges) {
  EXPECT_EQ(as({{"Accept", "*/*"}}).name, "alice");
}

TEST_F(ImpersonationTest, ActsAsAUserWithGroups) {
  const User user = as({{"Impersonate-User", "bob"},
                        {"Impersonate-Group", "devs"},
                        {"impersonate-uid", "7"},
                        {"Impersonate-Extra-Scopes", "a"},
                        {"Impersonate-Extra-scopes", "b"}});

  EXPECT_EQ(user.name, "bob");
  EXPECT_EQ(user.uid, "7");
  EXPECT_EQ(user.groups, (Texts{"devs", "system:authenticated"}));
  EXPECT_EQ(user.extra.at("scopes"), (Texts{"a", "b"}));
}

TEST_F(ImpersonationTest, ServiceAccountsKeepTheirGroups) {
  EXPECT_EQ(as({{"Impersonate-User", "system:serviceaccount:n:a"}}).groups,
            (Texts{"system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"}));
  EXPECT_EQ(as({{"Impersonate-User", "system:anonymous"}}).groups, Texts{"system:unauthenticated"});
}

TEST_F(ImpersonationTest, EveryPartNeedsTheVerb) {
  EXPECT_EQ(code_of({{"Impersonate-User", "eve"}}), 403U);
  EXPECT_EQ(code_of({{"Impersonate-User", "bob"}, {"Impersonate-Group", "system:masters"}}), 403U);
  EXPECT_EQ(code_of({{"Impersonate-User", "bob"},
                     {"Impersonate-Group", "devs"},
                     {"Impersonate-Group", "system:masters"}}),
            403U)
      << "the second of two";
  EXPECT_EQ(code_of({{"Impersonate-User", "bob"}, {"Impersonate-Extra-other", "x"}}), 403U);
  EXPECT_EQ(code_of({{"Impersonate-Group", "devs"}}), 400U);
  EXPECT_EQ(code_of({{"Impersonate-Uid", "7"}}), 400U);
  EXPECT_EQ(code_of({{"Impersonate-User", "system:serviceaccount:n"}}), 403U) << "just a user";
}

TEST(AccountNameTest, IsTakenApartStrictly) {
  EXPECT_EQ(parse_account_name("system:serviceaccount:n:a.b")->name, "a.b");
  for (const std::string_view bad : {"system:serviceaccount:", "system:serviceaccount::a",
                                     "system:serviceaccount:n:", "system:serviceaccount:n:a:b",
                                     "system:serviceaccount:N:a", "alice", ""})
    EXPECT_FALSE(parse_account_name(bad)) << bad;
}

}  // namespace
}  // namespace hearth::access
