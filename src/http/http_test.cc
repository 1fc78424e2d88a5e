#include "http/http.h"

#include <gtest/gtest.h>

namespace hearth::http {
namespace {

TEST(Headers, AreFoundWithoutRegardToCase) {
  Headers headers{{"Content-Type", "a"}, {"X", "1"}, {"x", "2"}};

  EXPECT_EQ(headers.value("content-type"), "a");
  EXPECT_EQ(headers.value("X"), "1");
  EXPECT_EQ(headers.value("Y"), "");
  EXPECT_EQ(headers.find("Y"), nullptr);

  headers.set("X", "3");
  EXPECT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers.value("x"), "3");
}

TEST(Headers, TokensOfListsAreFoundInEveryField) {
  const Headers headers{{"Connection", "keep-alive , Upgrade"}, {"Connection", "close"}};

  EXPECT_TRUE(headers.has_token("Connection", "upgrade"));
  EXPECT_TRUE(headers.has_token("connection", "close"));
  EXPECT_FALSE(headers.has_token("Connection", "up"));
}

TEST(Status, EveryCodeHasItsOwnTranslation) {
  EXPECT_EQ(status_from_code(Code::invalid), 400U);
  EXPECT_EQ(status_from_code(Code::unauthenticated), 401U);
  EXPECT_EQ(status_from_code(Code::forbidden), 403U);
  EXPECT_EQ(status_from_code(Code::not_found), 404U);
  EXPECT_EQ(status_from_code(Code::already_exists), 409U);
  EXPECT_EQ(status_from_code(Code::conflict), 409U);
  EXPECT_EQ(status_from_code(Code::exhausted), 429U);
  EXPECT_EQ(status_from_code(Code::timeout), 504U);
  EXPECT_EQ(status_from_code(Code::unavailable), 503U);
  EXPECT_EQ(status_from_code(Code::internal), 500U);
}

TEST(Status, ComesBackAsTheCodeItWasMadeFrom) {
  for (const Code code :
       {Code::invalid, Code::unauthenticated, Code::forbidden, Code::not_found, Code::conflict,
        Code::exhausted, Code::timeout, Code::unavailable, Code::internal}) {
    EXPECT_EQ(code_from_status(status_from_code(code)), code) << to_string(code);
  }
}

TEST(Status, HasAPhrase) {
  EXPECT_EQ(reason_phrase(404), "Not Found");
  EXPECT_EQ(reason_phrase(299), "Status");
}

TEST(Problem, IsJsonUnlessASurfaceSaysOtherwise) {
  const Response response = render_json_problem({404, Code::not_found, "no 'x\"'"});

  EXPECT_EQ(response.status, 404U);
  EXPECT_EQ(response.body, R"({"code":"not_found","message":"no 'x\"'"})");
}

TEST(ConstantTime, ComparesLikeTheOrdinaryKind) {
  EXPECT_TRUE(equal_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_constant_time("secret", "secreT"));
  EXPECT_FALSE(equal_constant_time("secret", "secret2"));
  EXPECT_TRUE(equal_constant_time("", ""));
}

TEST(Request, AParameterThatThePatternLacksIsOurMistake) {
  Request request;
  request.parameters.emplace_back("id", "7");

  EXPECT_EQ(request.parameter("id"), "7");
  EXPECT_THROW(request.parameter("name"), Error);
}

}  // namespace
}  // namespace hearth::http
