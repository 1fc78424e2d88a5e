// The parts that need no kernel: frames, characters, quoting, names.
#include <gtest/gtest.h>

#include "base/error.h"
#include "interpreter/ascii_json.h"
#include "interpreter/drivers.h"
#include "interpreter/frames.h"
#include "interpreter/language.h"

namespace hearth::interpreter {
namespace {

using Kind = Frame::Kind;

// What a reader makes of `text` when it arrives in pieces of `size`: "ready|<content>|end 3 0".
std::string read_all(std::string_view text, std::size_t size) {
  FrameReader reader;
  std::string seen;
  while (!text.empty()) {
    reader.feed(text.substr(0, size));
    text.remove_prefix(std::min(size, text.size()));
    while (const auto frame = reader.next()) {
      if (frame->kind == Kind::ready) seen += "ready|";
      if (frame->kind == Kind::sync) seen += "sync|";
      if (frame->kind == Kind::piece) seen += frame->piece;
      if (frame->kind == Kind::event_end) seen += "|";
      if (frame->kind == Kind::end) seen += fmt::format("end {} {}|", frame->count, frame->status);
    }
  }
  return seen;
}

TEST(Frames, AreTheSameInPiecesOfAnySize) {
  const std::string_view text =
      "ready\nevent 7\n{\"a\":1}sync\nevent 0\nevent 5\nend\n\nend 7 130\n";
  for (std::size_t size = 1; size <= text.size(); ++size)
    EXPECT_EQ(read_all(text, size), "ready|{\"a\":1}|sync||end\n\n|end 7 130|") << size;
}

TEST(Frames, RefuseWhatIsNone) {
  for (const char* text :
       {"\n", "hello\n", "event\n", "event \n", "event x\n", "event -1\n", "event 1 2\n",
        "event 99999999999999999999\n", "event 2000000000\n", "end\n", "end 1\n", "end 1 256\n",
        "end 1 2 3\n", "end 4294967296 0\n", "ready \n"}) {
    EXPECT_THROW(read_all(text, 100), Error) << text;
  }
}

TEST(Frames, RefuseAHeaderWithoutAnEnd) {
  EXPECT_THROW(read_all(std::string(1000, 'a'), 7), Error);
}

TEST(Characters, AreNotCut) {
  EXPECT_EQ(whole_characters("abc"), 3U);
  EXPECT_EQ(whole_characters(""), 0U);
  const std::string euro = "a\xE2\x82\xAC";
  EXPECT_EQ(whole_characters(euro), 4U);
  EXPECT_EQ(whole_characters(euro.substr(0, 3)), 1U);
  EXPECT_EQ(whole_characters(euro.substr(0, 2)), 1U);
  // What is broken anyway is not kept back for ever.
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80"), 4U);
  EXPECT_EQ(whole_characters("\xFF"), 0U);
  EXPECT_EQ(whole_characters("\xFF\x80\x80\x80"), 4U);
}

TEST(Characters, AreAsciiWhereverTheyAreCut) {
  // e acute, a line separator, a smiling face, and what is no UTF-8.
  const std::string text = "{\"a\":\"\xC3\xA9\xE2\x80\xA8z\xF0\x9F\x98\x80\xFF\"}\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    AsciiJson json;
    std::string ascii;
    for (std::size_t at = 0; at < text.size(); at += size)
      json.append(ascii, std::string_view(text).substr(at, size));
    EXPECT_EQ(ascii, "{\"a\":\"\\u00e9\\u2028z\\ud83d\\ude00\\ufffd\"}\n") << size;
  }
}

TEST(Languages, HaveAliases) {
  EXPECT_EQ(normal_language(""), "python");
  EXPECT_EQ(normal_language("  "), "python");
  EXPECT_EQ(normal_language(" JS\n"), "javascript");
  EXPECT_EQ(normal_language("ts"), "typescript");
  EXPECT_EQ(normal_language("Bash"), "bash");
  EXPECT_EQ(normal_language("Zig"), "zig");
}

TEST(Languages, AreNamedWhenThereIsNoKernel) {
  try {
    kit_for("cobol");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("'cobol'"), std::string_view::npos);
  }
}

TEST(Languages, HaveTheirDriversEmbedded) {
  EXPECT_NE(driver_text("driver").find("def serve():"), std::string_view::npos);
  EXPECT_NE(driver_text("node_driver").find("Runtime.evaluate"), std::string_view::npos);
  EXPECT_THROW(driver_text("nothing"), Error);
}

TEST(Cells, AreFramed) {
  const Cell cell{.count = 3,
                  .language = "python",
                  .code = "a\nb",
                  .sets = {{"A", "1"}},
                  .unsets = {"B"},
                  .resets = {},
                  .reset_unsets = {"A"}};
  using namespace std::string_literals;
  EXPECT_EQ(frame_of(cell), "run 3 python 6 2 3\nA=1\0B\0A\0a\nb"s);
}

TEST(Cells, AreOneLineForAShell) {
  const Cell cell{.count = 3,
                  .language = "bash",
                  .code = "echo 'it\\'\necho",
                  .sets = {{"A", "x\ny"}, {"not-a-name", "1"}},
                  .unsets = {"B"}};
  EXPECT_EQ(shell_line_of(cell),
            "run 3 \\builtin unset -v B; \\builtin export A=$'x\\ny'; __hearth_code=$'echo "
            "\\'it\\\\\\'\\necho'\n");
  EXPECT_THROW(shell_line_of({.code = std::string(1, '\0')}), Error);
}

}  // namespace
}  // namespace hearth::interpreter
