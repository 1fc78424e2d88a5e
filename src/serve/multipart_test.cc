#include "serve/multipart.h"

#include <deque>

#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

const std::string kType = "multipart/form-data; boundary=XX";

// The bytes, so many at a time; each piece's memory is gone when the next one comes.
Source in_pieces(std::string bytes, std::size_t size) {
  struct State {
    std::string bytes;
    std::size_t at = 0;
    std::string piece;
  };
  auto state = std::make_shared<State>();
  state->bytes = std::move(bytes);
  return [state, size] {
    state->piece = state->bytes.substr(state->at, size);
    state->at += state->piece.size();
    return std::string_view(state->piece);
  };
}

struct Got {
  std::string name;
  std::string filename;
  std::string body;

  bool operator==(const Got&) const = default;
};

std::vector<Got> read_all(const std::string& bytes, std::size_t piece,
                          const std::string& type = kType) {
  MultipartReader reader(in_pieces(bytes, piece), type);
  std::vector<Got> all;
  while (auto part = reader.next_part()) {
    Got got{.name = part->name, .filename = part->filename.value_or("-"), .body = {}};
    for (std::string_view read = reader.read_piece(); !read.empty(); read = reader.read_piece())
      got.body += read;
    all.push_back(got);
  }
  return all;
}

const std::string kTwoParts =
    "--XX\r\n"
    "Content-Disposition: form-data; name=\"file\"; filename=\"dir/a.txt\"\r\n"
    "Content-Type: text/plain\r\n\r\n"
    "one\r\n--X\r\n--XY no\r--XX\n\r\r\n"
    "\r\n--XX  \r\n"
    "content-disposition: form-data; name=other\r\n\r\n"
    "\r\n--XX--\r\nepilogue";

TEST(Multipart, ReadsPartsHoweverTheyArrive) {
  // Content that almost is a boundary, and an empty part.
  std::string bytes = kTwoParts;
  bytes.replace(bytes.find("--XY"), 4, "--YX");
  const std::vector<Got> expected = {{"file", "dir/a.txt", "one\r\n--X\r\n--YX no\r--XX\n\r\r\n"},
                                     {"other", "-", ""}};
  for (const std::size_t piece : {1, 2, 3, 5, 7, 16, 1000}) {
    EXPECT_EQ(read_all(bytes, piece), expected) << piece;
    EXPECT_EQ(read_all("preamble\r\n" + bytes, piece), expected) << piece;
  }
}

TEST(Multipart, PassesOverWhatNobodyReads) {
  MultipartReader reader(
      in_pieces("--XX\r\nA: b\r\n\r\nlong content\r\n--XX\r\n\r\nx\r\n--XX--", 4), kType);
  EXPECT_EQ(reader.next_part()->headers.value("a"), "b");
  EXPECT_TRUE(reader.next_part());
  EXPECT_EQ(reader.read_piece(), "x");
  EXPECT_FALSE(reader.next_part());
  EXPECT_FALSE(reader.next_part());
  EXPECT_EQ(reader.read_piece(), "");
}

TEST(Multipart, RefusesWhatIsNone) {
  for (const char* type : {"", "text/plain", "multipart/form-data", "multipart/mixed; boundary=XX",
                           "multipart/form-data; boundary=\"\""}) {
    EXPECT_THROW(MultipartReader(in_pieces("", 1), type), Error) << type;
  }
  for (const std::string bytes :
       {"", "--XX", "--XX-", "--XX\r\n", "--XX\r\nA: b\r\n", "--XX\r\n\r\ncontent",
        "--XX\r\n\r\ncontent\r\n--X", "--XX nonsense\r\n\r\n\r\n--XX--",
        "--XX\r\nno colon\r\n\r\n\r\n--XX--", "--XY\r\n\r\n\r\n--XY--"}) {
    EXPECT_THROW(read_all(bytes, 3), Error) << bytes;
  }
  const std::string long_head = "--XX\r\nA: " + std::string(100'000, 'x') + "\r\n\r\n\r\n--XX--";
  EXPECT_THROW(read_all(long_head, 1000), Error);
  EXPECT_THROW(read_all(long_head, 1'000'000), Error);
}

TEST(Multipart, UnderstandsFileNames) {
  const auto filename = [](const std::string& parameter) {
    return read_all("--XX\r\nContent-Disposition: form-data; name=f; " + parameter +
                        "\r\n\r\n\r\n--XX--",
                    1000)
        .at(0)
        .filename;
  };
  EXPECT_EQ(filename("filename=plain.txt"), "plain.txt");
  EXPECT_EQ(filename(R"(filename="with \"quotes\"; and = signs")"), "with \"quotes\"; and = signs");
  EXPECT_EQ(filename(R"(filename="C:\temp\x")"), R"(C:\temp\x)");
  EXPECT_EQ(filename("filename=\"über\""), "über");
  EXPECT_EQ(filename("filename=\"a\"; filename*=UTF-8''%c3%bc%20x"), "ü x");
  EXPECT_EQ(filename("filename=\"a\"; filename*=latin1''%fc"), "a");
  EXPECT_EQ(filename("filename=\"never closed"), "never closed");
}

TEST(Multipart, FindsQuotedBoundaries) {
  EXPECT_EQ(
      read_all("--a b\r\n\r\nx\r\n--a b--", 2, "Multipart/Form-Data; Boundary=\"a b\"").size(), 1U);
}

}  // namespace
}  // namespace hearth::serve
