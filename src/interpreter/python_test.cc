// Python cells: what they give, print and raise.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

using Python = PythonTest;

TEST_F(Python, GivesTheLastExpression) {
  EXPECT_EQ(text("x = 5\nx * 2"), "10");
  EXPECT_EQ(text("x"), "5");
  EXPECT_EQ(text("'text'"), "text");
  EXPECT_EQ(text("\"it's\""), "it's");
  EXPECT_EQ(text("_"), "it's");
  EXPECT_TRUE(run("x;").results.empty());
  EXPECT_TRUE(run("(x);  # shown; not").results.empty());
  EXPECT_TRUE(run("x;\n\n# more").results.empty());
  EXPECT_EQ(text("x #;"), "5");
  EXPECT_EQ(text("'a;'"), "a;");
  EXPECT_TRUE(run("None").results.empty());
  EXPECT_TRUE(run("# nothing").results.empty());
}

TEST_F(Python, GivesListsAndDictsAsJsonToo) {
  const Executed executed = run("{'a': [1, 2.5, None], 3: float('nan')}");

  EXPECT_EQ(executed.result_field("text"), "{'a': [1, 2.5, None], 3: nan}");
  EXPECT_EQ(executed.result_field("json"), R"({"a":[1,2.5E0,null],"3":null})");
  EXPECT_EQ(run("{1: 'a', 0: 'b', (1, 2): 'c'}").result_field("json"),
            R"~({"1":"a","0":"b","(1, 2)":"c"})~");
  EXPECT_EQ(run("{True: 'a', None: 'b', (): 'c'}").result_field("json"),
            R"~({"true":"a","null":"b","()":"c"})~");
  EXPECT_EQ(run("[object()]").result_field("json"), "");
  EXPECT_EQ(text("list(range(30))").find("[0,\n 1,\n 2,"), 0U);
  EXPECT_EQ(run("a = []; a.append(a); a").result_field("text"), "[[...]]");
}

TEST_F(Python, TakesWhatWasCopiedFromElsewhere) {
  EXPECT_EQ(text("    def f():\n        return 3\n\n    f()\n  "), "3");
  EXPECT_EQ(text("\n\n\t# first\n\ty = 5\n\ty"), "5");
  EXPECT_EQ(run(">>> for i in range(2):\n...     print(i)\n...\n>>> print(2)").output, "0\n1\n2\n");
  EXPECT_EQ(text("In [3]: z = 1 + 2\n   ...: z"), "3");
  EXPECT_EQ(text("In [1][:8]"), "    def ");  // a question to the history, and no prompt
  EXPECT_EQ(run("  !echo indented").output, "indented\n");
  EXPECT_EQ(run("x = 1\n  y = 2").error_field("name"), "IndentationError");
}

TEST_F(Python, WhatComesFromTheFutureStays) {
  run("from __future__ import annotations");

  EXPECT_EQ(run("def f(a: unknown): pass").error, "");
  EXPECT_EQ(text("f.__annotations__"), "{'a': 'unknown'}");
}

TEST_F(Python, RemembersWhatCellsWereAndGave) {
  run("5");
  run("'text'");
  EXPECT_EQ(text("_, __, _1, Out[2], In[1], _i, _ii, _i2, len(In)"),
            "('text', 5, 5, 'text', '5', \"'text'\", '5', \"'text'\", 4)");
  run("_ = 'mine'");
  run("7");
  EXPECT_EQ(text("_"), "mine");
  EXPECT_EQ(text("_5"), "7");
}

TEST_F(Python, CellsThatCloseTheirOutputHarmNoOthers) {
  run("import os, sys\nsys.stdout.close()");
  EXPECT_EQ(run("print('again')").output, "again\n");
  run("sys.stderr = None");
  EXPECT_EQ(run("print('again', file=sys.stderr)").error_output, "again\n");
  run("os.close(1)");
  EXPECT_EQ(run("print('still')").output, "still\n");
  run("import io; sys.stdout = io.StringIO()");
  EXPECT_EQ(run("print('taken')").output, "");
  EXPECT_EQ(text("taken = sys.stdout.getvalue(); sys.stdout = sys.__stdout__; taken"), "taken\\n");
}

TEST_F(Python, SortsSets) {
  EXPECT_EQ(text("{'c', 'a', 'b', 'd'}"), "{'a', 'b', 'c', 'd'}");
  EXPECT_EQ(text("[{'c', 'a', 'b'}, {'k': frozenset({'z', 'x', 'y'})}, (set(),)]"),
            "[{'a', 'b', 'c'}, {'k': frozenset({'x', 'y', 'z'})}, (set(),)]");
  EXPECT_EQ(text("{'b', 2, 'a', 1}"), "{1, 2, 'a', 'b'}");
  EXPECT_TRUE(text("{str(i) * 20 for i in range(10, 20)}").starts_with("{'1010"));
  EXPECT_TRUE(text("a = [{'b', 'a'}]; a.append(a); a").starts_with("[{'a', 'b'}, ["));
}

TEST_F(Python, FindsWhatWasInstalledSinceItBegan) {
  // Where pip puts what an ordinary user installs: a folder that is not there at first.
  run("import os, site, sys, tempfile\n"
      "home = tempfile.mkdtemp()\n"
      "site.ENABLE_USER_SITE, site.USER_SITE = True, home + '/late/site-packages'");
  EXPECT_EQ(run("import late_one").error_field("name"), "ModuleNotFoundError");

  run("os.makedirs(site.USER_SITE)\n"
      "open(site.USER_SITE + '/late_one.py', 'w').write('answer = 42')");

  EXPECT_EQ(text("import late_one; late_one.answer"), "42");
  EXPECT_EQ(run("import late_two").error_field("name"), "ModuleNotFoundError");
  run("import shutil; shutil.rmtree(home)");
}

TEST_F(Python, AwaitsAtTheTopLevel) {
  EXPECT_EQ(text("import asyncio\nasync def f():\n  await asyncio.sleep(0)\n  return 7\nawait f()"),
            "7");
  EXPECT_EQ(text("asyncio.run(f())"), "7");
}

TEST_F(Python, HasALoopForWhatNobodyAwaits) {
  run("import asyncio\nasync def work(n):\n  await asyncio.sleep(0)\n  return n\n"
      "def begin(n): return asyncio.create_task(work(n))");
  EXPECT_EQ(run("task = asyncio.create_task(work(7))").error, "");
  EXPECT_EQ(text("await task"), "7");
  EXPECT_EQ(run("both = asyncio.gather(*[work(i) for i in range(2)])").error, "");
  EXPECT_EQ(text("await both"), "[0, 1]");
  EXPECT_EQ(text("asyncio.get_running_loop() is asyncio.get_event_loop()"), "True");
  EXPECT_EQ(text("loop = asyncio.get_event_loop(); loop.is_running()"), "True");
  EXPECT_EQ(text("loop.run_until_complete(work(8))"), "8");
  // A loop of its own is still allowed, whatever it is for.
  EXPECT_EQ(
      text("async def main():\n  return await asyncio.create_task(work(9))\nasyncio.run(main())"),
      "9");
  EXPECT_EQ(text("from asyncio import run\nrun(main())"), "9");
}

TEST_F(Python, FunctionsOfOtherCellsFindTheLoop) {
  run("import asyncio\nasync def work(n): return n\n"
      "def begin(n):\n  return asyncio.create_task(work(n))\n"
      "def complete(n):\n  return asyncio.run(work(n))");

  EXPECT_EQ(run("task = begin(1)").error, "");
  EXPECT_EQ(text("await task"), "1");
  EXPECT_EQ(text("complete(2)"), "2");
}

TEST_F(Python, TasksGoOnBetweenCells) {
  run("import asyncio\nasync def work():\n  await asyncio.sleep(0.001)\n  print('worked')\n"
      "task = asyncio.create_task(work())");
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::string output;

  while (output.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    output = run("task.done()").output;
  }

  EXPECT_EQ(output, "worked\n");
  EXPECT_EQ(text("task.done()"), "True");
}

TEST_F(Python, ErrorsUnderTheLoopShowTheCellAlone) {
  const Executed executed = run("import asyncio\nawait asyncio.sleep(0)\n1 / 0");

  EXPECT_EQ(executed.error_field("name"), "ZeroDivisionError");
  EXPECT_EQ(executed.error_field("traceback").find("base_events"), std::string::npos);
}

TEST_F(Python, KeepsTheOrderOfWhatIsWritten) {
  const Executed executed =
      run("import os, sys\n"
          "print('1'); print('2', file=sys.stderr); print('3'); os.write(1, b'4\\n')\n"
          "os.system('echo 4b')\n"
          "display(5); print('6', end=''); os.system('echo 7 >&2')\n");

  EXPECT_EQ(executed.output, "1\n3\n4\n4b\n6");
  EXPECT_EQ(executed.error_output, "2\n7\n");
  const std::string& body = executed.body;
  const auto at = [&](std::string_view what) { return body.find(what); };
  EXPECT_LT(at("1\\n"), at("2\\n"));
  EXPECT_LT(at("2\\n"), at("3\\n"));
  EXPECT_LT(at("4b\\n"), at("\"text\":\"5\""));
  EXPECT_LT(at("\"text\":\"5\""), at("\"text\":\"6"));
}

TEST_F(Python, ShowsRichForms) {
  const Executed executed =
      run("class Rich:\n"
          "  def __repr__(self): return 'plain'\n"
          "  def _repr_html_(self): return '<b>'\n"
          "  def _repr_markdown_(self): return '# h'\n"
          "  def _repr_svg_(self): return '<svg/>'\n"
          "  def _repr_png_(self): return b'png'\n"
          "  def _repr_jpeg_(self): return b'jpg'\n"
          "  def _repr_pdf_(self): return b'pdf'\n"
          "  def _repr_latex_(self): return '$x$'\n"
          "  def _repr_json_(self): return {'a': 1}\n"
          "  def _repr_javascript_(self): return 'f()'\n"
          "  def _repr_mimebundle_(self, include=None, exclude=None): return {'x/y': 'z'}\n"
          "Rich()");

  EXPECT_EQ(executed.result_field("text"), "plain");
  EXPECT_EQ(executed.result_field("html"), "<b>");
  EXPECT_EQ(executed.result_field("markdown"), "# h");
  EXPECT_EQ(executed.result_field("svg"), "<svg/>");
  EXPECT_EQ(executed.result_field("png"), "cG5n");
  EXPECT_EQ(executed.result_field("jpeg"), "anBn");
  EXPECT_EQ(executed.result_field("pdf"), "cGRm");
  EXPECT_EQ(executed.result_field("latex"), "$x$");
  EXPECT_EQ(executed.result_field("json"), R"({"a":1})");
  EXPECT_EQ(executed.result_field("javascript"), "f()");
  EXPECT_EQ(executed.result_field("extra"), R"({"x/y":"z"})");
}

TEST_F(Python, AFormThatFailsIsAnErrorAmongOthers) {
  const Executed executed =
      run("class Rich:\n"
          "  def _repr_html_(self): raise ValueError('no html')\n"
          "  def _repr_latex_(self): raise NotImplementedError\n"
          "  def _repr_markdown_(self): return '# h'\n"
          "Rich()");
  EXPECT_EQ(executed.error_field("value"), "no html");
  EXPECT_EQ(executed.error_field("traceback").find("hearth"), std::string::npos);
  EXPECT_EQ(executed.result_field("markdown"), "# h");

  const Executed unseen = run("class No:\n  def __repr__(self): raise KeyError('k')\nNo()");
  EXPECT_EQ(unseen.error_field("name"), "KeyError");
  EXPECT_TRUE(unseen.results.empty());
  EXPECT_EQ(run("display(No()); print('goes on')").output, "goes on\n");
}

TEST_F(Python, DisplaysBeforeTheResult) {
  const Executed executed = run("display(1, 2)\n3");

  ASSERT_EQ(executed.results.size(), 3U);
  EXPECT_EQ(executed.result_field("is_main_result", 0), "false");
  EXPECT_EQ(executed.result_field("is_main_result", 2), "true");
}

TEST_F(Python, DisplaysFromManyThreadsAtOnce) {
  const Executed executed = run(
      "from concurrent.futures import ThreadPoolExecutor\n"
      "with ThreadPoolExecutor(8) as pool:\n"
      "  for i in range(40): pool.submit(display, {'text/html': str(i % 10) * 300_000}, raw=True)\n"
      "x = 5");

  EXPECT_EQ(executed.error, "");
  ASSERT_EQ(executed.results.size(), 40U);
  for (std::size_t i = 0; i < executed.results.size(); ++i) {
    const std::string html = executed.result_field("html", i);
    EXPECT_EQ(html, std::string(300'000, html.front()));
  }
  EXPECT_EQ(text("x"), "5");
}

TEST_F(Python, DisplaysFromAHandlerOfSignals) {
  const Executed executed =
      run("import signal\ntimes = 0\n"
          "def show(*ignored):\n  global times\n  times += 1\n  display('from the handler')\n"
          "signal.signal(signal.SIGALRM, show)\n"
          "signal.setitimer(signal.ITIMER_REAL, 0.005, 0.007)\n"
          "while times < 8: display({'text/html': 'x' * 10_000_000}, raw=True)\n"
          "signal.setitimer(signal.ITIMER_REAL, 0)\n'end'");

  EXPECT_EQ(executed.error, "");
  EXPECT_EQ(executed.kinds.back(), "end_of_execution");
  ASSERT_FALSE(executed.results.empty());
  EXPECT_EQ(executed.result_field("text", executed.results.size() - 1), "end");
}

TEST_F(Python, ReportsErrorsWithTheCellsLines) {
  const Executed executed = run("def f():\n  return 1 / 0\nprint('before')\nf()");

  EXPECT_EQ(executed.output, "before\n");
  EXPECT_EQ(executed.error_field("name"), "ZeroDivisionError");
  EXPECT_EQ(executed.error_field("value"), "division by zero");
  const std::string trace = executed.error_field("traceback");
  EXPECT_NE(trace.find("Cell In[1], line 2, in f()\n      1 def f():\n"), std::string::npos)
      << trace;
  EXPECT_NE(trace.find("----> 2   return 1 / 0"), std::string::npos) << trace;
  EXPECT_EQ(trace.find("hearth"), std::string::npos) << trace;
}

TEST_F(Python, ShowsErrorsAsIPythonDoes) {
  const std::string rule = std::string(75, '-') + "\n";
  const std::string head = "Traceback (most recent call last)\n";
  EXPECT_EQ(run("def f(x, *args, y=1):\n  # no\n\n  return [\n    x] / y\n\nf(1)\n2\n3\n4\n5")
                .error_field("traceback"),
            rule + "TypeError" + std::string(33, ' ') + head +
                "Cell In[1], line 7\n      3 \n      4   return [\n      5     x] / y\n      6 \n"
                "----> 7 f(1)\n      8 2\n      9 3\n     10 4\n\n"
                "Cell In[1], line 4, in f(x, y, *args)\n      1 def f(x, *args, y=1):\n"
                "      2   # no\n      3 \n----> 4   return [\n      5     x] / y\n\n"
                "TypeError: unsupported operand type(s) for /: 'list' and 'int'");
  EXPECT_EQ(run("raise KeyError").error_field("traceback"),
            rule + "KeyError" + std::string(34, ' ') + head +
                "Cell In[2], line 1\n----> 1 raise KeyError\n\nKeyError: ");
  EXPECT_EQ(
      run("if 1\n  2").error_field("traceback").find("  Cell In[3], line 1\n    if 1\n        ^\n"),
      0U);
  EXPECT_NE(
      run("import json\njson.loads('{')").error_field("traceback").find("\nJSONDecodeError: "),
      std::string::npos);
  const std::string inner = run("exec('x = = 1')").error_field("traceback");
  EXPECT_EQ(inner.find("Traceback (most recent call last):\n\n  Cell In[5], line 1\n"), 0U)
      << inner;
}

TEST_F(Python, ReportsSyntaxErrors) {
  const Executed executed = run("x = = 1");

  EXPECT_EQ(executed.error_field("name"), "SyntaxError");
  EXPECT_NE(executed.error_field("traceback").find("Cell In[1], line 1"), std::string::npos);
}

TEST_F(Python, ChainsErrors) {
  const std::string trace =
      run("try:\n  1 / 0\nexcept Exception as e:\n  raise KeyError('k') from e")
          .error_field("traceback");
  EXPECT_NE(trace.find("ZeroDivisionError"), std::string::npos);
  EXPECT_NE(trace.find("direct cause"), std::string::npos);
}

TEST_F(Python, SurvivesExits) {
  run("x = 1");
  EXPECT_EQ(run("import sys; sys.exit(3)").error_field("name"), "SystemExit");
  EXPECT_EQ(run("exit()").error_field("name"), "SystemExit");
  EXPECT_EQ(run("raise KeyboardInterrupt").error_field("name"), "KeyboardInterrupt");
  EXPECT_EQ(text("x"), "1");
}

TEST_F(Python, HasNobodyToAsk) {
  EXPECT_EQ(run("input('name?')").error_field("name"), "EOFError");
  EXPECT_EQ(text("import sys; repr(sys.stdin.read())"), "''");
  EXPECT_EQ(run("import os; os.system('cat')").results.size(), 1U);
}

TEST_F(Python, IsTheMainModule) {
  EXPECT_EQ(text("__name__"), "__main__");
  EXPECT_EQ(text("import pickle\ndef f(): pass\npickle.loads(pickle.dumps(f)) is f"), "True");
  EXPECT_EQ(text("sorted(name for name in globals() if not name.startswith('_'))"),
            "['In', 'Out', 'f', 'pickle']");
}

TEST_F(Python, ForksAreNotTheKernel) {
  EXPECT_EQ(run("import os\npid = os.fork()").error, "");
  EXPECT_EQ(text("os.waitpid(pid, 0)[1] if pid else 'child'"), "0");
  EXPECT_EQ(run("import multiprocessing as m\n"
                "with m.Pool(2) as pool: print(pool.map(abs, [-1, -2]))")
                .output,
            "[1, 2]\n");
}

TEST_F(Python, ManySmallWritesAndSwitchesArrive) {
  const Executed executed =
      run("import sys\nfor i in range(200):\n  print(i)\n  print(i, file=sys.stderr)");

  EXPECT_EQ(executed.output, executed.error_output);
  EXPECT_TRUE(executed.output.ends_with("198\n199\n"));
}

TEST_F(Python, WhatBackgroundProcessesWriteComesWithTheNextCell) {
  run("import subprocess, os\n"
      "p = subprocess.Popen(['sh', '-c', 'read x; echo late'], stdin=subprocess.PIPE)");
  const Executed executed = run("p.communicate(b'go\\n'); p.wait()");

  EXPECT_EQ(executed.output, "late\n");
}

}  // namespace
}  // namespace hearth::interpreter
