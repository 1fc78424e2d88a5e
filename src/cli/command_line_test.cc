#include "cli/command_line.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/help.h"

namespace hearth::cli {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

template <typename T>
T parse(const Words& words) {
  return std::get<T>(parse_order(split_command_line(words)));
}

std::string complaint(const Words& words) {
  try {
    parse_order(split_command_line(words));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

TEST(CommandLineTest, ACommandKeepsItsOwnOptions) {
  EXPECT_EQ(parse<RunOptions>({"run", "--rm", "--", "ls", "-l", "--", "--rm"}).command.command,
            (Words{"ls", "-l", "--", "--rm"}));
  EXPECT_EQ(parse<RunOptions>({"run", "--rm", "ls", "-l", "--help"}).command.command,
            (Words{"ls", "-l", "--help"}));
  EXPECT_EQ(parse<RunOptions>({"run", "-e", "A=b", "env"}).command.command, (Words{"env"}));
  EXPECT_EQ(parse<RunOptions>({"run", "--memory=1g", "-w", "/tmp", "rm", "--all"}).command.command,
            (Words{"rm", "--all"}));
  EXPECT_EQ(parse<RunOptions>({"run", "-ite", "A=b", "sh"}).command.command, (Words{"sh"}));
}

TEST(CommandLineTest, ExecTakesAnIdFirst) {
  for (const Words& words :
       {Words{"exec", "-i", "run", "--", "ps", "-e"}, Words{"exec", "-i", "run", "ps", "-e"}}) {
    const auto options = parse<ExecOptions>(words);
    EXPECT_EQ(options.id, "run");
    EXPECT_EQ(options.command.command, (Words{"ps", "-e"}));
    EXPECT_TRUE(options.command.interactive);
    EXPECT_TRUE(options.command.environment.empty());
  }
}

TEST(CommandLineTest, RunTakesLimitsAndManners) {
  const auto options = parse<RunOptions>(
      {"run",   "--name", "a-1",  "--rm",   "-it",  "-e",        "A=[1,2]", "-e",
       "B=x y", "-w",     "/tmp", "-u",     "user", "--timeout", "30s",     "--memory",
       "512m",  "--cpus", "1.5",  "--pids", "64",   "--disk",    "2g"});

  EXPECT_EQ(options.name, "a-1");
  EXPECT_TRUE(options.remove && options.command.interactive && options.command.terminal);
  EXPECT_EQ(options.command.environment, (Words{"A=[1,2]", "B=x y"}));
  EXPECT_EQ(options.command.directory, "/tmp");
  EXPECT_EQ(options.command.user, "user");
  EXPECT_EQ(options.command.timeout, 30s);
  EXPECT_EQ(
      options.limits,
      (runtime::Limits{
          .memory_bytes = 512u << 20, .cpu_millis = 1500, .pids = 64, .disk_bytes = 2ull << 30}));
}

TEST(CommandLineTest, MistakesNameTheFix) {
  EXPECT_NE(complaint({"run"}).find("-it"), std::string::npos);
  EXPECT_NE(complaint({"exec"}).find("hearth ls"), std::string::npos);
  EXPECT_NE(complaint({"exec", "id"}).find("no command"), std::string::npos);
  EXPECT_NE(complaint({"run", "--memry", "1g", "true"}).find("--memry"), std::string::npos);
  EXPECT_NE(complaint({"run", "--memory", "big", "true"}).find("512m"), std::string::npos);
  EXPECT_NE(complaint({"run", "--rm", "-d", "true"}).find("hearth rm"), std::string::npos);
  EXPECT_NE(complaint({"run", "--name", "No_Label", "true"}).find("a-z"), std::string::npos);
  EXPECT_NE(complaint({"ruin"}).find("'run'"), std::string::npos);
  EXPECT_NE(complaint({"ls", "extra"}).find("'extra'"), std::string::npos);
  EXPECT_NE(complaint({"ls", "-o", "yaml"}).find("json"), std::string::npos);
  EXPECT_NE(complaint({"rm"}).find("--all"), std::string::npos);
  EXPECT_NE(complaint({"rm", "--all", "x"}).find("--all"), std::string::npos);
  EXPECT_NE(complaint({"up", "--metrics-port", "70000"}).find("--metrics-port"), std::string::npos);
  EXPECT_NE(complaint({"up", "--log-level", "loud"}).find("warning"), std::string::npos);
  EXPECT_NE(complaint({"--frob"}).find("--frob"), std::string::npos);
}

TEST(CommandLineTest, EveryVerbHasHelpWithExamples) {
  for (const VerbHelp& verb : all_verbs()) {
    const std::string help = parse<Help>({std::string(verb.name), "--help"}).text;
    EXPECT_NE(help.find("Examples:"), std::string::npos) << verb.name;
    EXPECT_NE(overview().find(verb.name), std::string::npos);
    EXPECT_EQ(parse<Help>({"help", std::string(verb.name)}).text, help);
  }
  EXPECT_EQ(parse<Help>({}).text, overview());
  EXPECT_EQ(parse<Help>({"--help"}).text, overview());
}

TEST(CommandLineTest, TheStateFolderMayStandBeforeTheVerbOrBehindIt) {
  EXPECT_EQ(parse<LsOptions>({"--state-dir", "/a", "ls"}).state_dir, "/a");
  EXPECT_EQ(parse<LsOptions>({"--state-dir=/a", "ps"}).state_dir, "/a");
  EXPECT_EQ(parse<LsOptions>({"ls", "--state-dir", "/b"}).state_dir, "/b");
  EXPECT_EQ(parse<RmOptions>({"rm", "--state-dir", "/b", "x", "--", "-y"}).ids, (Words{"x", "-y"}));
}

TEST(CommandLineTest, UpTakesPorts) {
  const auto options =
      parse<UpOptions>({"up", "--metrics-port", "0", "--kube-port", "1", "--listen", "::1"});

  EXPECT_EQ(options.metrics_port, 0);
  EXPECT_EQ(options.kube_port, 1);
  EXPECT_EQ(options.api_port, 8080);
  EXPECT_EQ(options.e2b_port, 8090);
  EXPECT_EQ(options.listen, "::1");
}

TEST(CommandLineTest, UpTakesWhatTheE2bApiShallBe) {
  const auto usual = parse<UpOptions>({"up"});
  EXPECT_TRUE(usual.e2b);
  EXPECT_FALSE(usual.e2b_tls_port);
  EXPECT_EQ(usual.e2b_warm, 8u);
  EXPECT_EQ(usual.e2b_team_warm, 2u);
  EXPECT_EQ(usual.e2b_team_idle, 15min);
  EXPECT_EQ(usual.e2b_image, "host");
  const auto other =
      parse<UpOptions>({"up", "--e2b-port", "0", "--e2b-domain", "sbx.test", "--e2b-tls-port",
                        "8443", "--e2b-warm", "0", "--e2b-image", "python:3.12"});
  EXPECT_EQ(other.e2b_port, 0);
  EXPECT_EQ(other.e2b_tls_port, 8443);
  EXPECT_EQ(other.e2b_domain, "sbx.test");
  EXPECT_EQ(other.e2b_warm, 0u);
  EXPECT_EQ(other.e2b_team_warm, 0u);
  EXPECT_EQ(other.e2b_image, "python:3.12");
  EXPECT_FALSE(parse<UpOptions>({"up", "--no-e2b"}).e2b);
  EXPECT_EQ(usual.access_log, "");
  EXPECT_EQ(parse<UpOptions>({"up", "--access-log", "-"}).access_log, "-");
  EXPECT_NE(complaint({"up", "--no-e2b", "--access-log", "x"}).find("--access-log"),
            std::string::npos);
  EXPECT_NE(complaint({"up", "--e2b-tls-port", "1"}).find("--e2b-domain"), std::string::npos);
  EXPECT_NE(complaint({"up", "--e2b-warm", "-1"}).find("--e2b-warm"), std::string::npos);
}

TEST(CommandLineTest, ApiserverTakesAPortAndAToken) {
  const auto options = parse<ApiServerOptions>(
      {"apiserver", "--kube-port", "0", "--token", "t", "--listen", "::1", "--state-dir", "/a"});

  EXPECT_EQ(options.kube_port, 0);
  EXPECT_EQ(options.token, "t");
  EXPECT_EQ(options.listen, "::1");
  EXPECT_EQ(options.state_dir, "/a");
  EXPECT_EQ(parse<ApiServerOptions>({"apiserver"}).kube_port, 6443);
  EXPECT_NE(complaint({"apiserver", "--kube-port", "65536"}).find("--kube-port"),
            std::string::npos);
  EXPECT_NE(complaint({"apiserver", "--log-level", "loud"}).find("warning"), std::string::npos);
  EXPECT_NE(complaint({"apiserver", "extra"}).find("'extra'"), std::string::npos);
  EXPECT_NE(complaint({"apiserver", "--token", ""}).find("--token"), std::string::npos);
  EXPECT_NE(complaint({"apiserver", "--token", "a b"}).find("--token"), std::string::npos);
}

TEST(CommandLineTest, EveryWordBehindKubectlIsKubectls) {
  const auto options =
      parse<KubectlOptions>({"--state-dir", "/a", "kubectl", "get", "--help", "-o", "json"});

  EXPECT_EQ(options.state_dir, "/a");
  EXPECT_EQ(options.words, (Words{"get", "--help", "-o", "json"}));
  EXPECT_TRUE(parse<KubectlOptions>({"kubectl"}).words.empty());
}

TEST(CommandLineTest, BackupAndRestoreTakeOneFile) {
  EXPECT_EQ(parse<BackupOptions>({"backup", "f"}).file, "f");
  EXPECT_EQ(parse<RestoreOptions>({"restore", "f"}).file, "f");
  EXPECT_FALSE(parse<RestoreOptions>({"restore", "f"}).replace);
  EXPECT_TRUE(parse<RestoreOptions>({"restore", "--replace", "f"}).replace);
  EXPECT_NE(complaint({"backup"}).find("FILE"), std::string::npos);
  EXPECT_NE(complaint({"restore"}).find("FILE"), std::string::npos);
  EXPECT_NE(complaint({"backup", "a", "b"}).find("'b'"), std::string::npos);
  EXPECT_NE(complaint({"restore", "a", "b"}).find("'b'"), std::string::npos);
}

TEST(CommandLineTest, RunTakesSurfaces) {
  using guest::Surface;
  const auto options =
      parse<RunOptions>({"run", "-d", "--serve", "envd,code:1234", "--serve", "sandboxd"});
  EXPECT_EQ(options.surfaces,
            (std::vector<guest::SurfacePort>{{.surface = Surface::envd, .port = 49983},
                                             {.surface = Surface::interpreter, .port = 1234},
                                             {.surface = Surface::sandboxd, .port = 8080}}));
  EXPECT_EQ(parse<RunOptions>({"run", "-d", "--serve", "all"}).surfaces.size(), 4u);
  for (const char* wrong : {"ftp", "", "envd:0", "envd:x", "envd,envd", "envd:70000"})
    EXPECT_THROW(parse<RunOptions>({"run", "-d", "--serve", wrong}), Error) << wrong;
  EXPECT_THROW(parse<RunOptions>({"run", "-d", "--token-file", "x"}), Error);
}

TEST(CommandLineTest, ForwardTakesPorts) {
  const auto options = parse<ForwardOptions>({"forward", "box", "80", "3000:8080", "0:9"});
  EXPECT_EQ(options.id, "box");
  EXPECT_EQ(options.ports, (std::vector<ForwardedPort>{{.local = 80, .inside = 80},
                                                       {.local = 3000, .inside = 8080},
                                                       {.local = 0, .inside = 9}}));
  EXPECT_THROW(parse<ForwardOptions>({"forward", "box"}), Error);
  EXPECT_THROW(parse<ForwardOptions>({"forward", "box", "1:0"}), Error);
  EXPECT_THROW(parse<ForwardOptions>({"forward", "box", "1:2:3"}), Error);
}

TEST(CommandLineTest, AnEndBecomesAnExitCode) {
  EXPECT_EQ(exit_code_of({.status = {.code = 7}}), 7);
  EXPECT_EQ(exit_code_of({.status = {.signal = 9}}), 137);
  EXPECT_EQ(exit_code_of({.status = {.signal = 9}, .timed_out = true}), kExitTimedOut);
  EXPECT_EQ(exit_code_of_start(Code::not_found), kExitNotFound);
  EXPECT_EQ(exit_code_of_start(Code::forbidden), kExitNotExecutable);
  EXPECT_EQ(exit_code_of_start(Code::internal), kExitEngine);
}

}  // namespace
}  // namespace hearth::cli
