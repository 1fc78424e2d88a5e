#include "envd/connect.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace hearth::envd {
namespace {

using namespace std::chrono_literals;

serve::Source in_pieces(std::string bytes, std::size_t size) {
  auto rest = std::make_shared<std::string>(std::move(bytes));
  auto piece = std::make_shared<std::string>();
  return [rest, piece, size] {
    *piece = rest->substr(0, size);
    rest->erase(0, size);
    return std::string_view(*piece);
  };
}

TEST(Envelopes, AreReadHoweverTheyArrive) {
  const std::string bytes =
      make_envelope(0, "one") + make_envelope(0, "") + make_envelope(kEndOfStream, "{}");
  for (const std::size_t size : {1, 3, 7, 100}) {
    EnvelopeReader reader(in_pieces(bytes, size));
    EXPECT_EQ(reader.next()->payload, "one");
    EXPECT_EQ(reader.next()->payload, "");
    EXPECT_EQ(reader.next()->flags, kEndOfStream);
    EXPECT_FALSE(reader.next());
  }
}

TEST(Envelopes, AreRefusedWhenTheyAreCutShortOrTooMuch) {
  for (const std::string& bytes :
       {std::string("\0", 1), make_envelope(0, "abc").substr(0, 7),
        make_envelope(0, "abc").substr(0, 5), make_envelope(kCompressed, "abc"),
        std::string("\0\xff\xff\xff\xff", 5)}) {
    EnvelopeReader reader(in_pieces(bytes, 3));
    EXPECT_THROW(reader.next(), Error);
  }
}

TEST(Envelopes, CountForWhatIsKept) {
  serve::Allowance allowance(std::size_t{1} << 20);
  const std::string large = make_envelope(0, std::string(700 << 10, 'x'));
  serve::Share kept(&allowance);
  EnvelopeReader reader(in_pieces(large + make_envelope(0, "small"), 1 << 20), &kept);
  EXPECT_TRUE(reader.next());
  EXPECT_EQ(allowance.taken(), std::size_t{700} << 10);
  {
    serve::Share another(&allowance);
    EnvelopeReader full(in_pieces(large, 1 << 20), &another);
    EXPECT_THROW(full.next(), Error);
    EnvelopeReader heard(in_pieces(make_envelope(0, "small"), 1 << 20), &another);
    EXPECT_TRUE(heard.next());
  }
  EXPECT_EQ(allowance.taken(), std::size_t{700} << 10);
  EXPECT_TRUE(reader.next());
  EXPECT_EQ(allowance.taken(), 0U);
}

Call call_of(const http::Headers& headers) {
  Call call = find_call({{"Content-Type", "application/json"}}).value();
  read_call_head(headers, call);
  return call;
}

TEST(Calls, AreKnownByTheirContentType) {
  EXPECT_FALSE(find_call({{"Content-Type", "application/grpc"}}));
  EXPECT_FALSE(find_call({}));
  EXPECT_FALSE(find_call({{"Content-Type", "application/json; charset=utf-8"}})->is_stream);
  EXPECT_EQ(find_call({{"Content-Type", "application/proto"}})->codec, Codec::proto);
  EXPECT_TRUE(find_call({{"Content-Type", "application/connect+proto"}})->is_stream);
  EXPECT_TRUE(find_call({{"Content-Type", "Application/Connect+JSON"}})->is_stream);
}

TEST(Calls, HaveAUserTimesAndAVersion) {
  EXPECT_EQ(call_of({{"Authorization", "Basic " + base64_encode("root:")}}).user, "root");
  EXPECT_EQ(call_of({{"Authorization", "basic " + base64_encode("a:secret:x")}}).user, "a");
  EXPECT_EQ(call_of({{"Authorization", "Bearer abc"}}).user, "");
  EXPECT_EQ(call_of({{"Authorization", "Basic ???"}}).user, "");
  EXPECT_EQ(call_of({{"Connect-Timeout-Ms", "1500"}}).timeout, Duration(1500ms));
  EXPECT_FALSE(call_of({{"Connect-Timeout-Ms", "0"}}).timeout);
  EXPECT_EQ(call_of({{"Keepalive-Ping-Interval", "50"}}).keepalive, Duration(50s));
  for (const char* text : {"", "x", "0", "-1", "99999999999999999999"})
    EXPECT_EQ(call_of({{"Keepalive-Ping-Interval", text}}).keepalive, Duration(90s));
  for (const char* text : {"x", "-1", "12345678901", "1.5"})
    EXPECT_THROW(call_of({{"Connect-Timeout-Ms", text}}), RpcError);
  EXPECT_NO_THROW(call_of({{"Connect-Protocol-Version", "1"}}));
  EXPECT_THROW(call_of({{"Connect-Protocol-Version", "2"}}), RpcError);
  EXPECT_THROW(call_of({{"Content-Encoding", "gzip"}}), RpcError);
}

TEST(Problems, SpeakTheProtocol) {
  const auto problem = [](Code code) { return rpc_problem(Error(code, "x")).code; };
  EXPECT_EQ(problem(Code::invalid), RpcCode::invalid_argument);
  EXPECT_EQ(problem(Code::conflict), RpcCode::failed_precondition);
  EXPECT_EQ(problem(Code::timeout), RpcCode::deadline_exceeded);
  EXPECT_EQ(rpc_problem(RpcError(RpcCode::unknown, "x")).code, RpcCode::unknown);
  EXPECT_EQ(problem_json({.code = RpcCode::not_found, .message = "a \"b\""}),
            R"({"code":"not_found","message":"a \"b\""})");
  EXPECT_EQ(status_of(RpcCode::canceled), 499U);
  EXPECT_EQ(status_of(RpcCode::resource_exhausted), 429U);
  EXPECT_EQ(status_of(RpcCode::unauthenticated), 401U);
}

}  // namespace
}  // namespace hearth::envd
