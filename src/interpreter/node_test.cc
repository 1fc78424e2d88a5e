// JavaScript and TypeScript cells.
#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

class Node : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    if (::system("node -e 0 >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "there is no node on this machine";
  }
  Executed run(std::string_view code, std::string_view language = "javascript") const {
    const std::string more = fmt::format(R"("language":"{}")", language);
    return read_events(guest_.ask("POST", "/execute", cell(code, more)));
  }
  std::string text(std::string_view code) const { return run(code).result_field("text"); }

  TestGuest guest_;
};

TEST_F(Node, GivesTheLastExpression) {
  EXPECT_EQ(text("1 + 1"), "2");
  EXPECT_EQ(text("'text'"), "text");
  EXPECT_EQ(text("({a: [1, 2]})"), "{ a: [ 1, 2 ] }");
  EXPECT_EQ(text("null"), "null");
  EXPECT_EQ(text("10n"), "10n");
  EXPECT_EQ(text("-0"), "-0");
  EXPECT_EQ(text("Symbol('s')"), "Symbol(s)");
  EXPECT_TRUE(run("undefined").results.empty());
  EXPECT_TRUE(run("const unused = 1").results.empty());
}

TEST_F(Node, DeclaresAgain) {
  run("const a = 1; let b = 2; class C {}; function f() { return a; }");
  EXPECT_EQ(text("const a = 3; let b = 4; class C {}; [a, b, f()]"), "[ 3, 4, 3 ]");
}

TEST_F(Node, RemembersTheLastValueWhereNothingElseIsCalledThat) {
  run("6 * 7");
  EXPECT_EQ(text("_ + 1"), "43");
  run("_ = 'mine'");
  run("1");
  EXPECT_EQ(text("_"), "mine");
}

TEST_F(Node, AwaitsAtTheTopLevel) {
  EXPECT_EQ(text("const v = await new Promise((r) => setTimeout(() => r(5), 5)); v + 1"), "6");
}

TEST_F(Node, WaitsForAPromiseThatIsTheResult) {
  const Executed executed =
      run("async function main() {\n  await new Promise((r) => setTimeout(r, 5));\n"
          "  console.log('in');\n  return 42;\n}\nmain()");
  EXPECT_EQ(executed.result_field("text"), "42");
  EXPECT_EQ(executed.output, "in\n");
  EXPECT_EQ(text("_"), "42");
  EXPECT_TRUE(run("(async () => {})()").results.empty());

  const Executed rejected = run("(async () => { throw new TypeError('no') })()");
  EXPECT_EQ(rejected.error_field("name"), "TypeError");
  EXPECT_EQ(rejected.error_field("value"), "no");
  EXPECT_EQ(rejected.error_output, "");
  EXPECT_EQ(run("Promise.reject('text')").error_field("value"), "text");
}

TEST_F(Node, ShowsRichForms) {
  const Executed shown = run("$$.html('<b>'); 'not this'");
  ASSERT_EQ(shown.results.size(), 1U) << shown.body;
  EXPECT_EQ(shown.result_field("html"), "<b>");
  EXPECT_EQ(shown.result_field("is_main_result"), "true");
  EXPECT_EQ(run("$$.png(Buffer.from('png'))").result_field("png"), "cG5n");
  EXPECT_EQ(run("$$.json({a: [1]})").result_field("json"), R"({"a":[1]})");
  const Executed both = run("$$.svg('<svg/>', true); $$.mime({'text/plain': 't', 'x/y': 'z'})");
  ASSERT_EQ(both.results.size(), 2U) << both.body;
  EXPECT_EQ(both.result_field("is_main_result", 0), "false");
  EXPECT_EQ(both.result_field("text", 1), "t");
  EXPECT_EQ(both.result_field("extra", 1), R"({"x/y":"z"})");

  const Executed value =
      run("({a: 1, _toHtml: () => '<i>', _toMime: () => ({'text/markdown': '# m'}),"
          " _toPng() { throw 1 }})");
  EXPECT_EQ(value.result_field("html"), "<i>");
  EXPECT_EQ(value.result_field("markdown"), "# m");
  EXPECT_EQ(value.result_field("text").find("{\n  a: 1,"), 0U) << value.body;
  EXPECT_EQ(run("const loop = {}; loop.me = loop; $$.json(loop)").kinds.size(), 3U);
  EXPECT_EQ(run("({[util.inspect.custom]() { throw new Error('no') }})").error_field("value"),
            "no");
}

TEST_F(Node, WaitsForWhatIsShownLater) {
  const Executed later = run("$$.async(); setTimeout(() => $$.sendResult({a: 1}), 5); 'not this'");
  EXPECT_EQ(later.result_field("text"), "{ a: 1 }");
  EXPECT_EQ(run("$$.async(); setTimeout(() => { console.log('in'); $$.done() }, 5)").output,
            "in\n");
  EXPECT_EQ(
      run("$$.async(); setTimeout(() => $$.sendError(new Error('no')), 5)").error_field("value"),
      "no");
  EXPECT_EQ(text("6 * 7"), "42");
}

TEST_F(Node, Imports) {
  EXPECT_EQ(text("import fs from 'fs'; typeof fs.readFileSync"), "function");
  EXPECT_EQ(text("import * as p from 'node:path'\nimport {join as j, sep} from \"path\";\n"
                 "j('a', 'b') + p.sep + sep"),
            "a/b//");
  EXPECT_EQ(text("(await import('os')).EOL"), "\n");
  EXPECT_EQ(text("require('path').basename('/a/b')"), "b");
  EXPECT_EQ(text("'import fs from nowhere; import(1)'"), "import fs from nowhere; import(1)");
  EXPECT_EQ(text("export const e = 5; e"), "5");
  EXPECT_EQ(text("export {e}; export * from 'os'; e"), "5");
  EXPECT_EQ(text("import {\n  EOL, // a comment, with commas\n  cpus as c,\n} from 'os'\ntypeof c"),
            "function");
  EXPECT_EQ(text("import os, * as all from 'os'; import 'fs'; os === all.default"), "true");
  EXPECT_EQ(text("import.meta.url.slice(0, 8) + import.meta.filename.slice(0, 1)"), "file:////");
  const std::string json = "'data:application/json,{\"v\":7}'";
  EXPECT_EQ(text("import d from " + json + " with {type: 'json'}; d.v"), "7");
  EXPECT_EQ(text("(await import(" + json + ", {with: {type: 'json'}})).default.v"), "7");
}

TEST_F(Node, StacksEndWithTheCell) {
  EXPECT_EQ(run("function f() { console.log(new Error('seen').stack) }\nf()").output,
            "Error: seen\n    at f (<anonymous>:1:28)\n    at <anonymous>:2:1\n");
  const std::string missing = run("import x from 'no-such-one'").error_field("traceback");
  EXPECT_EQ(missing.find("Error: Cannot find package"), 0U) << missing;
  EXPECT_EQ(run("throw new TypeError('bad')").error_field("traceback"),
            "TypeError: bad\n    at <anonymous>:1:7");
}

TEST_F(Node, WritesToBothStreams) {
  const Executed executed =
      run("console.log('a', {b: 1}); console.error('c'); process.stdout.write('d')");

  EXPECT_EQ(executed.output, "a { b: 1 }\nd");
  EXPECT_EQ(executed.error_output, "c\n");
}

TEST_F(Node, ReportsErrors) {
  const Executed executed = run("function f() { throw new TypeError('bad') }\nf()");

  EXPECT_EQ(executed.error_field("name"), "TypeError");
  EXPECT_EQ(executed.error_field("value"), "bad");
  EXPECT_NE(executed.error_field("traceback").find("at f ("), std::string::npos);
  EXPECT_EQ(executed.error_field("traceback").find("inspector"), std::string::npos);
  EXPECT_EQ(run("let {").error_field("name"), "SyntaxError");
  EXPECT_EQ(run("await Promise.reject(new Error('later'))").error_field("value"), "later");
  EXPECT_EQ(run("throw 'text'").error_field("value"), "text");
}

TEST_F(Node, SurvivesErrorsInTheBackground) {
  const Executed first =
      run("globalThis.x = 1; setTimeout(() => { throw new Error('background') }, 1)");
  const Executed executed = run("await new Promise((r) => setTimeout(r, 50)); x");

  EXPECT_EQ(executed.result_field("text"), "1");
  EXPECT_NE((first.error_output + executed.error_output).find("background"), std::string::npos);
}

TEST_F(Node, IsInterruptedByADeparture) {
  run("var x = 5");
  for (const char* endless : {"console.log('begun'); while (true) {}",
                              "console.log('begun'); await new Promise(() => {})",
                              "console.log('begun'); new Promise(() => {})"}) {
    serve::TestClient client = guest_.begin(cell(endless, R"("language":"js")"));
    client.receive_piece();
    client.close();
    const Executed next = run("x");
    EXPECT_EQ(next.result_field("text"), "5") << next.body;
  }
}

TEST_F(Node, TypeScriptRunsOrSaysWhatIsMissing) {
  const Executed executed = run("interface A { a: number }\nconst v: A = {a: 1}; v.a", "ts");

  if (executed.error.empty()) {
    EXPECT_EQ(executed.result_field("text"), "1");
  } else {
    EXPECT_NE(executed.error_field("value").find("'typescript'"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::interpreter
