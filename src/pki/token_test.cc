#include "pki/token.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/id.h"

namespace hearth::pki {
namespace {

using namespace std::chrono_literals;

class TokenTest : public testing::Test {
 protected:
  TokenTest()
      : folder_(std::filesystem::temp_directory_path() / ("hearth-pki-" + random_hex(8))),
        signer_(load_token_signer(folder_, "https://kubernetes.default.svc")) {}
  ~TokenTest() override { std::filesystem::remove_all(folder_); }
  TokenTest(const TokenTest&) = delete;
  TokenTest& operator=(const TokenTest&) = delete;

  Claims claims() const {
    return {.audiences = {"one", "two"},
            .ns = "team-a",
            .account = {"builder", "uid-1"},
            .pod = ObjectId{"pod-1", "uid-2"},
            .issued = now_,
            .expires = now_ + 1h};
  }

  const std::filesystem::path folder_;
  const std::unique_ptr<TokenSigner> signer_;
  const Time now_ = Time(1'800'000'000s);
};

// The token with one of its three parts replaced.
std::string with_part(const std::string& token, int part, const std::string& text) {
  std::size_t from = 0;
  for (int i = 0; i < part; ++i) from = token.find('.', from) + 1;
  const std::size_t end = std::min(token.find('.', from), token.size());
  return token.substr(0, from) + text + token.substr(end);
}

std::string segment(const std::string& json) {
  std::string text = base64_encode(json);
  std::erase(text, '=');
  return text;
}

TEST_F(TokenTest, WhatWasSignedIsRead) {
  const auto read = signer_->verify(signer_->sign(claims()), now_);

  ASSERT_TRUE(read);
  EXPECT_EQ(read->issuer, "https://kubernetes.default.svc");
  EXPECT_EQ(read->audiences, claims().audiences);
  EXPECT_EQ(read->subject(), "system:serviceaccount:team-a:builder");
  EXPECT_EQ(read->account, claims().account);
  EXPECT_EQ(read->pod, claims().pod);
  EXPECT_FALSE(read->node);
  EXPECT_EQ(read->expires, now_ + 1h);
  EXPECT_EQ(read->id.size(), 36U);
}

TEST_F(TokenTest, TheKeyIsKept) {
  const std::string token = signer_->sign(claims());

  EXPECT_TRUE(load_token_signer(folder_, signer_->issuer())->verify(token, now_));
  EXPECT_FALSE(load_token_signer(folder_, "another")->verify(token, now_));
  std::filesystem::remove(folder_ / "sa.key");
  EXPECT_FALSE(load_token_signer(folder_, signer_->issuer())->verify(token, now_));
}

TEST_F(TokenTest, TokensEnd) {
  const std::string token = signer_->sign(claims());

  EXPECT_TRUE(signer_->verify(token, now_ + 1h - 1s));
  EXPECT_FALSE(signer_->verify(token, now_ + 1h));
  EXPECT_FALSE(signer_->verify(token, now_ - 1h)) << "not yet";
  EXPECT_TRUE(signer_->verify(token, now_ - 30s)) << "clocks differ a little";
}

TEST_F(TokenTest, EveryChangedByteIsNoticed) {
  const std::string token = signer_->sign(claims());

  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string bad = token;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(signer_->verify(bad, now_)) << i;
  }
}

TEST_F(TokenTest, OtherAlgorithmsAreRefused) {
  const std::string token = signer_->sign(claims());

  EXPECT_FALSE(signer_->verify(with_part(token, 0, segment(R"({"alg":"none"})")), now_));
  EXPECT_FALSE(signer_->verify(with_part(token, 0, segment(R"({"alg":"HS256"})")), now_));
  EXPECT_FALSE(signer_->verify(with_part(token, 2, ""), now_));
  EXPECT_FALSE(signer_->verify(with_part(token, 2, std::string(86, 'A')), now_)) << "zeroes";
}

TEST_F(TokenTest, HostileTextIsRefused) {
  const std::string token = signer_->sign(claims());
  const std::string head = token.substr(0, token.find('.'));

  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), head, head + ".", head + "..",
        token + "=", token + ".", token + "A", " " + token, token + "\n", std::string(1 << 20, 'A'),
        head + "." + std::string(1 << 20, 'A') + ".AAAA"})
    EXPECT_FALSE(signer_->verify(bad, now_)) << bad.substr(0, 80);
}

TEST_F(TokenTest, ClaimsThatDoNotAgreeAreRefused) {
  const std::string good =
      R"({"aud":["a"],"exp":20,"iat":10,"kubernetes.io":{"namespace":"n","serviceaccount":)"
      R"({"name":"s","uid":"u"}},"sub":"system:serviceaccount:n:s"})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };

  EXPECT_TRUE(parse_claims(good));
  EXPECT_FALSE(parse_claims(with("n:s", "n:t")));
  EXPECT_FALSE(parse_claims(with("\"n\"", "\"\"")));
  EXPECT_FALSE(parse_claims(with("[\"a\"]", "\"a\"")));
  EXPECT_FALSE(parse_claims(with("[\"a\"]", "[7]")));
  EXPECT_FALSE(parse_claims(with(":20", ":99999999999999")));
  EXPECT_FALSE(parse_claims(with(":20", ":-1")));
  EXPECT_FALSE(parse_claims(with("\"exp\":20,", "")));
  EXPECT_FALSE(parse_claims(with("\"exp\":20,", "\"exp\":20,\"exp\":30,"))) << "twice";
  EXPECT_FALSE(parse_claims(""));
  EXPECT_FALSE(parse_claims("[]"));
  EXPECT_FALSE(parse_claims(std::string(10'000, '[')));
}

TEST_F(TokenTest, AKeyMustBeOneOfOurs) {
  EXPECT_THROW(TokenSigner("nonsense", "i"), Error);
  EXPECT_THROW(TokenSigner(signer_->public_key(), "i"), Error);
}

TEST_F(TokenTest, TokensThatWouldBeTooLongAreNotMade) {
  Claims huge = claims();
  huge.audiences.emplace_back(kMostToken, 'a');

  EXPECT_THROW(signer_->sign(huge), Error);
}

TEST(RandomTokenTest, IsLongAndNeverTheSame) {
  EXPECT_EQ(random_token().size(), 64U);
  EXPECT_NE(random_token(), random_token());
}

}  // namespace
}  // namespace hearth::pki
