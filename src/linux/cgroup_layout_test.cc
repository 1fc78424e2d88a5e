#include "linux/cgroup_layout.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::linux {

static bool operator==(const CgroupSetting& a, const CgroupSetting& b) {
  return a.controller == b.controller && a.file == b.file && a.text == b.text &&
         a.optional == b.optional;
}
static void PrintTo(const CgroupSetting& setting, std::ostream* out) {
  *out << setting.controller << ' ' << setting.file << '=' << setting.text
       << (setting.optional ? " (optional)" : "");
}
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kPureV2 =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "25 22 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:14 - proc proc rw\n"
    "30 26 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

constexpr std::string_view kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

constexpr std::string_view kPureV1 =
    "24 19 0:20 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755\n"
    "25 24 0:21 / /sys/fs/cgroup/systemd rw shared:10 - cgroup cgroup "
    "rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd\n"
    "27 24 0:23 / /sys/fs/cgroup/cpu,cpuacct rw shared:13 - cgroup cgroup rw,cpu,cpuacct\n"
    "28 24 0:24 / /sys/fs/cgroup/memory rw shared:14 - cgroup cgroup rw,memory\n"
    "29 24 0:25 / /sys/fs/cgroup/pids rw shared:15 - cgroup cgroup rw,pids\n"
    "30 24 0:26 / /sys/fs/cgroup/freezer rw shared:16 - cgroup cgroup rw,freezer\n"
    "31 24 0:27 / /sys/fs/cgroup/net_cls,net_prio rw shared:17 - cgroup cgroup "
    "rw,net_cls,net_prio\n";

// Docker gives a container its own folder of each hierarchy, read-only; a privileged one then
// mounts the whole once more.
constexpr std::string_view kNested =
    "610 608 0:57 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755\n"
    "611 610 0:29 /docker/4f9c /sys/fs/cgroup/memory ro,nosuid,nodev - cgroup cgroup rw,memory\n"
    "612 610 0:30 /docker/4f9c /sys/fs/cgroup/pids rw,nosuid,nodev - cgroup cgroup rw,pids\n"
    "613 610 0:30 / /mnt/pids rw,nosuid,nodev master:9 - cgroup cgroup rw,pids\n"
    "614 610 0:30 /docker /mnt/more-pids rw,nosuid,nodev - cgroup cgroup rw,pids\n";

TEST(CgroupLayout, FindsOneHierarchyOnAPureV2Host) {
  const auto found = find_cgroup_hierarchies(kPureV2);

  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].v2);
  EXPECT_EQ(found[0].mount_point, "/sys/fs/cgroup");
}

TEST(CgroupLayout, LeavesOutHierarchiesWithoutControllers) {
  const auto found = find_cgroup_hierarchies(kPureV1);

  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[0].controllers, (Names{"cpu", "cpuacct"}));
  EXPECT_EQ(found[0].mount_point, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(found[4].controllers, (Names{"net_cls", "net_prio"}));
}

TEST(CgroupLayout, PrefersTheMountThatShowsMostAndIgnoresReadOnlyOnes) {
  const auto found = find_cgroup_hierarchies(kNested);

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].controllers, Names{"pids"});
  EXPECT_EQ(found[0].mount_point, "/mnt/pids");
}

TEST(CgroupLayout, RefusesTextThatIsNoMountinfo) {
  EXPECT_THROW(find_cgroup_hierarchies("what is this?\n"), Error);
}

TEST(CgroupLayout, UsesV2AloneWhereItHasTheControllers) {
  const auto chosen = choose_cgroup_hierarchies(find_cgroup_hierarchies(kPureV2),
                                                {"cpuset", "cpu", "io", "memory", "pids", "misc"});

  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen[0].controllers, (Names{"cpu", "io", "memory", "pids"}));
}

TEST(CgroupLayout, UsesV1ForLimitsAndV2ForTheRestOnAHybridHost) {
  const auto chosen = choose_cgroup_hierarchies(find_cgroup_hierarchies(kHybrid), {"hugetlb"});

  ASSERT_EQ(chosen.size(), 4U);
  EXPECT_TRUE(chosen[0].v2);
  EXPECT_EQ(chosen[0].controllers, Names{});
  EXPECT_EQ(chosen[1].controllers, Names{"cpu"});
  EXPECT_EQ(chosen[2].controllers, Names{"memory"});
  EXPECT_EQ(chosen[3].controllers, Names{"pids"});
}

TEST(CgroupLayout, UsesTheV1FreezerOnlyWithoutV2) {
  const auto chosen = choose_cgroup_hierarchies(find_cgroup_hierarchies(kPureV1), {});

  ASSERT_EQ(chosen.size(), 4U);
  EXPECT_EQ(chosen[0].controllers, Names{"cpu"});
  EXPECT_EQ(chosen[3].controllers, Names{"freezer"});
}

TEST(CgroupLayout, UsesV1ForDisksOnDemandAndOnlyWhereV2CannotLimitThem) {
  const std::string hybrid =
      std::string(kHybrid) +
      "42 31 0:39 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n";
  const auto chosen = choose_cgroup_hierarchies(find_cgroup_hierarchies(hybrid), {});
  ASSERT_EQ(chosen.size(), 5U);
  EXPECT_EQ(chosen[4].controllers, Names{"blkio"});
  EXPECT_TRUE(chosen[4].on_demand);
  EXPECT_FALSE(chosen[3].on_demand);

  EXPECT_EQ(choose_cgroup_hierarchies(find_cgroup_hierarchies(hybrid), {"io"}).size(), 4U);
}

TEST(CgroupLayout, DisksAreLimitedByNumber) {
  const CgroupLimits limits{.io = {.device = "8:0", .read_bytes = 4096, .write_ops = 7}};
  EXPECT_EQ(
      v2_settings(limits),
      (std::vector<CgroupSetting>{{"io", "io.max", "8:0 rbps=4096 wbps=max riops=max wiops=7"}}));
  EXPECT_EQ(v1_settings(limits),
            (std::vector<CgroupSetting>{{"blkio", "blkio.throttle.read_bps_device", "8:0 4096"},
                                        {"blkio", "blkio.throttle.write_bps_device", "8:0 0"},
                                        {"blkio", "blkio.throttle.read_iops_device", "8:0 0"},
                                        {"blkio", "blkio.throttle.write_iops_device", "8:0 7"}}));
}

TEST(CgroupLayout, V1LimitsMemoryAndSwapTogether) {
  const auto settings = v1_settings({.memory_bytes = 64 << 20, .cpu_millis = 1500, .pids = 20});

  EXPECT_EQ(settings, (std::vector<CgroupSetting>{
                          {"memory", "memory.limit_in_bytes", "67108864", false},
                          {"memory", "memory.memsw.limit_in_bytes", "67108864", true},
                          {"cpu", "cpu.cfs_period_us", "100000", false},
                          {"cpu", "cpu.cfs_quota_us", "150000", false},
                          {"pids", "pids.max", "20", false},
                      }));
}

TEST(CgroupLayout, V2LimitsMemoryWithoutSwap) {
  const auto settings = v2_settings({.memory_bytes = 64 << 20, .cpu_millis = 250, .pids = 20});

  EXPECT_EQ(settings, (std::vector<CgroupSetting>{
                          {"memory", "memory.max", "67108864", false},
                          {"memory", "memory.swap.max", "0", true},
                          {"cpu", "cpu.max", "25000 100000", false},
                          {"pids", "pids.max", "20", false},
                      }));
}

TEST(CgroupLayout, ZeroMeansNoLimit) {
  EXPECT_TRUE(v1_settings({}).empty());
  EXPECT_TRUE(v2_settings({}).empty());
}

TEST(CgroupLayout, NeverAsksForLessCpuThanTheKernelTakes) {
  EXPECT_EQ(v2_settings({.cpu_millis = 1})[0].text, "1000 100000");
}

TEST(CgroupLayout, ReadsFlatKeyedFiles) {
  constexpr std::string_view kText = "oom 3\noom_kill 2\noom_kill_disable 0\n";

  EXPECT_EQ(flat_keyed_value(kText, "oom_kill"), 2U);
  EXPECT_EQ(flat_keyed_value(kText, "oom"), 3U);
  EXPECT_EQ(flat_keyed_value(kText, "low"), 0U);
  EXPECT_EQ(flat_keyed_value("oom_kill", "oom_kill"), 0U);
  EXPECT_EQ(flat_keyed_value("", "oom"), 0U);
}

}  // namespace
}  // namespace hearth::linux
