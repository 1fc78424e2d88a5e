#include "runtime/log_printer.h"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

using guest::Stream;

Time at(int seconds) {
  return Time(std::chrono::seconds(seconds));
}

class LogPrinterTest : public testing::Test {
 protected:
  LogPrinter make(const LogChoice& choice) {
    return {choice, [this](Stream stream, std::string_view text) {
              (stream == Stream::output ? output_ : error_) += text;
              all_ += text;
            }};
  }
  static guest::Output piece(int seconds, const std::string& text, Stream stream = Stream::output) {
    return {.bytes = text, .stream = stream, .time = at(seconds)};
  }

  std::string output_, error_, all_;
};

TEST_F(LogPrinterTest, ShowsPartsOfLinesAsTheyComeEachToItsStream) {
  LogPrinter printer = make({});
  printer.add(piece(1, "on"));
  EXPECT_EQ(output_, "on");
  printer.add(piece(1, "oh\n", Stream::error));
  printer.add(piece(1, "e\ntwo\n"));

  EXPECT_EQ(output_, "one\ntwo\n");
  EXPECT_EQ(error_, "oh\n");
}

TEST_F(LogPrinterTest, GivesEachLineTheTimeOfItsBeginning) {
  LogPrinter printer = make({.timestamps = true});
  printer.add(piece(1, "a\nb"));
  printer.add(piece(2, "c\n"));

  EXPECT_EQ(output_, "1970-01-01T00:00:01.000000000Z a\n1970-01-01T00:00:01.000000000Z bc\n");
}

TEST_F(LogPrinterTest, LeavesOutWhatBeganBefore) {
  LogPrinter printer = make({.since = at(10)});
  printer.add(piece(9, "old\nold too"));
  printer.add(piece(10, ", to its end\nnew\n"));

  EXPECT_EQ(output_, "new\n");
}

TEST_F(LogPrinterTest, TheTailIsTheLastLinesOfBothStreamsInOrder) {
  LogPrinter printer = make({.tail = 2});
  printer.add(piece(1, "1\n2\n"));
  printer.add(piece(1, "3\n", Stream::error));
  printer.add(piece(1, "4"));
  EXPECT_EQ(all_, "");
  printer.end_tail();
  EXPECT_EQ(all_, "3\n4");
  printer.add(piece(1, "4\n5\n"));

  EXPECT_EQ(all_, "3\n44\n5\n");
}

TEST_F(LogPrinterTest, ALineThatLeftTheTailStaysAway) {
  LogPrinter printer = make({.tail = 1});
  printer.add(piece(1, "begun", Stream::error));
  printer.add(piece(1, "last\n"));
  printer.add(piece(1, ", still", Stream::error));
  printer.end_tail();
  printer.add(piece(1, ", ended\nshown\n", Stream::error));

  EXPECT_EQ(output_, "last\n");
  EXPECT_EQ(error_, "shown\n");
}

TEST_F(LogPrinterTest, ATailOfNothingIsWhatComes) {
  LogPrinter printer = make({.tail = 0});
  printer.add(piece(1, "old\n"));
  printer.end_tail();
  printer.add(piece(1, "new\n"));

  EXPECT_EQ(all_, "new\n");
}

}  // namespace
}  // namespace hearth::runtime
