#include "linux/capabilities.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {
namespace {

TEST(CapabilitySet, HoldsWhatWasAdded) {
  CapabilitySet set{CAP_CHOWN, CAP_BPF};
  EXPECT_TRUE(set.has(CAP_CHOWN));
  EXPECT_TRUE(set.has(CAP_BPF));
  EXPECT_FALSE(set.has(CAP_KILL));
  EXPECT_EQ(set.bits(), 1U | std::uint64_t{1} << 39);

  set.remove(CAP_CHOWN);
  set.remove(CAP_BPF);
  EXPECT_TRUE(set.empty());
}

TEST(CapabilitySet, SpeaksNames) {
  EXPECT_EQ((CapabilitySet{CAP_NET_RAW, CAP_CHOWN}.names()),
            (std::vector<std::string>{"CAP_CHOWN", "CAP_NET_RAW"}));
  EXPECT_EQ(CapabilitySet::parse({"CAP_SYS_ADMIN", "chown", "cap_Kill"}),
            (CapabilitySet{CAP_SYS_ADMIN, CAP_CHOWN, CAP_KILL}));
  EXPECT_THROW(CapabilitySet::parse({"CAP_FLY"}), Error);
  EXPECT_THROW(CapabilitySet::parse({""}), Error);
  EXPECT_EQ(CapabilitySet::from_bits(std::uint64_t{1} << 63).names(),
            std::vector<std::string>{"CAP_63"});

  const auto all = CapabilitySet::from_bits((std::uint64_t{1} << (CAP_LAST_CAP + 1)) - 1);
  EXPECT_EQ(CapabilitySet::parse(all.names()), all);
}

TEST(CapabilitySet, TheDefaultHoldsNothingThatReachesTheHost) {
  const CapabilitySet set = default_capabilities();

  EXPECT_EQ(set.names().size(), 12U);
  for (const int dangerous : {CAP_SYS_ADMIN, CAP_MKNOD, CAP_AUDIT_WRITE, CAP_SYS_PTRACE,
                              CAP_SYS_MODULE, CAP_DAC_READ_SEARCH, CAP_NET_ADMIN, CAP_BPF}) {
    EXPECT_FALSE(set.has(dangerous)) << dangerous;
  }
}

}  // namespace
}  // namespace hearth::linux
