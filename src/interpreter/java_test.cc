// Java cells.
#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

// A kernel takes seconds of processor time to start: each test asks for many things.
class Java : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    if (::system("java --list-modules 2>/dev/null | grep -q jdk.jshell") != 0)
      GTEST_SKIP() << "there is no JDK on this machine";
  }
  Executed run(std::string_view code, std::string_view more = "") const {
    const std::string language = R"("language":"java")";
    return read_events(guest_.ask("POST", "/execute", cell(code, language + std::string(more))));
  }
  std::string text(std::string_view code) const { return run(code).result_field("text"); }

  TestGuest guest_;
};

TEST_F(Java, GivesTheLastExpressionAndKeepsWhatIsDeclared) {
  const Executed first = run("1 + 1");
  EXPECT_EQ(first.result_field("text"), "2");
  EXPECT_EQ(first.error_output, "");
  EXPECT_EQ(text("String s = \"a\\\"b\"; s + \"c\""), "a\"bc");
  EXPECT_EQ(text("\"\\\\d\\n\\t\\u0007 'x' $1\""), "\\d\n\t\a 'x' $1");
  EXPECT_EQ(text("'\\''"), "'");
  EXPECT_TRUE(run("int x = 5;").results.empty());
  EXPECT_TRUE(run("// nothing").results.empty());
  EXPECT_EQ(
      text("int twice(int n) {\n  return 2 * n;\n}\nclass P { int v = twice(x); }\nnew P().v"),
      "10");
  EXPECT_EQ(text("List.of(1, 2).stream().map(n -> n + x).collect(Collectors.toList())"), "[6, 7]");
  EXPECT_EQ(text("x = 7"), "7");

  const Executed written = run("System.out.println(\"čau\"); System.err.print(\"e\"); 1;");
  EXPECT_EQ(written.output, "čau\n");
  EXPECT_EQ(written.error_output, "e");
  EXPECT_EQ(written.result_field("text"), "1");

  const std::string_view ask =
      "System.getProperty(\"ONE\") + System.getenv(\"ONE\") + System.getenv(\"HOME\")";
  const Executed given = run(ask, R"(,"env_vars":{"ONE":"1","HOME":"/own"})");
  EXPECT_EQ(given.result_field("text"), "11/own");
  EXPECT_EQ(text(ask).find("nullnull/"), 0U);
  EXPECT_EQ(text(ask).find("own"), std::string::npos);
  EXPECT_EQ(text("System.getProperty(\"HOME\").equals(System.getenv(\"HOME\"))"), "true");
}

TEST_F(Java, ReportsErrors) {
  const Executed thrown =
      run("int f(int n) { return n / 0; }\nf(1);\nSystem.out.print(\"not here\")");
  EXPECT_EQ(thrown.error_field("name"), "ArithmeticException");
  EXPECT_EQ(thrown.error_field("value"), "/ by zero");
  EXPECT_NE(thrown.error_field("traceback").find("at .f("), std::string::npos);
  EXPECT_EQ(thrown.output, "");
  const Executed unknown = run("int y = nope;");
  EXPECT_EQ(unknown.error_field("name"), "CompilationException");
  EXPECT_EQ(unknown.error_field("value"), "cannot find symbol");
  const Executed own =
      run("class Mine extends RuntimeException { Mine(Throwable t) { super(\"a $1 \\\\\", t); } }\n"
          "throw new Mine(new IllegalStateException(\"why\"));");
  EXPECT_EQ(own.error_field("name"), "Mine");
  EXPECT_EQ(own.error_field("value"), "a $1 \\");
  EXPECT_EQ(own.error_field("traceback").find("Mine: a $1"), 0U) << own.body;
  EXPECT_NE(own.error_field("traceback").find("java.lang.IllegalStateException: why"),
            std::string::npos);
  EXPECT_EQ(run("int z = ;").error_field("name"), "CompilationException");
  EXPECT_EQ(run("class Open {").error_field("name"), "CompilationException");
}

TEST_F(Java, IsInterruptedByADeparture) {
  run("int x = 5;");
  for (const char* endless : {"System.out.println(1); while (true) {}",
                              "System.out.println(1); Thread.sleep(600_000);"}) {
    serve::TestClient client = guest_.begin(cell(endless, R"("language":"java")"));
    client.receive_piece();
    client.close();
    const Executed next = run("x");
    EXPECT_EQ(next.result_field("text"), "5") << next.body;
  }
}

}  // namespace
}  // namespace hearth::interpreter
