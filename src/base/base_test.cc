#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/id.h"
#include "base/on_failure.h"

namespace hearth {
namespace {

using namespace std::chrono_literals;

TEST(Error, SaysWhatFailedOnWhatAndWhy) {
  errno = ENOENT;
  try {
    throw_errno("open '{}'", "/nowhere");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_STREQ(error.what(), "open '/nowhere': ENOENT: No such file or directory");
  }
}

TEST(Error, AnUnknownNumberFromTheWireIsInternal) {
  EXPECT_EQ(code_from_number(4), Code::not_found);
  EXPECT_EQ(code_from_number(0), Code::internal);
  EXPECT_EQ(code_from_number(200), Code::internal);
}

TEST(OnFailure, UndoesUnlessReleased) {
  int undone = 0;
  {
    const OnFailure undo([&] { ++undone; });
  }
  EXPECT_EQ(undone, 1);

  {
    OnFailure undo([&] { ++undone; });
    undo.release();
  }
  EXPECT_EQ(undone, 1);
}

TEST(OnFailure, AFailingUndoDoesNotHideTheFirstFailure) {
  EXPECT_THROW(
      {
        const OnFailure undo([] { throw std::runtime_error("second"); });
        throw Error(Code::invalid, "first");
      },
      Error);
}

TEST(Guarded, CountsRightUnderContention) {
  Guarded<int> counter(0);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 1000; ++j) counter.with([](int& value) { ++value; });
      });
    }
  }
  EXPECT_EQ(counter.with([](int value) { return value; }), 4000);
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const Time start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(5s);
  EXPECT_EQ(clock.now() - start, 5s);
}

TEST(Deadline, RoundsUpForPoll) {
  EXPECT_EQ(Deadline::never().poll_milliseconds(), -1);
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_EQ(Deadline::after(-1s).poll_milliseconds(), 0);
  EXPECT_TRUE(Deadline::after(-1s).passed());
  EXPECT_GT(Deadline::after(1h).poll_milliseconds(), 3'500'000);
}

TEST(Cancel, ASleepIsCalledOff) {
  std::stop_source stop;
  std::jthread other([&] { stop.request_stop(); });
  EXPECT_FALSE(sleep_for(stop.get_token(), 1h));
  EXPECT_TRUE(sleep_for(std::stop_token(), 1ns));
}

TEST(Id, IsALabelAndNeverTheSame) {
  const std::string id = new_sandbox_id();
  EXPECT_TRUE(is_label(id)) << id;
  EXPECT_EQ(id.size(), 19u);
  EXPECT_NE(id, new_sandbox_id());
  EXPECT_EQ(random_hex(8).size(), 16u);
}

TEST(Id, CharactersAreOfTheirAlphabetAndAllOfIt) {
  const std::string text = random_alphanumeric(10'000);
  EXPECT_EQ(text.size(), 10'000u);
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
  EXPECT_EQ(std::set<char>(text.begin(), text.end()).size(), 36u);
}

TEST(Id, KnowsLabels) {
  EXPECT_TRUE(is_label("a"));
  EXPECT_TRUE(is_label("my-box-1"));
  EXPECT_TRUE(is_label(std::string(63, 'x')));
  EXPECT_FALSE(is_label(""));
  EXPECT_FALSE(is_label(std::string(64, 'x')));
  EXPECT_FALSE(is_label("-a"));
  EXPECT_FALSE(is_label("a-"));
  EXPECT_FALSE(is_label("A"));
  EXPECT_FALSE(is_label(".."));
  EXPECT_FALSE(is_label("a/b"));
  EXPECT_FALSE(is_label(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace hearth
