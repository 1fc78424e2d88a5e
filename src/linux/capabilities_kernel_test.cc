#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include "linux/fd.h"
#include "linux/kernel_testing.h"

namespace hearth::linux {
namespace {

// A line of /proc/self/status such as "CapEff:\t00000000a80425fb".
CapabilitySet status_set(const std::string& name) {
  const std::string text = read_file("/proc/self/status");
  const std::size_t at = text.find(name + ":\t") + name.size() + 2;
  std::uint64_t bits = 0;
  std::from_chars(text.data() + at, text.data() + at + 16, bits, 16);
  return CapabilitySet::from_bits(bits);
}

TEST(LimitCapabilities, LeavesExactlyWhatIsKept) {
  HEARTH_NEEDS(CAP_SETPCAP);
  HEARTH_NEEDS(CAP_NET_RAW);

  const int code = run_in_child([] {
    const CapabilitySet keep = default_capabilities();
    if (limit_capabilities(keep) != 0) return 1;
    if (status_set("CapBnd") != keep || status_set("CapPrm") != keep) return 2;
    if (status_set("CapEff") != keep) return 3;
    if (!status_set("CapInh").empty() || !status_set("CapAmb").empty()) return 4;
    if (has_capability(CAP_SYS_ADMIN) || !has_capability(CAP_CHOWN)) return 5;
    return ::sethostname("x", 1) != 0 && errno == EPERM ? 0 : 6;
  });

  EXPECT_EQ(code, 0);
}

TEST(LimitCapabilities, DropsInheritedAndAmbientOnes) {
  HEARTH_NEEDS(CAP_SETPCAP);

  const int code = run_in_child([] {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct halves[2];
    if (::syscall(SYS_capget, &header, halves) != 0) return 1;
    halves[0].inheritable = halves[0].permitted;
    if (::syscall(SYS_capset, &header, halves) != 0) return 2;
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) != 0) return 3;
    if (limit_capabilities({CAP_CHOWN}) != 0) return 4;
    return status_set("CapInh").empty() && status_set("CapAmb").empty() ? 0 : 5;
  });

  EXPECT_EQ(code, 0);
}

TEST(LimitCapabilities, CanDropEverything) {
  HEARTH_NEEDS(CAP_SETPCAP);

  EXPECT_EQ(run_in_child([] {
              if (limit_capabilities({}) != 0) return 1;
              return status_set("CapBnd").empty() && status_set("CapEff").empty() ? 0 : 2;
            }),
            0);
}

TEST(LimitCapabilities, AddsNothing) {
  HEARTH_NEEDS(CAP_SETPCAP);

  EXPECT_EQ(run_in_child([] {
              if (limit_capabilities({CAP_SETPCAP, CAP_CHOWN}) != 0) return 1;
              if (limit_capabilities({CAP_SETPCAP, CAP_KILL}) != 0) return 2;
              return status_set("CapEff") == CapabilitySet{CAP_SETPCAP} ? 0 : 3;
            }),
            0);
}

TEST(LimitCapabilities, SaysWhenItMayNot) {
  HEARTH_NEEDS(CAP_SETPCAP);

  EXPECT_EQ(run_in_child([] {
              if (limit_capabilities({CAP_CHOWN}) != 0) return 1;
              return limit_capabilities({});  // no SETPCAP any more
            }),
            EPERM);
}

}  // namespace
}  // namespace hearth::linux
