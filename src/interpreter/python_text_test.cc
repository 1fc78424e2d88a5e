// The text of Python's values, which is IPython's.
#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

using PythonText = PythonTest;

TEST_F(PythonText, OfContainersIsBrokenWhereItDoesNotFit) {
  EXPECT_EQ(text("{'list': list(range(100, 120))}").substr(0, 35),
            "{'list': [100,\n  101,\n  102,\n  103,");
  EXPECT_EQ(text("['a' * 30, ('b' * 30,), ['c' * 10, 'd' * 10]]"),
            "['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',\n ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',),\n"
            " ['cccccccccc', 'dddddddddd']]");
  EXPECT_EQ(text("[['a' * 15] * 5], 3"),
            "([['aaaaaaaaaaaaaaa',\n   'aaaaaaaaaaaaaaa',\n   'aaaaaaaaaaaaaaa',\n"
            "   'aaaaaaaaaaaaaaa',\n   'aaaaaaaaaaaaaaa']],\n 3)");
  EXPECT_EQ(text("class Two:\n  def __repr__(self): return 'one\\ntwo'\n[Two(), {'a': Two()}]"),
            "[one\n two,\n {'a': one\n  two}]");
}

TEST_F(PythonText, OfObjectsIsTheirOwn) {
  run("class P:\n"
      "  def __init__(self, value): self.value = value\n"
      "  def _repr_pretty_(self, p, cycle):\n"
      "    with p.group(2, 'P<', '>'):\n"
      "      p.pretty(self.value); p.text(','); p.breakable(); p.text('x' * 20)\n");
  EXPECT_EQ(text("P(1)"), "P<1, xxxxxxxxxxxxxxxxxxxx>");
  EXPECT_EQ(
      text("[P(P(P(P('y' * 30))))]"),
      "[P<P<P<P<'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy', xxxxxxxxxxxxxxxxxxxx>,\n"
      "       xxxxxxxxxxxxxxxxxxxx>,\n     xxxxxxxxxxxxxxxxxxxx>,\n   xxxxxxxxxxxxxxxxxxxx>]");
  EXPECT_EQ(text("class O: pass\n[O()]").find("[<__main__.O at 0x"), 0U);
  EXPECT_EQ(text("a = [1]; a.append(a); a"), "[1, [...]]");
}

TEST_F(PythonText, OfKnownClassesIsAsInIPython) {
  EXPECT_EQ(
      text("import collections as c, re, types, math\n"
           "[c.OrderedDict(a=1), c.defaultdict(int, a=1), c.Counter('aab'), c.deque([1], 3)]"),
      "[OrderedDict([('a', 1)]),\n defaultdict(int, {'a': 1}),\n Counter({'a': 2, 'b': 1}),\n"
      " deque([1], maxlen=3)]");
  EXPECT_EQ(text("def f(a, b=1): pass\n[f, len, int, P] if 'P' in globals() else [f, len, int]"),
            "[<function __main__.f(a, b=1)>, <function len(obj, /)>, int]");
  EXPECT_EQ(text("ValueError('x', 1), types.SimpleNamespace(a=1), types.MappingProxyType({1: 2})"),
            "(ValueError('x', 1), namespace(a=1), mappingproxy({1: 2}))");
  EXPECT_EQ(text(R"(re.compile(r'\d', re.I))"), R"(re.compile(r'\d', re.IGNORECASE|re.UNICODE))");
  run("%precision 3");
  EXPECT_EQ(text("math.pi"), "3.142");
}

}  // namespace
}  // namespace hearth::interpreter
