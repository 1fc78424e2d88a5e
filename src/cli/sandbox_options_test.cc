#include "cli/sandbox_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::cli {
namespace {

using network::Mode;
using runtime::MountKind;

template <typename F>
std::string complaint(F&& act) {
  try {
    std::forward<F>(act)();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(NetworkOptionsTest, WhatIsNotSaidIsTheWorldWhereThereIsOne) {
  const NetworkOptions nothing = parse_network("--network", {});

  EXPECT_EQ(nothing, NetworkOptions{});
  EXPECT_EQ(choose_policy(nothing, false), std::nullopt);
  EXPECT_EQ(choose_policy(nothing, true), (network::Policy{.mode = Mode::world}));
}

TEST(NetworkOptionsTest, AListMeansNothingElse) {
  const NetworkOptions listed = parse_network("--network", {.allow = {"1.1.1.1:443/tcp"}});
  EXPECT_EQ(listed.mode, Mode::listed);
  EXPECT_EQ(listed.rules.allow.size(), 1u);

  const NetworkOptions world =
      parse_network("--network", {.mode = "world", .allow = {"10.1.0.0/16"}, .no_dns = true});
  EXPECT_EQ(world.mode, Mode::world);
  EXPECT_FALSE(world.rules.dns);
}

TEST(NetworkOptionsTest, AWayOutIsNotQuietlyLost) {
  for (const NetworkWords& words :
       {NetworkWords{.mode = "world"}, NetworkWords{.mode = "listed"},
        NetworkWords{.allow = {"1.1.1.1"}}, NetworkWords{.open = {"1.1.1.1"}}}) {
    EXPECT_TRUE(choose_policy(parse_network("--network", words), false)) << words.mode;
  }
  for (const NetworkWords& words : {NetworkWords{.mode = "none"}, NetworkWords{.no_dns = true},
                                    NetworkWords{.deny = {"1.1.1.1"}}}) {
    EXPECT_FALSE(choose_policy(parse_network("--network", words), false)) << words.mode;
  }
  // With its link: the rules can change later.
  EXPECT_TRUE(choose_policy(parse_network("--network", {.mode = "none"}), true));
}

TEST(NetworkOptionsTest, MistakesNameTheFlag) {
  const auto mistake = [](const NetworkWords& words) {
    return complaint([&] { parse_network("--mode", words); });
  };
  EXPECT_TRUE(mentions(mistake({.mode = "all"}), "--mode: 'all'"));
  EXPECT_TRUE(mentions(mistake({.allow = {"example.com"}}), "--allow: 'example.com'"));
  EXPECT_TRUE(mentions(mistake({.deny = {"1.2.3.4:x"}}), "--deny: "));
  EXPECT_TRUE(mentions(mistake({.open = {""}}), "--open: "));
  EXPECT_TRUE(mentions(mistake({.mode = "none", .allow = {"1.1.1.1"}}), "--mode none"));
  EXPECT_TRUE(mentions(mistake({.deny = std::vector<std::string>(300, "1.1.1.1")}), "300"));
}

TEST(MountOptionsTest, NamesAreVolumesAndPathsAreOfThisMachine) {
  const auto volume = parse_volume("-v", "cache:/var/cache");
  EXPECT_EQ(volume.kind, MountKind::volume);
  EXPECT_EQ(volume.source, "cache");
  EXPECT_EQ(volume.target, "/var/cache");
  EXPECT_FALSE(volume.read_only);

  const auto host = parse_volume("-v", "/srv/data:/data:ro");
  EXPECT_EQ(host.kind, MountKind::host);
  EXPECT_EQ(host.source, "/srv/data");
  EXPECT_TRUE(host.read_only);
  EXPECT_FALSE(parse_volume("-v", "a:/b:rw").read_only);
}

TEST(MountOptionsTest, MemoryHasASize) {
  EXPECT_EQ(parse_tmpfs("--tmpfs", "/scratch").bytes, 64u << 20);
  const auto small = parse_tmpfs("--tmpfs", "/scratch:16m");
  EXPECT_EQ(small.kind, MountKind::memory);
  EXPECT_EQ(small.target, "/scratch");
  EXPECT_EQ(small.bytes, 16u << 20);
}

TEST(MountOptionsTest, MistakesNameTheFlag) {
  for (const char* text : {"", "cache", ":", "cache:", "cache:here", "cache:/", ":/x:ro:no",
                           "a:/b:wr", "./a:/b", "../a:/b", "/a:b"}) {
    EXPECT_TRUE(mentions(complaint([&] { parse_volume("-v", text); }), "-v: ")) << text;
  }
  for (const char* text : {"", "scratch", "/", ":1m", "/a:big", "/a:"})
    EXPECT_TRUE(mentions(complaint([&] { parse_tmpfs("--tmpfs", text); }), "--tmpfs: ")) << text;
}

TEST(SecretTest, ATargetAndAFile) {
  EXPECT_EQ(parse_secret("--secret", "/run/key=a=b"),
            (SecretFile{.target = "/run/key", .path = "a=b"}));
  EXPECT_EQ(parse_secret("--secret", "/run/key=-").path, "-");
}

TEST(SecretTest, MistakesDoNotRepeatWhatMayBeTheSecret) {
  for (const char* text : {"", "/run/key", "/run/key=", "hunter2", "key=hunter2", "/=hunter2"}) {
    const std::string said = complaint([&] { parse_secret("--secret", text); });
    EXPECT_TRUE(mentions(said, "--secret: ")) << text;
    EXPECT_FALSE(mentions(said, "hunter2")) << text;
  }
}

TEST(SecretTest, IsReadWhole) {
  const auto mount = read_secret({.target = "/run/key", .path = "/proc/self/comm"});
  EXPECT_EQ(mount.kind, MountKind::file);
  EXPECT_EQ(mount.target, "/run/key");
  EXPECT_TRUE(mount.content.ends_with('\n'));
}

TEST(SecretTest, OneThatCannotBeReadIsNamed) {
  const auto read = [](const char* path) {
    return complaint([&] { read_secret({.target = "/run/key", .path = path}); });
  };
  EXPECT_TRUE(mentions(read("/dev/zero"), "/dev/zero"));
  EXPECT_THROW(read_secret({.target = "/run/key", .path = "/nonexistent"}), Error);
  EXPECT_THROW(read_secret({.target = "/run/key", .path = "/"}), Error);
}

TEST(DiskOption, IsOneOfTwo) {
  EXPECT_EQ(parse_disk_place("--disk-on", "memory"), runtime::DiskPlace::memory);
  EXPECT_EQ(parse_disk_place("--disk-on", "disk"), runtime::DiskPlace::disk);
  EXPECT_TRUE(mentions(complaint([] { parse_disk_place("--disk-on", "tape"); }), "'tape'"));
}

TEST(UlimitOption, IsSoftAndHard) {
  EXPECT_EQ(parse_ulimit("--ulimit", "nofile=1024:4096"),
            (linux::ResourceLimit{.resource = RLIMIT_NOFILE, .soft = 1024, .hard = 4096}));
  EXPECT_EQ(parse_ulimit("--ulimit", "nproc=7"),
            (linux::ResourceLimit{.resource = RLIMIT_NPROC, .soft = 7, .hard = 7}));
  EXPECT_EQ(
      parse_ulimit("--ulimit", "stack=8388608:unlimited"),
      (linux::ResourceLimit{.resource = RLIMIT_STACK, .soft = 8388608, .hard = linux::kUnlimited}));
}

TEST(UlimitOption, WhatIsNoneIsRefusedWithAHint) {
  const auto refused = [](const char* text) {
    return complaint([&] { parse_ulimit("--ulimit", text); });
  };
  EXPECT_TRUE(mentions(refused("files=3"), "there is no limit 'files'; there are as, core, cpu"));
  for (const char* text : {"nofile", "nofile=", "nofile=:", "nofile=1:", "nofile=-1", "nofile=1k",
                           "nofile=1:2:3", "nofile= 1", "nofile=99999999999999999999"}) {
    EXPECT_TRUE(mentions(refused(text), "write nofile=SOFT or nofile=SOFT:HARD")) << text;
  }
  EXPECT_TRUE(mentions(refused("nofile=2:1"), "soft limit above the hard one"));
  EXPECT_TRUE(mentions(refused("nofile=unlimited:1"), "soft limit above the hard one"));
}

}  // namespace
}  // namespace hearth::cli
