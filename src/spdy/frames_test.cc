#include "spdy/frames.h"

#include <zlib.h>

#include <gtest/gtest.h>

#include "base/error.h"
#include "spdy/dictionary_internal.h"

namespace hearth::spdy {
namespace {

std::vector<Event> decode(Decoder& decoder, std::string_view bytes) {
  decoder.feed(bytes);
  std::vector<Event> events;
  while (auto event = decoder.next()) events.push_back(*std::move(event));
  return events;
}

Code failure_of(std::string_view bytes) {
  Decoder decoder(Side::client);
  try {
    decode(decoder, bytes);
  } catch (const Error& error) {
    return error.code();
  }
  return Code::internal;
}

template <std::size_t N>
std::string bytes_of(const char (&text)[N]) {
  return std::string(text, N - 1);
}

// What kubectl 1.36 sent to a kube-apiserver for `exec -i`: four streams, in order.
const std::string kError = bytes_of(
    "\x80\x03\x00\x01\x00\x00\x00*\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00x\xf9\xe3\xc6\xa7\xc2"
    "b```\x04\xa7\xb3\x92\xa2\xd4\xc4\\hQ\xc2\x9aZT\x94_\x04\x00\x00\x00\xff\xff");
const std::string kStdin = bytes_of(
    "\x80\x03\x00\x01\x00\x00\x00\x17\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\xc2.U\\\x92\x92\x99"
    "\x07\x00\x00\x00\xff\xff");
const std::string kStdout = bytes_of(
    "\x80\x03\x00\x01\x00\x00\x00\x19\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\xc2*\xc5V\\\x92\x92_"
    "Z\x02\x00\x00\x00\xff\xff");

TEST(SpdyDictionary, IsTheOneThatWasPublished) {
  const std::string& text = dictionary();
  EXPECT_EQ(text.size(), 1423U);
  const auto* data = reinterpret_cast<const Bytef*>(text.data());
  EXPECT_EQ(adler32(adler32(0, nullptr, 0), data, static_cast<uInt>(text.size())), 0xe3c6a7c2U);
}

TEST(SpdyDecoder, ReadsWhatKubectlSends) {
  Decoder decoder(Side::client);
  const auto events = decode(decoder, kError + kStdin + kStdout);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(header(events[0].headers, "streamtype"), "error");
  EXPECT_EQ(header(events[1].headers, "streamtype"), "stdin");
  EXPECT_EQ(header(events[2].headers, "streamtype"), "stdout");
  EXPECT_EQ(header(events[2].headers, "port"), "");
  EXPECT_EQ(events[2].kind, EventKind::opened);
  EXPECT_EQ(events[2].stream, 5U);
}

TEST(SpdyDecoder, DoesNotCareHowBytesArrive) {
  Decoder decoder(Side::client);
  std::vector<Event> events;
  const std::string all = kError + kStdin + Encoder::ping(7) + Encoder::goaway(0);
  for (const char byte : all) {
    for (Event& event : decode(decoder, {&byte, 1})) events.push_back(std::move(event));
  }
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(header(events[1].headers, "streamtype"), "stdin");
  EXPECT_EQ(events[2].kind, EventKind::ping);
  EXPECT_EQ(events[2].number, 7U);
  EXPECT_EQ(events[3].kind, EventKind::goaway);
}

TEST(SpdyDecoder, PassesDataOnAsItComes) {
  Decoder decoder(Side::client);
  const std::string head = Encoder::data_head(3, 6, /*is_end=*/true);
  auto events = decode(decoder, head + "abc");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].bytes, "abc");
  EXPECT_FALSE(events[0].is_end);
  events = decode(decoder, "def");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].bytes, "def");
  EXPECT_TRUE(events[0].is_end);
  events = decode(decoder, Encoder::data_head(3, 0, /*is_end=*/true));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].bytes, "");
  EXPECT_TRUE(events[0].is_end);
}

TEST(SpdyDecoder, ReadsWhatTheEncoderWrites) {
  Encoder encoder;
  Decoder decoder(Side::client);
  const HeaderList headers = {{"streamtype", "data"}, {"port", "8080"}, {"requestid", "0"}};
  const auto events = decode(decoder, encoder.open(1, headers) + encoder.open(3, headers, true) +
                                          Encoder::reset(3, ResetReason::cancel));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].headers, headers);
  EXPECT_EQ(events[1].headers, headers);
  EXPECT_TRUE(events[1].is_end);
  EXPECT_EQ(events[2].kind, EventKind::reset);
  EXPECT_EQ(events[2].number, 5U);
}

TEST(SpdyDecoder, ReadsAServersAnswers) {
  // Of a kube-apiserver 1.36.
  const std::string first = bytes_of(
      "\x80\x03\x00\x02\x00\x00\x00\x14\x00\x00\x00\x01x\xf9\xe3\xc6\xa7\xc2"
      "b```\x00\x00\x00\x00\xff\xff");
  const std::string second = bytes_of(
      "\x80\x03\x00\x02\x00\x00\x00\x0c\x00\x00\x00\x03\x02"
      "a\x00\x00\x00\x00\xff\xff");
  Decoder decoder(Side::server);
  const auto events = decode(decoder, first + second);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].kind, EventKind::accepted);
  EXPECT_EQ(events[1].stream, 3U);
  EXPECT_TRUE(events[1].headers.empty());
}

TEST(SpdyDecoder, ReadsPastWhatItDoesNotNeed) {
  const std::string settings = bytes_of("\x80\x03\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00");
  const std::string window =
      bytes_of("\x80\x03\x00\x09\x00\x00\x00\x08\x00\x00\x00\x01\x00\x01\x00\x00");
  const std::string unknown = bytes_of("\x80\x03\x00\x63\x00\x00\x00\x02hi");
  Decoder decoder(Side::client);
  const auto events = decode(decoder, settings + window + unknown + Encoder::ping(1));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::ping);
}

TEST(SpdyDecoder, RefusesWhatIsNotSpdy) {
  EXPECT_EQ(failure_of(bytes_of("\x80\x02\x00\x01\x00\x00\x00\x00")), Code::invalid);
  EXPECT_EQ(failure_of(bytes_of("\x80\x03\x00\x01\x00\xff\xff\xff")), Code::exhausted);
  EXPECT_EQ(failure_of(bytes_of("\x80\x03\x00\x01\x00\x00\x00\x02hi")), Code::invalid);
  EXPECT_EQ(failure_of(bytes_of("\x80\x03\x00\x03\x00\x00\x00\x02hi")), Code::invalid);
  EXPECT_EQ(failure_of(kStdin), Code::invalid);  // its first block was not seen
}

TEST(SpdyDecoder, RefusesStreamsThatCannotBe) {
  Encoder twice;
  EXPECT_EQ(failure_of(twice.open(3, {}) + twice.open(3, {})), Code::invalid);
  Encoder backwards;
  EXPECT_EQ(failure_of(backwards.open(3, {}) + backwards.open(1, {})), Code::invalid);
  Encoder even;
  EXPECT_EQ(failure_of(even.open(2, {})), Code::invalid);
}

TEST(SpdyDecoder, RefusesHeadersThatGrowTooLong) {
  Encoder bomb;
  EXPECT_EQ(failure_of(bomb.open(1, {{"a", std::string(1 << 20, 'a')}})), Code::exhausted);
  Encoder crowd;
  EXPECT_EQ(failure_of(crowd.open(1, HeaderList(65, {"a", "b"}))), Code::exhausted);
}

TEST(SpdyHeaders, RefusesBlocksThatDoNotAddUp) {
  HeaderPacker packer;
  const std::string block = packer.pack({{"a", "b"}});
  HeaderUnpacker unpacker;
  EXPECT_THROW(unpacker.unpack(block.substr(0, block.size() / 2)), Error);
  HeaderUnpacker fresh;
  EXPECT_THROW(fresh.unpack("no zlib at all"), Error);
  HeaderUnpacker empty;
  EXPECT_THROW(empty.unpack(""), Error);
}

}  // namespace
}  // namespace hearth::spdy
