#include "runtime/limits.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::runtime {
namespace {

using Ulimits = std::vector<linux::ResourceLimit>;

std::string complaint(const Ulimits& ulimits, Code code) {
  try {
    check(ulimits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return {};
}

TEST(Ulimits, WhatMakesNoSenseIsRefusedByName) {
  EXPECT_EQ(complaint({{.resource = RLIMIT_NOFILE, .soft = 3, .hard = 2}}, Code::invalid),
            "ulimit nofile: the soft limit 3 is above the hard one, 2");
  EXPECT_EQ(complaint({{.resource = RLIMIT_CPU, .soft = 1, .hard = 1},
                       {.resource = RLIMIT_CPU, .soft = 2, .hard = 2}},
                      Code::invalid),
            "two ulimits of cpu");
  EXPECT_EQ(complaint({{.resource = 77, .soft = 1, .hard = 1}}, Code::invalid),
            "there is no resource 77 to limit");
}

TEST(Ulimits, MoreThanWeHaveCannotBeGiven) {
  const std::uint64_t most = linux::own_limit(RLIMIT_NOFILE).hard;
  ASSERT_NE(most, linux::kUnlimited);

  EXPECT_EQ(complaint({{.resource = RLIMIT_NOFILE, .soft = most, .hard = most}}, Code::invalid),
            "");
  EXPECT_EQ(
      complaint({{.resource = RLIMIT_NOFILE, .soft = 1, .hard = most + 1}}, Code::unavailable),
      fmt::format("ulimit nofile: {} is more than this engine can give, which is {}", most + 1,
                  most));
  EXPECT_EQ(complaint({{.resource = RLIMIT_CORE, .soft = 0, .hard = linux::kUnlimited}},
                      Code::unavailable),
            "ulimit core: unlimited is more than this engine can give, which is 0");
}

TEST(Ulimits, OpenFilesHaveADefault) {
  const std::uint64_t most = linux::own_limit(RLIMIT_NOFILE).hard;
  const Ulimits completed = complete({{.resource = RLIMIT_CPU, .soft = 1, .hard = 1}});
  ASSERT_EQ(completed.size(), 2u);
  EXPECT_EQ(completed[1].resource, std::uint32_t{RLIMIT_NOFILE});
  EXPECT_EQ(completed[1].hard, std::min<std::uint64_t>(most, 1 << 20));

  const Ulimits asked = {{.resource = RLIMIT_NOFILE, .soft = 7, .hard = 8}};
  EXPECT_EQ(complete(asked), asked);
}

TEST(Hostname, IsLabelsWithDotsBetween) {
  for (const char* good : {"box", "a.b", "web-0.web.default.svc"})
    EXPECT_NO_THROW(check_hostname(good)) << good;
  EXPECT_NO_THROW(check_hostname(std::string(62, 'a') + ".b"));
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "A", "a b", "-a", "a\n127.0.0.1 b"})
    EXPECT_THROW(check_hostname(bad), Error) << bad;
  EXPECT_THROW(check_hostname(std::string(63, 'a') + ".b"), Error);
}

TEST(Limits, TooLittleForAnyProgramIsRefused) {
  EXPECT_NO_THROW(check(Limits{}));
  EXPECT_THROW(check(Limits{.memory_bytes = 4096}), Error);
  EXPECT_THROW(check(Limits{.pids = 1}), Error);
}

}  // namespace
}  // namespace hearth::runtime
