#include "serve/json_answer.h"

#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "base/json_text.h"
#include "serve/testing.h"

namespace hearth::serve {
namespace {

http::Response answer_with(const std::string& text) {
  Listening listening = listen_on_loopback();
  std::vector<Entrance> entrances;
  entrances.push_back({.listen = std::move(listening.socket), .handler = [&](Exchange& exchange) {
                         JsonAnswer answer(exchange, 201);
                         answer.add("[");
                         answer.add_text(text);
                         answer.add("]");
                         answer.finish();
                       }});
  const Server server(std::move(entrances));
  return TestClient(listening.port).ask({});
}

TEST(JsonAnswer, IsOneWhereItIsShort) {
  const auto response = answer_with("a\"b\xFF");
  EXPECT_EQ(response.status, 201U);
  EXPECT_EQ(response.headers.value("Content-Type"), "application/json");
  EXPECT_EQ(response.headers.value("Content-Length"), "14");
  EXPECT_EQ(response.body, "[\"a\\\"b\\ufffd\"]");
}

TEST(JsonAnswer, ComesInPiecesWhereItIsLong) {
  // Characters of every length, so that the pieces would end in the middle of some.
  std::string text;
  while (text.size() < 1'000'000) text += "aé€😀";
  const auto response = answer_with(text);
  EXPECT_EQ(response.status, 201U);
  EXPECT_EQ(response.headers.find("Content-Length"), nullptr);
  EXPECT_EQ(response.body, "[" + json_quote(text) + "]");
}

TEST(JsonAnswer, SurvivesALongTextThatIsNone) {
  std::string expected = "[\"";
  for (int i = 0; i < 100'000; ++i) expected += "\\ufffd";
  EXPECT_EQ(answer_with(std::string(100'000, '\x80')).body, expected + "\"]");
}

}  // namespace
}  // namespace hearth::serve
