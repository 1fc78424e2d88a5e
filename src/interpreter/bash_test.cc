// Bash cells.
#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

class Bash : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    if (::system("bash -c : >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "there is no bash on this machine";
  }
  Executed run(std::string_view code, const std::string& more = "") const {
    return read_events(guest_.ask("POST", "/execute", cell(code, R"("language":"bash")" + more)));
  }

  TestGuest guest_;
};

TEST_F(Bash, KeepsWhatCellsDeclare) {
  run("x=5; declare -A map=([a]=1); f() { echo \"f $1\"; }; cd /usr");
  EXPECT_EQ(run("echo $x ${map[a]}; f 2; pwd").output, "5 1\nf 2\n/usr\n");
}

TEST_F(Bash, TakesAnyText) {
  EXPECT_EQ(run("cat <<'END'\nit's \\n \"$x\" \t\u20ac\nEND").output, "it's \\n \"$x\" \t\u20ac\n");
  EXPECT_EQ(run("").error, "");
}

TEST_F(Bash, ReportsTheExitStatus) {
  const Executed executed = run("echo before; false");

  EXPECT_EQ(executed.output, "before\n");
  EXPECT_EQ(executed.error_field("name"), "ExitStatus");
  EXPECT_EQ(executed.error_field("value"), "1");
  EXPECT_EQ(run("true").error, "");
  EXPECT_EQ(run("if").error_field("name"), "ExitStatus");
}

TEST_F(Bash, ExitEndsTheShellAndTheNextCellHasANewOne) {
  EXPECT_EQ(run("x=1; exit 3").error_field("value"), "3");
  EXPECT_EQ(run("exit 0").error, "");
  EXPECT_EQ(run("echo \"[$x]\"").output, "[]\n");
}

TEST_F(Bash, SetsVariablesForOneCell) {
  EXPECT_EQ(run("echo $OWN", R"(,"env_vars":{"OWN":"it's \\ \n"})").output, "it's \\\n");
  EXPECT_EQ(run("echo [$OWN]").output, "[]\n");
}

TEST_F(Bash, IsNotBrokenByWhatACellRedefines) {
  run("alias say='echo said' eval=false read=false trap=false builtin=false printf=false");
  EXPECT_EQ(run("say it").output, "said it\n");
  run("unalias -a; read() { echo no; }; printf() { echo no; }; trap() { echo no; }; eval() { :; }");
  EXPECT_EQ(run("export() { :; }; echo $OWN", R"(,"env_vars":{"OWN":"1"})").output, "1\n");
  EXPECT_EQ(run("echo [$OWN]", R"(,"env_vars":{"TWO":"2"})").output, "[]\n");
}

TEST_F(Bash, TellsOfTheCellAloneWhenItTraces) {
  EXPECT_EQ(run("set -x").error_output, "");
  const Executed traced = run("echo a; (exit 3)");
  EXPECT_EQ(traced.output, "a\n");
  EXPECT_EQ(traced.error_output.find("hearth"), std::string::npos) << traced.error_output;
  EXPECT_NE(traced.error_output.find("+ echo a\n"), std::string::npos) << traced.error_output;
  EXPECT_EQ(traced.error_field("value"), "3");
  run("set +x");
  EXPECT_EQ(run("echo b").error_output, "");
}

TEST_F(Bash, HasNothingOnItsInput) {
  EXPECT_EQ(run("cat; read x; echo done").output, "done\n");
}

TEST_F(Bash, IsInterruptedByADeparture) {
  run("x=5");
  for (const char* endless :
       {"echo begun; sleep 60; x=wrong",
        "f() { while :; do sleep 60; done; }; g() { echo begun; f; sleep 60; }; g; sleep 60",
        "echo begun; while :; do :; done; x=wrong"}) {
    serve::TestClient client = guest_.begin(cell(endless, R"("language":"bash")"));
    client.receive_piece();
    client.close();
    EXPECT_EQ(run("echo $x").output, "5\n") << endless;
  }
}

}  // namespace
}  // namespace hearth::interpreter
