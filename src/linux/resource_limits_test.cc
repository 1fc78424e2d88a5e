#include "linux/resource_limits.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

TEST(ResourceLimits, NamesAndNumbersBelongTogether) {
  EXPECT_EQ(find_resource("nofile"), RLIMIT_NOFILE);
  EXPECT_EQ(find_resource("as"), RLIMIT_AS);
  EXPECT_EQ(find_resource("NOFILE"), std::nullopt);
  EXPECT_EQ(find_resource(""), std::nullopt);
  for (std::uint32_t resource = 0; resource < RLIM_NLIMITS; ++resource)
    EXPECT_EQ(find_resource(resource_name(resource)), resource);
  EXPECT_THROW(resource_name(RLIM_NLIMITS), Error);
}

TEST(ResourceLimits, TellWhatWeHaveOurselves) {
  rlimit ours{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &ours), 0);

  EXPECT_EQ(
      own_limit(RLIMIT_NOFILE),
      (ResourceLimit{.resource = RLIMIT_NOFILE, .soft = ours.rlim_cur, .hard = ours.rlim_max}));
  EXPECT_THROW(own_limit(99), Error);
}

TEST(ResourceLimits, AreRaisedAsFarAsWeMay) {
  rlimit ours{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &ours), 0);
  const rlimit lower{.rlim_cur = 64, .rlim_max = ours.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);

  raise_own_limit(RLIMIT_NOFILE);

  EXPECT_EQ(own_limit(RLIMIT_NOFILE).soft, ours.rlim_max);
  EXPECT_EQ(own_limit(RLIMIT_NOFILE).hard, ours.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &ours), 0);
}

}  // namespace
}  // namespace hearth::linux
