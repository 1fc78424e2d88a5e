// `sudo` of a sandbox: what it runs, as whom, and how it ends.
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/testing.h"

namespace hearth::runtime {
namespace {

class Sudo : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (::geteuid() != 0 || std::getenv("HEARTH_BIN") == nullptr) return;
    engine_ = std::make_unique<TestEngine>();
    id_ = create({});
  }
  static void TearDownTestSuite() { engine_.reset(); }
  void SetUp() override { HEARTH_NEED_ROOT(); }

  static std::string create(SandboxSpec spec) {
    spec.user = "user";
    spec.sudoers = {"nobody-of-that-name", "user"};
    return engine_->runtime().create(spec).sandbox.id;
  }
  static Outcome run(const std::string& script, const std::string& user = "",
                     const std::string& id = id_) {
    guest::ExecRequest request;
    request.command = {"/bin/bash", "-c", script};
    request.user = user;
    return run_in(engine_->runtime().connect(id), request);
  }
  static std::string out(const std::string& script, const std::string& user = "") {
    const Outcome outcome = run(script, user);
    return outcome.output + outcome.error;
  }
  // What a command writes to a terminal of its own. The first line is typed when it says "ready",
  // the next when it has ended.
  static std::string on_terminal(const std::string& script, std::string_view typed = {}) {
    guest::Connection connection(engine_->runtime().connect(id_));
    guest::ExecRequest request;
    request.command = {"/bin/bash", "-c", script};
    request.terminal = true;
    request.rows = 40;
    request.columns = 101;
    const guest::Connection::Process process = connection.start(request, {});
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0;
         (got = ::read(process.terminal.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
      const bool wanted =
          typed.starts_with("words") ? text.ends_with("ready\r\n") : text.ends_with("\n5\r\n");
      if (typed.empty() || !wanted) continue;
      const std::size_t line = typed.find('\n') + 1;
      linux::write_all(process.terminal.get(), typed.substr(0, line));
      typed.remove_prefix(line);
    }
    return text;
  }

  static inline std::unique_ptr<TestEngine> engine_;
  static inline std::string id_;
};

TEST_F(Sudo, RunsCommandsAsRootOrAnybodyElse) {
  EXPECT_EQ(out("id -u"), "1000\n");
  EXPECT_EQ(out("sudo id -u"), "0\n");
  EXPECT_EQ(out("/usr/bin/sudo -n id -un"), "root\n");
  EXPECT_EQ(out("sudo -u nobody id -un"), "nobody\n");
  EXPECT_EQ(out("sudo -u '#4711' id -u"), "4711\n");
  EXPECT_EQ(out("sudo -g staff id -un -- ; sudo -g staff id -gn"), "user\nstaff\n");
  EXPECT_EQ(out("sudo sudo -u user sudo id -un"), "root\n");
  EXPECT_EQ(out("sudo id -u", "root"), "0\n");
}

TEST_F(Sudo, EndsAsTheCommandEnds) {
  EXPECT_EQ(run("sudo sh -c 'exit 7'").exited.status.code, 7);
  EXPECT_EQ(run("sudo sh -c 'kill -9 $$'").exited.status.code, 128 + 9);
  EXPECT_EQ(run("sudo true").exited.status.code, 0);
  const Outcome missing = run("sudo no-such-program");
  EXPECT_EQ(missing.exited.status.code, 1);
  EXPECT_EQ(missing.error, "sudo: no-such-program: command not found\n");
  EXPECT_EQ(out("sudo -u stranger id"), "sudo: there is no user 'stranger' in the sandbox\n");
}

TEST_F(Sudo, HasTheCallersStreams) {
  EXPECT_EQ(out("echo words | sudo tee /root/made-by-sudo | tr a-z A-Z"), "WORDS\n");
  EXPECT_EQ(out("sudo cat /root/made-by-sudo"), "words\n");
  EXPECT_EQ(run("sudo sh -c 'echo to-error >&2'").error, "to-error\n");
  EXPECT_EQ(out("sudo cat <&- ; echo $?"), "0\n");
  EXPECT_EQ(out("head -c 3000000 /dev/zero | sudo cat | wc -c"), "3000000\n");
}

TEST_F(Sudo, HasTheCallersFolderWhoeverMayEnterIt) {
  EXPECT_EQ(out("mkdir -p -m 700 ~/closed && cd ~/closed && sudo -u nobody pwd"),
            "/home/user/closed\n");
  EXPECT_EQ(out("cd /tmp && sudo -D / pwd && sudo -i pwd"), "/\n/root\n");
  const Outcome gone = run("mkdir /tmp/gone && cd /tmp/gone && rmdir /tmp/gone && sudo pwd");
  EXPECT_EQ(gone.exited.status.code, 1);
  EXPECT_EQ(gone.output, "");
}

TEST_F(Sudo, HasAnEnvironmentOfItsOwn) {
  EXPECT_EQ(out("A=1 sudo sh -c 'echo $A $HOME $USER $SUDO_USER $SUDO_UID $SUDO_COMMAND'"),
            "/root root user 1000 /usr/bin/sh -c echo $A $HOME $USER $SUDO_USER $SUDO_UID "
            "$SUDO_COMMAND\n");
  EXPECT_EQ(out("A=1 sudo -E sh -c 'echo $A'; sudo B=2 sh -c 'echo $B'"), "1\n2\n");
}

TEST_F(Sudo, PassesSignalsOn) {
  const Outcome outcome =
      run("mkfifo ~/ready; sudo sh -c 'trap \"echo told; exit 3\" TERM; echo > /home/user/ready; "
          "while :; do sleep 0.02; done' & read line < ~/ready; kill -TERM $!; wait $!; echo $?");

  EXPECT_EQ(outcome.output, "told\n3\n");
}

TEST_F(Sudo, LeavesNothingRunningWhenItIsKilled) {
  EXPECT_EQ(out("mkfifo ~/born; sudo sh -c 'echo $$ > /home/user/born; exec sleep 4711' & "
                "read pid < ~/born; exec 2>/dev/null; kill -KILL $!; "
                "for i in $(seq 500); do test -d /proc/$pid || { echo gone; break; }; "
                "sleep 0.02; done"),
            "gone\n");
}

TEST_F(Sudo, GoesOnInTheBackground) {
  EXPECT_EQ(out("sudo -b sh -c 'echo $$ > /tmp/background; exec sleep 4712' >/dev/null 2>&1; "
                "for i in $(seq 500); do test -s /tmp/background && break; sleep 0.02; done; "
                "test -d /proc/$(cat /tmp/background) && echo runs; "
                "sudo kill $(cat /tmp/background)"),
            "runs\n");
}

TEST_F(Sudo, OnATerminalTheCommandHasOneOfItsOwn) {
  EXPECT_EQ(on_terminal("sudo sh -c 'test -t 0 && test -t 1 && test -t 2 && stty size; tty < "
                        "/dev/tty > /dev/null && echo controls'"),
            "40 101\r\ncontrols\r\n");
  EXPECT_EQ(on_terminal("sudo sh -c 'echo plain' | cat"), "plain\r\n");
  EXPECT_EQ(
      on_terminal("stty -echo; sudo sh -c 'stty -echo; echo ready; read line; echo got $line; "
                  "exit 5'; echo $?; read line; echo back $line",
                  "words\nmore\n"),
      "ready\r\ngot words\r\n5\r\nback more\r\n");
}

TEST_F(Sudo, TellsWhatOneMay) {
  EXPECT_EQ(out("sudo -v; echo $?; sudo -k; echo $?"), "0\n0\n");
  EXPECT_EQ(out("sudo -l"),
            "User user may run the following commands in this sandbox:\n"
            "    (ALL : ALL) NOPASSWD: ALL\n");
  EXPECT_EQ(out("sudo -l id -u"), "/usr/bin/id -u\n");
  EXPECT_EQ(run("sudo -e /etc/hosts").exited.status.code, 1);
}

TEST_F(Sudo, ManyAtOnceWaitForTheirTurn) {
  EXPECT_EQ(out("for i in $(seq 60); do sudo echo $i & done | sort -n | tail -1; wait"), "60\n");
}

TEST_F(Sudo, WorksWhereTheRootCannotBeWritten) {
  const std::string id = create({.read_only_root = true});

  EXPECT_EQ(run("sudo id -u", "", id).output, "0\n");
  engine_->runtime().destroy(id);
}

}  // namespace
}  // namespace hearth::runtime
