// The guest as the first process of somebody else's container, run as this user. What takes a
// namespace or a surface is tested with the real program (tests/e2e/contained_test.py).
#include "guest/contained.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::guest {
namespace {

ContainedOptions parse(const std::vector<std::string_view>& words) {
  return parse_contained(words);
}

std::string complaint(const std::vector<std::string_view>& words) {
  try {
    parse(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

std::vector<std::uint16_t> ports(const ContainedOptions& options) {
  std::vector<std::uint16_t> ports;
  for (const SurfacePort& each : options.surfaces) ports.push_back(each.port);
  return ports;
}

using Ports = std::vector<std::uint16_t>;
using Words = std::vector<std::string>;

TEST(ContainedWords, SurfacesAreTheUsualOnesThatNobodyElseHas) {
  EXPECT_EQ(ports(parse({})), (Ports{49983, 49999, 8888, 8080}));
  EXPECT_EQ(ports(parse({"--", "x"})), (Ports{49983, 49999, 8888}));
  EXPECT_EQ(ports(parse({"--taken-ports=80,8888", "--", "x"})), (Ports{49983, 49999}));
  EXPECT_FALSE(parse({}).chosen);
}

TEST(ContainedWords, WhoNamesSurfacesGetsThese) {
  const ContainedOptions some =
      parse({"--surfaces=sandboxd, envd=9", "--taken-ports=9", "--", "x"});
  EXPECT_EQ(some.surfaces,
            (std::vector<SurfacePort>{{Surface::sandboxd, 8080}, {Surface::envd, 9}}));
  EXPECT_TRUE(some.chosen);
  EXPECT_TRUE(parse({"--surfaces=none"}).surfaces.empty());
}

TEST(ContainedWords, WhatComesAfterTheDashesIsTheCommand) {
  EXPECT_EQ(parse({"--", "sh", "-c", "--", "--surfaces=x"}).command,
            (Words{"sh", "-c", "--", "--surfaces=x"}));
  EXPECT_TRUE(parse({}).command.empty());
}

TEST(ContainedWords, MistakesAreNamed) {
  EXPECT_EQ(complaint({"--surfaces=x"}), "--surfaces: there is no surface 'x'");
  EXPECT_EQ(complaint({"--surfaces=envd=0"}), "--surfaces: '0' is no port");
  EXPECT_EQ(complaint({"--surfaces=envd=65536"}), "--surfaces: '65536' is no port");
  EXPECT_EQ(complaint({"--taken-ports=1,,2"}), "--taken-ports: '' is no port");
  EXPECT_EQ(complaint({"--taken-ports=-1"}), "--taken-ports: '-1' is no port");
  EXPECT_EQ(complaint({"--"}), "there is no command behind --");
  EXPECT_NE(complaint({"sh"}).find("'sh'"), std::string::npos);
}

// Runs in a child of the test, with its output in a pipe.
class Contained : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    output_ = linux::make_pipe();
  }

  void start(Words command) {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ != 0) {
      output_.write.reset();
      return;
    }
    ::dup2(output_.write.get(), 1);
    output_ = {};
    int code = 99;
    try {
      ContainedOptions options;
      options.command = std::move(command);
      code = serve_contained(std::move(options), {});
    } catch (const std::exception& error) {
      std::fprintf(stderr, "guest: %s\n", error.what());
    }
    ::_exit(code);
  }
  void start_shell(const std::string& script) { start({"/bin/sh", "-c", script}); }

  std::string read_line() {
    std::string line;
    char byte = 0;
    while (::read(output_.read.get(), &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }
  int exit_code() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  linux::Pipe output_;
  pid_t child_ = 0;
};

TEST_F(Contained, EndsAsItsCommandEnds) {
  start_shell("echo hello; exit 7");
  EXPECT_EQ(read_line(), "hello");
  EXPECT_EQ(exit_code(), 7);
}

TEST_F(Contained, TellsOfASignalAsShellsDo) {
  start_shell("kill -9 $$");
  EXPECT_EQ(exit_code(), 137);
}

TEST_F(Contained, SaysThatThereIsNoSuchProgram) {
  start({"/does/not/exist"});
  EXPECT_EQ(exit_code(), 127);
}

TEST_F(Contained, SaysThatAProgramCannotBeRun) {
  start({"/etc/passwd"});
  EXPECT_EQ(exit_code(), 126);
}

TEST_F(Contained, PassesSignalsOn) {
  start_shell("trap 'echo told; exit 3' TERM; echo there; while :; do :; done");
  EXPECT_EQ(read_line(), "there");
  ::kill(child_, SIGTERM);
  EXPECT_EQ(read_line(), "told");
  EXPECT_EQ(exit_code(), 3);
}

TEST_F(Contained, CommandsSeeTheEnvironmentButNotTheToken) {
  ::setenv("HEARTH_GUEST_TOKEN", "secret", 1);
  ::setenv("CONTAINED_WORD", "word", 1);
  ::setenv("HOME", "/somewhere", 1);
  start_shell("echo $CONTAINED_WORD $HOME ${HEARTH_GUEST_TOKEN-none}; pwd");
  ::unsetenv("HEARTH_GUEST_TOKEN");
  EXPECT_EQ(read_line(), "word /somewhere none");
  EXPECT_EQ(read_line(), std::filesystem::current_path());
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(Contained, ReapsWhatTheCommandLeavesBehind) {
  // An orphan can be signalled until it is reaped.
  start_shell(
      "orphan=$(sh -c 'true >/dev/null & echo $!'); tries=0;"
      "while kill -0 $orphan 2>/dev/null && [ $tries -lt 1000000 ]; do tries=$((tries+1)); done;"
      "kill -0 $orphan 2>/dev/null && echo there || echo gone");
  EXPECT_EQ(read_line(), "gone");
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(Contained, WithoutACommandASignalIsTheEnd) {
  start({});
  ::kill(child_, SIGTERM);
  // Before or after it began to wait for it.
  int status = 0;
  ::waitpid(child_, &status, 0);
  EXPECT_TRUE((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
              (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
}

TEST(InstallSelf, PutsACopyThereForEverybody) {
  char path[] = "/tmp/hearth-install-test-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  const std::filesystem::path folder = std::filesystem::path(path) / "bin";
  for (int i = 0; i < 2; ++i) {  // one that is there is replaced
    install_self(folder);
    struct stat facts{};
    ASSERT_EQ(::stat((folder / "hearth-guest").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0755U);
    EXPECT_EQ(static_cast<std::uintmax_t>(facts.st_size),
              std::filesystem::file_size("/proc/self/exe"));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(path);
}

TEST(InstallSelf, SaysWhereItCannot) {
  try {
    install_self("/does/not/exist");
    FAIL() << "made it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'/does/not/exist'"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::guest
