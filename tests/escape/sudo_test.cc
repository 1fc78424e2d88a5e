// What a way to become root inside must not be: a way to anything else.
#include <gtest/gtest.h>

#include "escape/testing.h"

namespace hearth::escape {
namespace {

// Speaks to the guest as no sudo would. Prints what came back, and how many descriptors with it.
constexpr const char* kSpeak = R"(
import array, os, socket, struct, sys
name = '\0hearth-sudo-%d' % os.stat('/proc/self/ns/pid').st_ino
def knock():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(name)
    s.settimeout(5)
    return s
def hear(s):
    fds = array.array('i')
    text, control, _, _ = s.recvmsg(1 << 17, socket.CMSG_SPACE(4 * 200))
    for level, kind, data in control:
        fds.frombytes(data[:len(data) - len(data) % 4])
    return text, len(fds)
def say(s, text, fds=()):
    s.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])
)";

class SudoEscape : public EscapeTest {
 protected:
  std::string make(const std::vector<std::string>& sudoers, const std::string& joins = "") {
    runtime::SandboxSpec spec;
    spec.user = "user";
    spec.sudoers = sudoers;
    spec.joins = joins;
    return make_sandbox(spec);
  }
  static std::string out(const std::string& id, std::vector<std::string> command,
                         const std::string& user = "user") {
    guest::ExecRequest request;
    request.command = std::move(command);
    request.user = user;
    const runtime::Outcome outcome = runtime::run_in(runtime().connect(id), request);
    return outcome.output + outcome.error;
  }
  static std::string sh(const std::string& id, const std::string& script,
                        const std::string& user = "user") {
    return out(id, {"/bin/bash", "-c", script}, user);
  }
  static std::string speak(const std::string& id, const std::string& script,
                           const std::string& user = "user") {
    return out(id, {"python3", "-c", kSpeak + script}, user);
  }
};

TEST_F(SudoEscape, GivesNoMoreThanRootHasAnyway) {
  const std::string id = make({"user"});
  const std::string facts =
      "grep -E '^(Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)' /proc/self/status; cat "
      "/proc/self/cgroup; "
      "readlink /proc/self/ns/* | sort; cat /proc/self/limits; umask";

  const std::string by_sudo = sh(id, "sudo bash -c \"" + facts + "\"");

  EXPECT_EQ(by_sudo, sh(id, facts, "root"));
  EXPECT_NE(by_sudo.find("NoNewPrivs:\t1"), std::string::npos) << by_sudo;
  EXPECT_REFUSED(attempt(runtime(), id, {"mount"}, "user"));
  EXPECT_NE(sh(id, std::string("sudo ") + kPayload + " mount; echo $?").find("\n1\n"),
            std::string::npos);
  EXPECT_NE(sh(id, std::string("sudo ") + kPayload + " read-pid-one; echo $?").find("\n1\n"),
            std::string::npos);
}

TEST_F(SudoEscape, ItsProgramStaysAsItIs) {
  const std::string id = make({"user"});

  EXPECT_EQ(
      sh(id,
         "cd /usr/local/bin; exec 2>/dev/null; echo x > sudo || echo kept; rm -f sudo || echo "
         "kept; chmod 777 sudo || echo kept; chown 0 sudo || echo kept; umount "
         "/usr/local/bin/sudo || echo kept; sudo sleep 60 & until test $(readlink "
         "/proc/$!/exe) = /usr/local/bin/sudo; do sleep 0.01; done; echo x > /proc/$!/exe || "
         "echo kept; kill $!",
         "root"),
      "kept\nkept\nkept\nkept\nkept\nkept\n");
  EXPECT_EQ(sh(id, "sudo id -u"), "0\n");
}

TEST_F(SudoEscape, IsForThoseWhoMayAlone) {
  const std::string id = make({"user"});

  EXPECT_EQ(sh(id, "sudo id -u 2>&1; echo $?", "nobody"),
            "sudo: nobody may not run sudo in this sandbox\n1\n");
  EXPECT_EQ(sh(id, "sudo -v; sudo -l", "4711"),
            "sudo: 4711 may not run sudo in this sandbox\n"
            "sudo: 4711 may not run sudo in this sandbox\n");
}

TEST_F(SudoEscape, IsNotThereUnlessAskedFor) {
  EXPECT_EQ(sh(id_, "ls /usr/local/bin/sudo 2>&1 | grep -c 'No such'"), "1\n");
  EXPECT_EQ(speak(id_, R"(
try:
    knock()
    print('somebody listens')
except ConnectionRefusedError:
    print('nobody')
)"),
            "nobody\n");
}

TEST_F(SudoEscape, OtherContainersOfAPodAreStrangers) {
  const std::string first = make({"user"});
  const std::string second = make({}, first);
  const std::string inode = sh(first, "stat -L -c %i /proc/self/ns/pid | tr -d '\\n'");

  // They share the network, and so the name; not the right.
  const std::string answer = speak(second, "name = '\\0hearth-sudo-" + inode + R"('
s = knock()
text, fds = hear(s)
print(b'not allowed' in text, fds)
)",
                                   "root");

  EXPECT_EQ(answer, "True 0\n");
}

TEST_F(SudoEscape, TheGuestsOtherRequestsAreNotForSudo) {
  const std::string id = make({"user"});

  // Whatever the request is, in the protocol of clients from outside, and also while a command of
  // theirs runs: a hello would give the writable layer away.
  EXPECT_EQ(speak(id, R"(
for kind in range(0, 16):
    for body in (b'', b'\0', struct.pack('<I', 1), b'\1' * 9, b'\0' * 40):
        s = knock()
        hear(s)
        say(s, b'i' + bytes([kind]) + body)
        try:
            text, fds = hear(s)
        except socket.timeout:
            text, fds = b'', 0  # a signal to no command
        if fds:
            print('descriptors for', kind, body)
        s.close()
print('done')
)"),
            "done\n");
}

TEST_F(SudoEscape, WhateverIsSaidTheGuestGoesOn) {
  const std::string id = make({"user"});

  EXPECT_EQ(speak(id, R"(
import random
random.seed(7)
pipe = os.pipe()
lingering = socket.create_server(('127.0.0.1', 0))
for i in range(400):
    s = knock()
    fds = random.choice([(), pipe, [pipe[0]] * 180, [lingering.fileno()] * 3, [s.fileno()] * 3])
    try:
        say(s, random.choice([b'i', b'm', b'x', b'']) + random.randbytes(random.choice([0, 1, 9, 5000])), fds)
    except OSError:
        pass
    s.close()
silent = [knock() for _ in range(240)]
print('done')
)"),
            "done\n");
  EXPECT_EQ(sh(id, "sudo id -u"), "0\n");
}

TEST_F(SudoEscape, ThoseWhoOnlyKnockKeepNobodyOut) {
  const std::string id = make({"user"});

  // More than may be inside at once: the engine still gets in, and sudo when they have left.
  EXPECT_EQ(speak(id, R"(
all = []
for _ in range(300):
    all.append(knock())
for s in all[:256]:
    hear(s)
print('done')
)"),
            "done\n");
  EXPECT_EQ(sh(id, "echo here"), "here\n");
  EXPECT_EQ(sh(id, "sudo id -u"), "0\n");
}

}  // namespace
}  // namespace hearth::escape
