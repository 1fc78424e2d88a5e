#include "cli/command_line_testing_internal.h"
#include "cli/help.h"
#include "cli/kube_verbs.h"

namespace hearth::cli {
namespace {

using namespace std::chrono_literals;

template <typename T>
T parse(const Words& words) {
  return std::get<T>(std::get<KubeOrder>(parse_order(split_command_line(words))));
}

std::string help_of(const Words& words) {
  return std::get<Help>(parse_order(split_command_line(words))).text;
}

TEST(KubeVerbsCommandLineTest, GetTakesAKindAndPerhapsAName) {
  const auto all = parse<GetOptions>({"get", "claims", "-A", "-l", "a=b", "-o", "wide", "-w"});
  EXPECT_EQ(all.kind, "claims");
  EXPECT_EQ(all.name, "");
  EXPECT_TRUE(all.all_namespaces && all.watch);
  EXPECT_EQ(all.selector, "a=b");
  EXPECT_EQ(all.format, ObjectFormat::wide);
  for (const Words& words :
       {Words{"get", "pod", "web", "-n", "team"}, Words{"get", "-n", "team", "pod/web"}}) {
    const auto one = parse<GetOptions>(words);
    EXPECT_EQ(one.kind, "pod");
    EXPECT_EQ(one.name, "web");
    EXPECT_EQ(one.cluster.ns, "team");
  }
}

TEST(KubeVerbsCommandLineTest, GetRefusesWhatMakesNoSense) {
  EXPECT_TRUE(refused({"get"}, "which kind?"));
  EXPECT_TRUE(refused({"get", "pods", "a", "b"}, "'b' is one word too many"));
  EXPECT_TRUE(refused({"get", "pods", "a", "-A"}, "a name goes without -A"));
  EXPECT_TRUE(refused({"get", "pods", "-o", "toml"}, "no output 'toml'"));
  EXPECT_TRUE(refused({"get", "pod/"}, "an empty word is no name"));
  EXPECT_TRUE(refused({"describe", "pod"}, "which one?"));
  EXPECT_TRUE(refused({"get", "pods", "--colour"}, "no option '--colour'"));
}

TEST(KubeVerbsCommandLineTest, AnotherClusterIsNamed) {
  const auto options = parse<DescribeOptions>(
      {"--state-dir", "/s", "describe", "claim/c", "--kubeconfig", "f", "--context", "staging"});
  EXPECT_EQ(options.cluster.state_dir, "/s");
  EXPECT_EQ(options.cluster.kubeconfig, "f");
  EXPECT_EQ(options.cluster.context, "staging");
  EXPECT_EQ(options.kind, "claim");
  EXPECT_EQ(options.name, "c");
}

TEST(KubeVerbsCommandLineTest, AClaimAndItsCommand) {
  const auto plain = parse<ClaimOptions>({"claim", "py"});
  EXPECT_EQ(plain.pool, "py");
  EXPECT_EQ(plain.wait, 30s);
  EXPECT_FALSE(plain.has_command || plain.ttl.has_value() || plain.remove);
  const auto full =
      parse<ClaimOptions>({"claim", "py",    "--name", "s-42",         "-e",   "A=b=c",  "--label",
                           "t=x",   "--ttl", "10m",    "--when-empty", "wait", "--wait", "5s",
                           "--rm",  "-i",    "--",     "sh",           "-c",   "--rm"});
  EXPECT_EQ(full.name, "s-42");
  EXPECT_EQ(full.environment, (Words{"A=b=c"}));
  EXPECT_EQ(full.labels, (Words{"t=x"}));
  EXPECT_EQ(full.ttl, Duration(10min));
  EXPECT_EQ(full.when_empty, "Wait");
  EXPECT_EQ(full.wait, 5s);
  EXPECT_TRUE(full.remove && full.has_command && full.command.interactive);
  EXPECT_EQ(full.command.command, (Words{"sh", "-c", "--rm"}));
  EXPECT_TRUE(parse<ClaimOptions>({"claim", "py", "--rm", "-it"}).has_command);
  EXPECT_EQ(parse<ClaimOptions>({"claim", "py", "--wait", "0"}).wait, Duration::zero());
}

TEST(KubeVerbsCommandLineTest, AClaimRefusesWhatMakesNoSense) {
  EXPECT_TRUE(refused({"claim"}, "of which pool?"));
  EXPECT_TRUE(refused({"claim", "py", "true"}, "a command goes behind '--'"));
  EXPECT_TRUE(refused({"claim", "py", "--"}, "no command behind '--'"));
  EXPECT_TRUE(refused({"claim", "py", "--rm"}, "--rm goes with a command"));
  EXPECT_TRUE(refused({"claim", "py", "--when-empty", "cry"}, "'cry' is none of cold"));
  EXPECT_TRUE(refused({"claim", "py", "--wait", "soon"}, "--wait"));
  EXPECT_TRUE(refused({"claim", "py", "--ttl", "0"}, "--ttl"));
  EXPECT_TRUE(refused({"claim", "py", "-e", "A"}, "--env"));
  EXPECT_TRUE(refused({"claim", "py", "--label", "=x"}, "not KEY=VALUE"));
  EXPECT_TRUE(refused({"claim", "py", "-o", "yaml"}, "no output 'yaml'"));
  EXPECT_TRUE(refused({"claim", "py", "--wait", "0", "--", "true"}, "has to wait"));
  EXPECT_TRUE(refused({"claim", "py", "--kubeconfig", "f", "--", "true"}, "kubectl exec"));
}

TEST(KubeVerbsCommandLineTest, ClaimsAreListedAndDeleted) {
  EXPECT_EQ(parse<GetOptions>({"claim", "ls", "-A"}).kind, "claims");
  const auto gone = parse<DeleteObjectsOptions>({"claim", "delete", "a", "b", "-n", "x"});
  EXPECT_EQ(gone.kind, "claim");
  EXPECT_EQ(gone.names, (Words{"a", "b"}));
  EXPECT_EQ(gone.cluster.ns, "x");
  EXPECT_TRUE(refused({"claim", "delete"}, "which claim?"));
  EXPECT_EQ(parse<ClaimOptions>({"claim", "create", "ls"}).pool, "ls");
}

TEST(KubeVerbsCommandLineTest, Pools) {
  const auto made =
      parse<PoolCreateOptions>({"pool", "create", "py", "--template", "t", "--replicas", "3"});
  EXPECT_EQ(made.name, "py");
  EXPECT_EQ(made.sandbox_template, "t");
  EXPECT_EQ(made.replicas, 3u);
  EXPECT_EQ(parse<PoolScaleOptions>({"pool", "scale", "py", "0"}).replicas, 0u);
  EXPECT_EQ(parse<GetOptions>({"pool", "ls"}).kind, "pools");
  EXPECT_EQ(parse<DeleteObjectsOptions>({"pool", "delete", "py"}).kind, "pool");
  EXPECT_TRUE(refused({"pool", "create", "py"}, "of which template?"));
  EXPECT_TRUE(refused({"pool", "create", "--template", "t"}, "be called?"));
  EXPECT_TRUE(refused({"pool", "scale", "py"}, "to how many?"));
  EXPECT_TRUE(refused({"pool", "scale", "py", "-1"}, "no option"));
  EXPECT_TRUE(refused({"pool", "scale", "py", "many"}, "scale"));
  EXPECT_TRUE(refused({"pool", "grow"}, "there is no 'grow'"));
  EXPECT_NE(help_of({"pool"}).find("scale"), std::string::npos);
  EXPECT_NE(help_of({"pool", "scale", "--help"}).find("hearth pool scale py 50"),
            std::string::npos);
}

TEST(KubeVerbsCommandLineTest, Templates) {
  const auto made = parse<TemplateCreateOptions>(
      {"template", "create", "py",     "--image", "host",         "--cpu",   "500m",
       "--memory", "1Gi",    "--port", "80",      "--env-policy", "allowed", "--sudo",
       "user",     "-e",     "A=b",    "--",      "sleep",        "--help"});
  EXPECT_EQ(made.name, "py");
  EXPECT_EQ(made.image, "host");
  EXPECT_EQ(made.command, (Words{"sleep", "--help"}));
  EXPECT_EQ(made.ports, (std::vector<std::uint16_t>{80}));
  EXPECT_EQ(made.env_policy, "Allowed");
  EXPECT_EQ(made.sudoers, "user");
  EXPECT_EQ(parse<TemplateCreateOptions>({"template", "create", "-f", "-"}).file, "-");
  EXPECT_EQ(parse<GetOptions>({"template", "show", "py"}).format, ObjectFormat::yaml);
  EXPECT_TRUE(refused({"template", "create", "py"}, "of which image?"));
  EXPECT_TRUE(refused({"template", "create", "--image", "host"}, "be called?"));
  EXPECT_TRUE(refused({"template", "create", "py", "-f", "x", "--image", "y"}, "-f goes alone"));
  EXPECT_TRUE(refused({"template", "create", "py", "-f", "x", "--sudo", "y"}, "-f goes alone"));
  EXPECT_TRUE(refused({"template", "create", "py", "--image", "y", "--cpu", "lots"}, "--cpu"));
  EXPECT_TRUE(refused({"template", "create", "py", "--image", "y", "--port", "0"}, "--port"));
  EXPECT_TRUE(
      refused({"template", "create", "py", "--image", "y", "--env-policy", "x"}, "none of"));
}

}  // namespace
}  // namespace hearth::cli
