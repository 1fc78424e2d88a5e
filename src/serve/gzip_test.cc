#include "serve/gzip.h"

#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::serve {
namespace {

std::string compress(std::string_view text, std::size_t piece = 1 << 16) {
  std::string out;
  GzipWriter writer([&](std::string_view bytes) { out += bytes; });
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    writer.write(text.substr(0, piece));
  writer.end();
  return out;
}

std::string decompress(const std::string& bytes, std::size_t piece) {
  auto at = std::make_shared<std::size_t>(0);
  const Source source = inflate_gzip([&bytes, piece, at] {
    const std::string_view next = std::string_view(bytes).substr(*at, piece);
    *at += next.size();
    return next;
  });
  std::string out;
  for (std::string_view next = source(); !next.empty(); next = source()) out += next;
  EXPECT_EQ(source(), "");
  return out;
}

std::string noise(std::size_t size) {
  std::mt19937_64 random(7);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(Gzip, ComesBackAsItWas) {
  for (const std::string& text : {std::string(), std::string("hi"), std::string(1 << 20, 'a'),
                                  noise(1 << 20), noise(200'000) + std::string(1 << 20, 'b')}) {
    for (const std::size_t piece : {std::size_t{1} << 10, std::size_t{1} << 22})
      EXPECT_EQ(decompress(compress(text), piece), text);
  }
  EXPECT_EQ(decompress(compress("byte by byte", 1), 1), "byte by byte");
}

TEST(Gzip, CompressesWhatCanBe) {
  EXPECT_LT(compress(std::string(1 << 20, 'a')).size(), 20'000U);
  EXPECT_LT(compress(noise(1 << 20)).size(), (1U << 20) + 2000);
}

TEST(Gzip, TakesSeveralMembers) {
  EXPECT_EQ(decompress(compress("one ") + compress("two"), 5), "one two");
}

TEST(Gzip, RefusesWhatIsNone) {
  const std::string good = compress("some text that is long enough");
  EXPECT_THROW(decompress("", 10), Error);
  EXPECT_THROW(decompress("plain text", 10), Error);
  EXPECT_THROW(decompress(good.substr(0, good.size() - 1), 10), Error);
  EXPECT_THROW(decompress(good + "more", 10), Error);
  std::string damaged = good;
  damaged[damaged.size() - 6] ^= 1;  // its checksum
  EXPECT_THROW(decompress(damaged, 10), Error);
}

}  // namespace
}  // namespace hearth::serve
