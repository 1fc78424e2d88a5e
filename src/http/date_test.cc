#include "http/date.h"

#include <gtest/gtest.h>

namespace hearth::http {
namespace {

using namespace std::chrono_literals;

TEST(Date, IsWrittenAsTheStandardHasIt) {
  EXPECT_EQ(format_date(Time(784111777s)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_date(Time(784111777s + 999ms)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_date(Time(-1ns)), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(format_date(Time(1709164800s)), "Thu, 29 Feb 2024 00:00:00 GMT");
}

TEST(Date, IsReadAsItIsWritten) {
  for (const auto time : {0s, 784111777s, 1709164800s, 4102444799s})
    EXPECT_EQ(parse_date(format_date(Time(time))), Time(time));
}

TEST(Date, IsNothingElse) {
  for (const char* text :
       {"", "now", "Sun, 06 Nov 1994 08:49:37 UTC", "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Fri, 01 Jan 9999 00:00:00 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_EQ(parse_date(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hearth::http
