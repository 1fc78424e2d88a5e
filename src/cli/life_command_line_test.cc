#include "cli/command_line_testing_internal.h"

namespace hearth::cli {
namespace {

template <typename T>
T parse(const Words& words) {
  return std::get<T>(parse_order(split_command_line(words)));
}

TEST(LifeCommandLineTest, RunTakesANetworkAndMounts) {
  const auto options =
      parse<RunOptions>({"run", "--allow", "1.1.1.1:443/tcp", "--allow", "1.0.0.1", "--deny",
                         "8.8.8.8", "--no-dns", "-v", "cache:/cache", "-v", "/srv:/srv:ro",
                         "--tmpfs", "/scratch:1m", "--secret", "/run/key=-", "env", "-v"});

  EXPECT_EQ(options.network.mode, network::Mode::listed);
  EXPECT_EQ(options.network.rules.allow.size(), 2u);
  EXPECT_EQ(options.network.rules.deny.size(), 1u);
  EXPECT_FALSE(options.network.rules.dns);
  ASSERT_EQ(options.mounts.size(), 3u);
  EXPECT_EQ(options.mounts[1].kind, runtime::MountKind::host);
  EXPECT_EQ(options.mounts[2].bytes, 1u << 20);
  EXPECT_EQ(options.secrets, (std::vector<SecretFile>{{.target = "/run/key", .path = "-"}}));
  EXPECT_EQ(options.command.command, (Words{"env", "-v"}));
}

TEST(LifeCommandLineTest, AnImageMayKnowItsCommand) {
  EXPECT_TRUE(parse<RunOptions>({"run", "--image", "app"}).command.command.empty());
  EXPECT_TRUE(refused({"run", "--image", "host"}, "no command"));
}

TEST(LifeCommandLineTest, OurInputIsReadOnce) {
  EXPECT_TRUE(refused({"run", "-i", "--secret", "/a=-", "cat"}, "--secret"));
  EXPECT_TRUE(refused({"run", "--secret", "/a=-", "--secret", "/b=-", "cat"}, "--secret"));
}

TEST(LifeCommandLineTest, SandboxesAreNamed) {
  EXPECT_EQ(parse<PauseOptions>({"pause", "a", "b"}).ids, (Words{"a", "b"}));
  EXPECT_EQ(parse<StopOptions>({"stop", "-t", "2s", "a"}).grace, std::chrono::seconds(2));
  EXPECT_EQ(parse<StopOptions>({"stop", "-t", "0", "a"}).grace, Duration{});
  EXPECT_EQ(parse<RunOptions>({"run", "-d", "--restart", "on-failure:3", "--", "x"})
                .command.most_restarts,
            3u);
  EXPECT_THROW(parse<RunOptions>({"run", "--restart", "always", "--", "x"}), Error);
  EXPECT_THROW(parse<RunOptions>({"run", "-d", "--restart", "often", "--", "x"}), Error);
  EXPECT_EQ(parse<ResumeOptions>({"resume", "a"}).ids, (Words{"a"}));
  const auto commit = parse<CommitOptions>({"commit", "a", "mine:1"});
  EXPECT_EQ(commit.id, "a");
  EXPECT_EQ(commit.name, "mine:1");
  const auto fork = parse<ForkOptions>({"fork", "a", "-n", "3"});
  EXPECT_EQ(fork.id, "a");
  EXPECT_EQ(fork.count, 3u);
  EXPECT_EQ(parse<ForkOptions>({"fork", "a"}).count, 1u);
  EXPECT_TRUE(parse<StatsOptions>({"stats"}).ids.empty());
  EXPECT_EQ(parse<StatsOptions>({"stats", "a", "-o", "json"}).format, Format::json);
}

TEST(LifeCommandLineTest, APolicyIsWhole) {
  const auto options =
      parse<PolicyOptions>({"network", "a", "--mode", "world", "--open", "192.168.1.5:80/tcp"});
  EXPECT_EQ(options.id, "a");
  EXPECT_EQ(options.policy.mode, network::Mode::world);
  EXPECT_EQ(options.policy.open.size(), 1u);
  EXPECT_TRUE(options.policy.dns);
  EXPECT_EQ(parse<PolicyOptions>({"network", "a", "--allow", "1.1.1.1"}).policy.mode,
            network::Mode::listed);
}

TEST(LifeCommandLineTest, VolumesAreListedAndRemoved) {
  EXPECT_EQ(parse<VolumeLsOptions>({"volume", "ls", "-o", "json"}).format, Format::json);
  EXPECT_EQ(parse<VolumeRmOptions>({"volume", "rm", "a", "b"}).names, (Words{"a", "b"}));
  const auto create = parse<VolumeCreateOptions>({"volume", "create", "a", "--size", "1g"});
  EXPECT_EQ(create.name, "a");
  EXPECT_EQ(create.bytes, 1u << 30);
  EXPECT_EQ(parse<VolumeCreateOptions>({"volume", "create", "a"}).bytes, 0u);
}

TEST(LifeCommandLineTest, UpTellsTheRuntime) {
  const auto options = parse<UpOptions>({"up", "--warm", "0", "--no-network", "--image-quota", "2g",
                                         "--allow-host-path", "/a", "--allow-host-path", "/b"});
  EXPECT_EQ(options.warm, 0u);
  EXPECT_FALSE(options.network);
  EXPECT_EQ(options.image_quota_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(options.host_paths, (Words{"/a", "/b"}));
  EXPECT_EQ(parse<UpOptions>({"up"}).warm, 16u);
  EXPECT_TRUE(parse<UpOptions>({"up"}).network);
}

TEST(LifeCommandLineTest, MistakesNameTheFix) {
  for (const char* verb : {"pause", "resume", "commit", "fork", "network"})
    EXPECT_TRUE(refused({verb}, "hearth ls")) << verb;
  EXPECT_TRUE(refused({"commit", "a"}, "called"));
  EXPECT_TRUE(refused({"commit", "a", "b", "c"}, "'c'"));
  EXPECT_TRUE(refused({"fork", "a", "-n", "0"}, "-n"));
  EXPECT_TRUE(refused({"fork", "a", "-n", "many"}, "'many'"));
  EXPECT_TRUE(refused({"fork", "a", "-n", "1001"}, "1000"));
  EXPECT_TRUE(refused({"network", "a"}, "--mode"));
  EXPECT_TRUE(refused({"network", "a", "--no-dns"}, "--mode"));
  EXPECT_TRUE(refused({"network", "a", "b", "--mode", "none"}, "'b'"));
  EXPECT_TRUE(refused({"network", "a", "--mode", "off"}, "'off'"));
  EXPECT_TRUE(refused({"stats", "-o", "yaml"}, "json"));
  EXPECT_TRUE(refused({"volume"}, "rm NAME"));
  EXPECT_TRUE(refused({"volume", "make"}, "'make'"));
  EXPECT_TRUE(refused({"volume", "rm"}, "hearth volume ls"));
  EXPECT_TRUE(refused({"volume", "ls", "x"}, "'x'"));
  EXPECT_TRUE(refused({"up", "--warm", "lots"}, "--warm"));
  EXPECT_TRUE(refused({"up", "--image-quota", "lots"}, "--image-quota"));
  EXPECT_TRUE(refused({"run", "--network", "host", "true"}, "'host'"));
  EXPECT_TRUE(refused({"run", "-v", "cache", "true"}, "NAME:/target"));
}

TEST(LogOptionsTest, HaveBoundsAndDefaults) {
  EXPECT_EQ(parse<RunOptions>({"run", "-d"}).log, runtime::LogLimits{});
  const RunOptions run = parse<RunOptions>({"run", "-d", "--log-size", "1m", "--log-files", "0"});
  EXPECT_EQ(run.log, (runtime::LogLimits{.bytes = 1 << 20, .files = 0}));
  EXPECT_THROW(parse<RunOptions>({"run", "-d", "--log-size", "1k"}), Error);
  EXPECT_THROW(parse<RunOptions>({"run", "-d", "--log-files", "101"}), Error);

  const LogsOptions logs = parse<LogsOptions>(
      {"logs", "-f", "-t", "--tail", "5", "--since", "2026-01-02T03:04:05Z", "x"});
  EXPECT_TRUE(logs.follow);
  EXPECT_TRUE(logs.choice.timestamps);
  EXPECT_EQ(logs.choice.tail, 5u);
  EXPECT_TRUE(logs.choice.since);
  EXPECT_FALSE(parse<LogsOptions>({"logs", "--tail", "all", "x"}).choice.tail);
  EXPECT_THROW(parse<LogsOptions>({"logs", "--since", "soon", "x"}), Error);
  EXPECT_THROW(parse<LogsOptions>({"logs"}), Error);
}

TEST(AttachOptionsTest, SayHow) {
  const AttachOptions usual = parse<AttachOptions>({"attach", "box"});
  EXPECT_EQ(usual.id, "box");
  EXPECT_FALSE(usual.no_stdin);
  EXPECT_TRUE(usual.forward_signals);
  EXPECT_TRUE(parse<AttachOptions>({"attach", "--no-stdin", "box"}).no_stdin);
  EXPECT_FALSE(parse<AttachOptions>({"attach", "--sig-proxy=false", "box"}).forward_signals);
  EXPECT_EQ(parse<AttachOptions>({"attach", "--pid", "7", "box"}).pid, 7u);
  EXPECT_THROW(parse<AttachOptions>({"attach", "--sig-proxy=maybe", "box"}), Error);
  EXPECT_THROW(parse<AttachOptions>({"attach", "one", "two"}), Error);
}

}  // namespace
}  // namespace hearth::cli
