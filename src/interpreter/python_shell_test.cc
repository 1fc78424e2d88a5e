// Python cells: what IPython adds to the language, and its shell.
#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

using PythonShell = PythonTest;

// Where IPython is installed its own modules are there; these tests are about ours.
constexpr std::string_view kHideIPython =
    "import sys\n"
    "for name in [n for n in sys.modules if n.split('.')[0] == 'IPython']: del sys.modules[name]\n"
    "last = sys.meta_path.pop()\n"
    "sys.meta_path.insert(0, last)";

TEST_F(PythonShell, RunsMagicsOfOneLineWithoutTheirSign) {
  EXPECT_EQ(run("cd /usr").output, "/usr\n");
  EXPECT_EQ(text("pwd"), "/usr");
  EXPECT_NE(run("ls -d /usr/..").output.find("/usr/..\n"), std::string::npos);
  EXPECT_NE(run("  env\n").result_field("text").find("'PATH':"), std::string::npos);
  // What has a value is no magic, and what is assigned neither.
  EXPECT_EQ(text("pwd = 3; la = 1; pwd"), "3");
  EXPECT_EQ(text("pwd"), "3");
  EXPECT_EQ(run("ls = 5").error, "");
  EXPECT_EQ(text("ls -la"), "4");
  EXPECT_EQ(run("1\ncd /dev").error_field("name"), "NameError");
  EXPECT_EQ(run("nothing").error_field("name"), "NameError");
}

TEST_F(PythonShell, LeavesStringsAndBracketsBesideMagicsAlone) {
  const Executed executed =
      run("!echo ran\n"
          "x = (15\n  % 7)\n"
          "y = 15 \\\n  % 7\n"
          "words = '''it's (\n%cd /\n!echo no\n'''  # (\n"
          "short = 'a\\\n!b'\n"
          "if x:\n  !echo $x\n"
          "(x, y, words, short)");

  EXPECT_EQ(executed.error, "");
  EXPECT_EQ(executed.output, "ran\n1\n");
  EXPECT_EQ(executed.result_field("text"), R"((1, 1, "it's (\n%cd /\n!echo no\n", 'a!b'))");
}

TEST_F(PythonShell, RunsMagics) {
  EXPECT_EQ(run("%cd /usr").output, "/usr\n");
  EXPECT_EQ(run("x = 3\n!echo $x {x + 1}").output, "3 4\n");
  EXPECT_EQ(run("a = !printf 'one\\ntwo'\na").result_field("json"), R"(["one","two"])");
  EXPECT_EQ(run("%%bash\necho $((1 + 2))").output, "3\n");
  EXPECT_EQ(run("%env NAME=value\nimport os\nos.environ['NAME']").result_field("text"), "value");
  EXPECT_EQ(run("%matplotlib inline\n1").result_field("text"), "1");
  EXPECT_EQ(run("if True:\n    !echo inside").output, "inside\n");
  EXPECT_EQ(text("10 % 3"), "1");
  EXPECT_NE(run("%nonsense").error_output.find("`%nonsense` not found"), std::string::npos);
  EXPECT_EQ(run("%%nonsense\nx").error, "");
  EXPECT_EQ(run("%%bash\nexit 3").error_field("name"), "CalledProcessError");
}

TEST_F(PythonShell, KnowsIPythonsDisplayWithoutIPython) {
  const Executed executed =
      run("from IPython.display import display, HTML, Markdown, Image\n"
          "from IPython import get_ipython\n"
          "display(HTML('<i>'))\nMarkdown('# m')");

  EXPECT_EQ(executed.error, "");
  EXPECT_EQ(executed.result_field("html", 0), "<i>");
  EXPECT_EQ(executed.result_field("markdown", 1), "# m");
}

TEST_F(PythonShell, HasTheModulesThatLibrariesLookFor) {
  run(kHideIPython);
  EXPECT_EQ(run("import IPython.display as d; d.display(1)").result_field("text"), "1");
  EXPECT_EQ(text("from IPython import display\ndisplay.__name__, display.HTML('<i>').data"),
            "('IPython.display', '<i>')");
  EXPECT_EQ(text("import IPython; IPython.version_info[:2] >= (8, 24)"), "True");
  EXPECT_EQ(text("from IPython.lib.pretty import pretty; pretty([1])"), "[1]");
  EXPECT_EQ(run("from IPython.core.magic import Magics, magics_class, line_magic, cell_magic\n"
                "from IPython.core.magic import register_line_magic\n"
                "@magics_class\n"
                "class Own(Magics):\n"
                "  @line_magic\n"
                "  def shout(self, line): return line.upper()\n"
                "  @cell_magic('twice')\n"
                "  def again(self, line, cell): return cell * 2\n"
                "get_ipython().register_magics(Own)\n"
                "@register_line_magic\n"
                "def whisper(line): return line.lower()")
                .error,
            "");
  EXPECT_EQ(text("%shout a"), "A");
  EXPECT_EQ(text("%%twice\na"), "a\\na\\n");
  EXPECT_EQ(text("%whisper A"), "a");
  EXPECT_EQ(text("from IPython.utils.capture import capture_output\n"
                 "with capture_output() as c:\n  print(1); d.display(2)\n"
                 "c.stdout, len(c.outputs)"),
            "('1\\n', 1)");
  EXPECT_EQ(run("d.display_html(d.HTML('x'))").result_field("text"), "");
  EXPECT_EQ(run("d.Image(url='http://no.such/x.png')").result_field("html"),
            "<img src=\"http://no.such/x.png\"/>");
  EXPECT_EQ(text("h = d.display(1, display_id='one'); h"), "1");
  EXPECT_EQ(text("h, __IPYTHON__"), "(<DisplayHandle display_id=one>, True)");
  EXPECT_EQ(text("import nbformat; nbformat.__version__ > '4.2'"), "True");
}

TEST_F(PythonShell, TellsOfCells) {
  run("seen = []\nevents = get_ipython().events\n"
      "def after(result): seen.append((result.success, result.result))\n"
      "events.register('pre_run_cell', lambda info: seen.append(info.raw_cell))\n"
      "events.register('post_run_cell', after)\n"
      "events.register('post_execute', lambda: seen.append('post'))\n");
  run("seen.clear(); 6");
  run("1 / 0");
  run("events.unregister('post_run_cell', after)");

  EXPECT_EQ(text("str(seen[:5])"), "['post', (True, 6), '1 / 0', 'post', (False, None)]");
  EXPECT_EQ(text("len(seen)"), "10");
}

TEST_F(PythonShell, IsWhatLibrariesTakeForAKernels) {
  EXPECT_EQ(text("ip = get_ipython(); ip.__class__.__name__, 'IPKernelApp' in ip.config"),
            "('ZMQInteractiveShell', True)");
  EXPECT_EQ(text("ip.ev('1 + 1'), ip.user_ns is globals(), ip.run_line_magic('pwd', '')[0]"),
            "(2, True, '/')");
  EXPECT_EQ(run("ip.run_cell('1 / 0').success").result_field("text"), "False");

  run("class Thing: pass\n"
      "ip.display_formatter.formatters['text/html'].for_type(Thing, lambda thing: '<b>')\n"
      "ip.display_formatter.formatters['text/plain'].for_type(\n"
      "    Thing, lambda thing, p, cycle: p.text('thing'))");
  EXPECT_EQ(run("Thing()").result_field("html"), "<b>");
  EXPECT_EQ(text("[Thing()]"), "[thing]");

  run("ip.set_custom_exc((KeyError,), lambda shell, kind, error, tb, tb_offset=None: ['mine'])");
  EXPECT_EQ(run("{}['a']").error_field("traceback"), "mine");

  run("ip.ast_node_interactivity = 'all'");
  EXPECT_EQ(run("1\n2\nx = 3").results.size(), 2U);
}

TEST_F(PythonShell, TimesAndLists) {
  run("%timeit -n1 -r1 pass");
  const std::string timed = run("%timeit -n1 -r2 pass").output;
  EXPECT_NE(timed.find(" per loop (mean \u00b1 std. dev. of 2 runs, 1 loop each)"),
            std::string::npos)
      << timed;
  const Executed cell = run("%%time\nn = 1\nn + 1");
  EXPECT_EQ(cell.output.find("CPU times: user "), 0U) << cell.output;
  EXPECT_EQ(cell.result_field("text"), "2");
  EXPECT_EQ(text("x = %timeit -o -q -n1 -r1 pass\ntype(x).__name__"), "TimeitResult");
  run("%reset -f");
  EXPECT_EQ(run("%who").output, "Interactive namespace is empty.\n");
  run("n = 1; s = 'a'");
  EXPECT_EQ(run("%who int").output, "n\t \n");
  EXPECT_EQ(run("%whos").output,
            "Variable   Type   Data/Info\n---------------------------\nn          int    1\n"
            "s          str    a\n");
  EXPECT_NE(run("len?").output.find("Return the number of items"), std::string::npos);
}

TEST_F(PythonShell, RunsScriptsAndWritesFiles) {
  EXPECT_EQ(run("%%bash --out o --err e --no-raise-error\necho a; echo b >&2; exit 3").error, "");
  EXPECT_EQ(text("o, e, _exit_code"), R"(('a\n', 'b\n', 3))");
  EXPECT_EQ(run("import os, tempfile\nfolder = tempfile.mkdtemp()\n%cd -q $folder").output, "");
  run("%%writefile s.py\nimport sys\nprint(sys.argv[1:])\nvalue = 3");
  EXPECT_EQ(run("%run s.py a 'b c'\nvalue").result_field("text"), "3");
  EXPECT_EQ(run("%run none.py").error_field("value"), "File `'none.py'` not found.");
  EXPECT_EQ(run("%%capture kept\nprint('x')\ndisplay(5)").results.size(), 0U);
  EXPECT_EQ(text("kept.stdout, len(kept.outputs)"), "('x\\n', 1)");
  EXPECT_EQ(run("kept()").output, "x\n");
  EXPECT_EQ(run("%%html\n<b>").result_field("html"), "<b>\n");
  EXPECT_EQ(text("f = !echo a; echo b\nf.s, f.n"), "('a b', 'a\\nb')");
  EXPECT_EQ(run("v = 1\n!echo \"$v\" '$v' {v}{{v}}").output, "1 $v 1{v}\n");
  EXPECT_NE(run("%cd /none").output.find("No such file"), std::string::npos);
  EXPECT_EQ(run("%conda list").error_field("name"), "ValueError");
  EXPECT_EQ(run("%load_ext none_such").error_field("name"), "ModuleNotFoundError");
  run("%cd -q /\nimport shutil; shutil.rmtree(folder)");
}

}  // namespace
}  // namespace hearth::interpreter
