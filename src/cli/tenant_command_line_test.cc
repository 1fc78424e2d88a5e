#include "cli/command_line_testing_internal.h"
#include "cli/help.h"
#include "cli/tenant_verbs.h"

namespace hearth::cli {
namespace {

using namespace std::chrono_literals;

template <typename T>
T parse(const Words& words) {
  return std::get<T>(std::get<TenantOrder>(parse_order(split_command_line(words))));
}

TEST(TenantCommandLine, ATeamHasANameAndLimits) {
  const auto made =
      parse<TeamCreateOptions>({"team", "create", "red", "--sandboxes", "20", "--rate", "2",
                                "--lifetime", "1h", "--cpus", "1.5", "--memory", "2g"});
  EXPECT_EQ(made.name, "red");
  EXPECT_EQ(made.limits, (tenants::LimitChanges{.sandboxes = 20,
                                                .creates_per_second = 2,
                                                .lifetime_seconds = 3600,
                                                .cpu_millis = 1500,
                                                .memory_mib = 2048}));
  EXPECT_TRUE(parse<TeamLimitsOptions>({"team", "limits", "red"}).limits.is_empty());
  EXPECT_EQ(
      parse<TeamLimitsOptions>({"team", "limits", "red", "--sandboxes", "0"}).limits.sandboxes, 0);
  EXPECT_EQ(parse<TeamRmOptions>({"team", "rm", "red", "blue"}).names, (Words{"red", "blue"}));
  EXPECT_EQ(parse<TeamLsOptions>({"team", "ls", "-o", "json"}).format, Format::json);
}

TEST(TenantCommandLine, AKeyIsOfTheDefaultTeamUnlessToldOtherwise) {
  const auto usual = parse<KeyCreateOptions>({"key", "create"});
  EXPECT_EQ(usual.team, "default");
  EXPECT_FALSE(usual.lifetime);
  const auto other = parse<KeyCreateOptions>(
      {"key", "create", "--team", "red", "--name", "ci", "--expires", "720h", "--kubeconfig", "f"});
  EXPECT_EQ(other.team, "red");
  EXPECT_EQ(other.name, "ci");
  EXPECT_EQ(other.lifetime, 720h);
  EXPECT_EQ(other.cluster.kubeconfig, "f");
  EXPECT_EQ(parse<KeyLsOptions>({"key", "ls", "--team", "red"}).team, "red");
  EXPECT_EQ(parse<KeyRmOptions>({"key", "rm", "a", "b"}).ids, (Words{"a", "b"}));
}

TEST(TenantCommandLine, WhatMakesNoSenseIsRefused) {
  EXPECT_TRUE(refused({"team", "create"}, "what shall the team be called?"));
  EXPECT_TRUE(refused({"team", "create", "a", "b"}, "'b' is one word too many"));
  EXPECT_TRUE(refused({"team", "create", "a", "--memory", "0"}, "--memory"));
  EXPECT_TRUE(refused({"team", "create", "a", "--rate", "many"}, "--rate"));
  EXPECT_TRUE(refused({"team", "create", "a", "-n", "x"}, "-n"));
  EXPECT_TRUE(refused({"team", "limits"}, "which team?"));
  EXPECT_TRUE(refused({"team", "rm"}, "which team?"));
  EXPECT_TRUE(refused({"team", "rm", ""}, "an empty word"));
  EXPECT_TRUE(refused({"team", "make"}, "there is no 'make'"));
  EXPECT_TRUE(refused({"key", "create", "red"}, "'red' is one word too many"));
  EXPECT_TRUE(refused({"key", "create", "--expires", "soon"}, "--expires"));
  EXPECT_TRUE(refused({"key", "rm"}, "which key?"));
}

TEST(TenantCommandLine, HelpIsThere) {
  const auto help = [](const Words& words) {
    return std::get<Help>(parse_order(split_command_line(words))).text;
  };
  for (const char* action : {"create", "ls", "limits", "rm"})
    EXPECT_NE(help({"team", action, "--help"}).find("hearth team"), std::string::npos) << action;
  for (const char* action : {"create", "ls", "rm"})
    EXPECT_NE(help({"key", action, "--help"}).find("hearth key"), std::string::npos) << action;
  EXPECT_NE(help({"key"}).find("revoke API keys"), std::string::npos);
  EXPECT_NE(help({"team", "--help"}).find("limits"), std::string::npos);
}

}  // namespace
}  // namespace hearth::cli
