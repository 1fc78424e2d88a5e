#include "sudo/line.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::sudo {
namespace {

Line parse(std::vector<std::string_view> words) {
  return parse_line(words);
}

using Texts = std::vector<std::string>;

const Caller kCaller{
    .uid = 1000,
    .gid = 1001,
    .name = "user",
    .environment = {"HOME=/home/user", "PATH=/mine", "SECRET=s", "LANG=de_DE.UTF-8", "LC_ALL=C",
                    "SHELL=/bin/zsh", "TERM=vt100", "broken"}};
const guest::User kRoot{.name = "root", .home = "/root", .shell = "/bin/bash"};

Texts environment(std::vector<std::string_view> words) {
  const Line line = parse(std::move(words));
  return environment_of(line, kCaller, kRoot, "/usr/bin/id", command_of(line, kCaller, kRoot));
}

TEST(SudoLine, OptionsEndWhereTheCommandBegins) {
  const Line line = parse({"-n", "-Eu", "web", "A=1", "_b=x=y", "ls", "-l", "B=2"});

  EXPECT_EQ(line.mode, Mode::run);
  EXPECT_EQ(line.user, "web");
  EXPECT_TRUE(line.keep_all);
  EXPECT_EQ(line.assignments, (Texts{"A=1", "_b=x=y"}));
  EXPECT_EQ(line.command, (Texts{"ls", "-l", "B=2"}));
  EXPECT_EQ(parse({"--", "-x"}).command, (Texts{"-x"}));
  EXPECT_EQ(parse({"1A=2"}).command, (Texts{"1A=2"}));
}

TEST(SudoLine, EveryOptionHasALongName) {
  const Line line =
      parse({"--user=web", "--group", "staff", "--preserve-env=A,B", "--background", "--set-home",
             "--chdir=/srv", "--non-interactive", "--stdin", "--prompt=", "true"});

  EXPECT_EQ(line.user, "web");
  EXPECT_EQ(line.group, "staff");
  EXPECT_EQ(line.kept, (Texts{"A", "B"}));
  EXPECT_FALSE(line.keep_all);
  EXPECT_TRUE(line.background);
  EXPECT_TRUE(line.set_home);
  EXPECT_EQ(line.directory, "/srv");
  EXPECT_TRUE(parse({"--preserve-env", "true"}).keep_all);
  EXPECT_EQ(parse({"-uweb", "true"}).user, "web");
}

TEST(SudoLine, ModesWithoutACommand) {
  EXPECT_EQ(parse({"-v"}).mode, Mode::check);
  EXPECT_EQ(parse({"-nv"}).mode, Mode::check);
  EXPECT_EQ(parse({"-ll"}).mode, Mode::list);
  EXPECT_EQ(parse({"-k"}).mode, Mode::reset);
  EXPECT_EQ(parse({"-k", "true"}).mode, Mode::run);
  EXPECT_EQ(parse({"-h"}).mode, Mode::help);
  EXPECT_EQ(parse({"-i", "--help"}).mode, Mode::help);
  EXPECT_EQ(parse({"-V"}).mode, Mode::version);
  EXPECT_EQ(parse({"-s"}).mode, Mode::shell);
  EXPECT_EQ(parse({"-i"}).mode, Mode::login);
}

TEST(SudoLine, RefusesWhatItDoesNotKnowByName) {
  const auto refusal = [](std::vector<std::string_view> words) -> std::string {
    try {
      parse(std::move(words));
    } catch (const Error& error) {
      return error.code() == Code::invalid ? error.what() : "another code";
    }
    return "none";
  };

  EXPECT_EQ(refusal({}), "no command was given");
  EXPECT_EQ(refusal({"-n"}), "no command was given");
  EXPECT_EQ(refusal({"-b"}), "no command was given");
  EXPECT_EQ(refusal({"-e", "/etc/hosts"}), "option '-e' is not offered here");
  EXPECT_EQ(refusal({"--chroot=/x", "true"}), "option '--chroot' is not offered here");
  EXPECT_EQ(refusal({"--login=x"}), "option '--login' takes no value");
  EXPECT_EQ(refusal({"-u"}), "option 'u' needs a value");
  EXPECT_EQ(refusal({"-i", "-s"}), "only one of -i, -l, -s and -v can be used");
  EXPECT_EQ(refusal({"-v", "true"}), "-v takes no command");
}

TEST(SudoLine, KnowsWhomItIsFor) {
  EXPECT_EQ(target_of(parse({"true"}), kCaller), "root");
  EXPECT_EQ(target_of(parse({"-u", "#33", "true"}), kCaller), "33");
  EXPECT_EQ(target_of(parse({"-g", "staff", "true"}), kCaller), "1000:staff");
  EXPECT_EQ(target_of(parse({"-u", "web", "-g", "#7", "true"}), kCaller), "web:7");
  EXPECT_THROW(target_of(parse({"-u", "web:staff", "true"}), kCaller), Error);
}

TEST(SudoLine, ShellsGetTheirCommandAsOneWord) {
  EXPECT_EQ(command_of(parse({"-i"}), kCaller, kRoot), (Texts{"/bin/bash", "-l"}));
  EXPECT_EQ(command_of(parse({"-s"}), kCaller, kRoot), (Texts{"/bin/zsh"}));
  EXPECT_EQ(command_of(parse({"-i", "echo", "a b", "$HOME;"}), kCaller, kRoot),
            (Texts{"/bin/bash", "-l", "-c", "echo a\\ b $HOME\\;"}));
}

TEST(SudoLine, AnEnvironmentOfItsOwn) {
  EXPECT_EQ(environment({"A=1", "id", "-u"}),
            (Texts{"A=1", "HOME=/root", "LANG=de_DE.UTF-8", "LC_ALL=C", "LOGNAME=root",
                   "MAIL=/var/mail/root", "PATH=" + std::string(kSecurePath), "SHELL=/bin/bash",
                   "SUDO_COMMAND=/usr/bin/id -u", "SUDO_GID=1001", "SUDO_UID=1000",
                   "SUDO_USER=user", "TERM=vt100", "USER=root"}));
}

TEST(SudoLine, KeepsWhatItIsAskedToKeep) {
  const auto has = [](const Texts& all, const std::string& entry) {
    return std::ranges::find(all, entry) != all.end();
  };

  const Texts all = environment({"-E", "id"});
  EXPECT_TRUE(has(all, "SECRET=s"));
  EXPECT_TRUE(has(all, "HOME=/home/user"));
  EXPECT_TRUE(has(all, "USER=root"));
  EXPECT_TRUE(has(all, "PATH=" + std::string(kSecurePath)));
  EXPECT_TRUE(has(environment({"-EH", "id"}), "HOME=/root"));
  EXPECT_TRUE(has(environment({"--preserve-env=SECRET", "id"}), "SECRET=s"));
  EXPECT_FALSE(has(environment({"--preserve-env=OTHER", "id"}), "SECRET=s"));
  EXPECT_FALSE(has(environment({"-iE"}), "SECRET=s"));
}

}  // namespace
}  // namespace hearth::sudo
