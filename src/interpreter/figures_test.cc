// Figures, tables and pictures: with the libraries of a virtual environment that is made for these
// tests, once for each build folder, where a package index can be reached.
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

// Empty when there is none, and none can be made. That takes as long as a test may; so whoever
// comes in the ten minutes after does not try again.
std::string folder_with_libraries() {
  const char* programs = std::getenv("HEARTH_BIN");
  if (programs == nullptr) return "";
  const std::string folder = std::string(programs) + "/../tests/python-with-charts";
  const std::string make = fmt::format(
      R"(flock '{0}.lock' sh -c "'{0}/bin/python3' -c 'import matplotlib, pandas, PIL' || )"
      R"({{ test -z \"\$(find '{0}.failed' -mmin -10)\" && touch '{0}.failed' && timeout 100 )"
      R"(sh -c \"python3 -m venv '{0}' && '{0}/bin/pip' -q --timeout 5 --retries 0 install )"
      R"(matplotlib pandas pillow\" && rm '{0}.failed'; }}" >/dev/null 2>&1)",
      folder);
  return ::system(make.c_str()) == 0 ? folder : "";
}

class Figures : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    const std::string folder = folder_with_libraries();
    if (folder.empty()) GTEST_SKIP() << "matplotlib, pandas and pillow cannot be installed";
    guest_.emplace(
        guest::Settings{.environment = {fmt::format("PATH={}/bin:/usr/bin:/bin", folder)}});
  }
  Executed run(std::string_view code) const {
    return read_events(guest_->ask("POST", "/execute", cell(code)));
  }
  // The chart of the last result.
  std::string chart(std::string_view code) const {
    const Executed executed = run(fmt::format("import matplotlib.pyplot as plt\n{};", code));
    EXPECT_EQ(executed.error, "");
    return executed.results.empty() ? ""
                                    : executed.result_field("chart", executed.results.size() - 1);
  }

  std::optional<TestGuest> guest_;
};

TEST_F(Figures, AreShownAtTheEndOfTheCellOrWhenAskedFor) {
  const Executed at_end = run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('x')");
  ASSERT_EQ(at_end.results.size(), 1U) << at_end.body;
  EXPECT_TRUE(at_end.result_field("png").starts_with("iVBOR"));
  EXPECT_EQ(at_end.result_field("is_main_result"), "false");
  EXPECT_EQ(at_end.result_field("text"), "<Figure size 640x480 with 1 Axes>");

  const Executed shown = run("plt.plot([1, 2])\nplt.show()\nprint('after')");
  ASSERT_EQ(shown.results.size(), 1U);
  EXPECT_EQ(shown.error_output, "");
  EXPECT_LT(shown.body.find("png"), shown.body.find("after"));
}

TEST_F(Figures, CarryTheirData) {
  const std::string line =
      chart("plt.plot([1, 2], [3.5, 4.5]); plt.xlabel('t (s)'); plt.title('T')");
  EXPECT_NE(line.find(R"j("type":"line","title":"T","x_label":"t (s)","y_label":null)j"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find(R"({"label":"Line 0","points":[[1E0,3.5E0],[2E0,4.5E0]]})"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find(R"("x_scale":"linear")"), std::string::npos);

  EXPECT_NE(chart("plt.scatter([1], [2], label='S')").find(R"("type":"scatter")"),
            std::string::npos);
  const std::string bars = chart("plt.bar(['a', 'b'], [3, 4])");
  EXPECT_NE(bars.find(R"("elements":[{"label":"a","group":"Group 0","value":3E0},{"label":"b")"),
            std::string::npos)
      << bars;
  const std::string across = chart("plt.barh(['a', 'b'], [3, 4]); plt.xlabel('v')");
  EXPECT_NE(across.find(R"("y_label":"v")"), std::string::npos) << across;
  const std::string pie = chart("plt.pie([1, 3], labels=['x', 'y'])");
  EXPECT_NE(pie.find(R"({"label":"x","angle":9E1,"radius":1E0})"), std::string::npos) << pie;
}

TEST_F(Figures, KnowBoxesDatesScalesAndSeveralAxes) {
  const std::string box = chart("plt.boxplot([[1, 2, 3, 4, 20]], tick_labels=['p'])");
  EXPECT_NE(box.find(R"("label":"p","min":1E0,"first_quartile":2E0,"median":3E0,)"
                     R"("third_quartile":4E0,"max":4E0,"outliers":[2E1])"),
            std::string::npos)
      << box;
  const std::string dates = chart(
      "import datetime as d; plt.plot([d.datetime(2020, 1, 1), d.datetime(2020, 1, 2)], [1, 2])");
  EXPECT_NE(dates.find(R"("x_scale":"datetime")"), std::string::npos) << dates;
  EXPECT_NE(dates.find(R"(["2020-01-01T00:00:00",1E0])"), std::string::npos) << dates;
  EXPECT_NE(dates.find(R"("x_ticks":["2020-01-01T00:00:00+00:00")"), std::string::npos) << dates;
  EXPECT_NE(chart("plt.yscale('log'); plt.plot([1, 10])").find(R"("y_scale":"log")"),
            std::string::npos);
  EXPECT_NE(chart("plt.plot(['a', 'b'], [1, 2])").find(R"("x_scale":"categorical")"),
            std::string::npos);
  const std::string both =
      chart("f, a = plt.subplots(1, 2); a[0].plot([1]); a[1].bar([1], [1]); f.suptitle('S')");
  EXPECT_NE(both.find(R"({"type":"superchart","title":"S","elements":[{"type":"line")"),
            std::string::npos)
      << both;
}

TEST_F(Figures, PointsAreWhatTheCellGave) {
  const auto expect = [&](std::string_view code, std::string_view part) {
    const std::string drawn = chart(code);
    EXPECT_NE(drawn.find(part), std::string::npos) << drawn;
  };
  expect("plt.plot(['1', '2', '3'], [1, 2, 3])", R"("x_scale":"categorical")");
  expect("plt.plot(['a', 'b'], [1, 2])", R"("points":[["a",1E0],["b",2E0]])");
  expect("plt.plot(['a', 'b'], [1, 2])", R"("x_ticks":[0E0,1E0])");
  expect("import datetime as d; plt.plot([d.date(2023, 9, 1), d.date(2023, 9, 2)], [1, 2])",
         R"(["2023-09-01",1E0])");
  expect("import numpy as n; plt.plot(n.array(['2023-09-01'], dtype='datetime64[ns]'), [1])",
         R"(["2023-09-01T00:00:00",1E0])");
  expect("plt.scatter(['a', 'b'], [1, 2])", R"("points":[[0E0,1E0],[1E0,2E0]])");
  // All ticks, not only those in view.
  expect("plt.plot([1, 2, 3])", R"("y_ticks":[7.5E-1,1E0)");
}

TEST_F(Figures, PointsMayBeMissing) {
  EXPECT_NE(
      chart(
          "import pandas as pd; plt.plot(pd.to_datetime(['2020-01-01', None]), [1, float('nan')])")
          .find(R"("points":[["2020-01-01T00:00:00",1E0],[null,null]])"),
      std::string::npos);
}

TEST_F(Figures, PeriodsAreNumbersWithLabels) {
  const std::string periods = chart(
      "import pandas as pd\n"
      "pd.Series([1, 2], index=pd.period_range('2020', periods=2, freq='M')).plot()");
  EXPECT_NE(periods.find(R"("points":[[6E2,1E0],[6.01E2,2E0]])"), std::string::npos) << periods;
  EXPECT_NE(periods.find(R"("x_scale":"linear")"), std::string::npos) << periods;
}

TEST_F(Figures, AreShownInTheFormThatIsChosen) {
  const Executed executed =
      run("import matplotlib.pyplot as plt\n"
          "get_ipython().run_line_magic('config', 'InlineBackend.figure_format = \"svg\"')\n"
          "plt.plot([1]);");
  EXPECT_NE(executed.result_field("svg").find("<svg"), std::string::npos);
  EXPECT_EQ(executed.result_field("png"), "");
}

TEST_F(Figures, BarsStandBesideTheirNames) {
  const std::string years = chart(
      "plt.bar([-0.2, 0.8], [1, 2], 0.4, label='A'); plt.bar([0.2, 1.2], [3, 4], 0.4, label='B')\n"
      "plt.xticks([0, 1], ['2020', '2021'])");
  EXPECT_NE(years.find(R"({"label":"2020","group":"A","value":1E0},)"
                       R"({"label":"2021","group":"A","value":2E0},)"
                       R"({"label":"2020","group":"B","value":3E0})"),
            std::string::npos)
      << years;
  const std::string backwards = chart("plt.bar([3, 1], [1, 2]); plt.xticks([1, 3], ['01', '03'])");
  EXPECT_NE(backwards.find(R"("label":"03","group":"Group 0","value":1E0)"), std::string::npos)
      << backwards;
}

TEST_F(Figures, LinesOfReferenceAreNoData) {
  const std::string line = chart("plt.plot([1, 2, 3]); plt.axhline(2, label='mean')");
  EXPECT_NE(line.find(R"("type":"line")"), std::string::npos) << line;
  EXPECT_EQ(line.find("mean"), std::string::npos) << line;
  for (const char* kind : {"bar", "scatter"}) {
    const std::string drawn =
        chart(fmt::format("plt.{}([1, 2], [3, 4]); plt.axvline(2, label='mean')", kind));
    EXPECT_NE(drawn.find(fmt::format(R"("type":"{}")", kind)), std::string::npos) << drawn;
  }
  EXPECT_NE(chart("plt.bar([1, 2], [3, 4]); plt.plot([1, 2], [3, 4])").find(R"("unknown")"),
            std::string::npos);
}

TEST_F(Figures, WithoutDataHaveNoChart) {
  EXPECT_EQ(chart("f, a = plt.subplots(); a.set_title('T'); a.text(0.5, 0.5, 'words')"), "");
  const std::string half = chart("f, a = plt.subplots(1, 2); a[0].plot([1])");
  EXPECT_NE(half.find(R"("type":"superchart","title":"")"), std::string::npos) << half;
}

TEST_F(Figures, NumbersAreRoundedAsClientsKnowThem) {
  const std::string pie = chart("plt.pie([1, 1, 1])");
  EXPECT_NE(pie.find(R"("angle":1.2E2,"radius":1E0)"), std::string::npos) << pie;
  const std::string box = chart("plt.boxplot([[1.23456789123, 2, 3, 4, 123.456789]])");
  EXPECT_NE(box.find(R"("min":1.2345679E0)"), std::string::npos) << box;
  EXPECT_NE(box.find(R"("outliers":[1.23457E2])"), std::string::npos) << box;
}

TEST_F(Figures, TablesHaveDataAndHtml) {
  const Executed executed =
      run("import pandas as pd\n"
          "pd.DataFrame({'a': [1, 2], 't': pd.to_datetime(['2020-01-01', None])})");

  EXPECT_NE(executed.result_field("html").find("<table"), std::string::npos);
  EXPECT_TRUE(
      executed.result_field("data").starts_with(R"({"a":[1,2],"t":["2020-01-01T00:00:00",null]})"))
      << executed.result_field("data");

  EXPECT_EQ(
      run("class Own(pd.DataFrame): pass\n"
          "Own({'n': pd.array([1, None], dtype='Int64'), 's': pd.array(['a', None], 'string'),\n"
          "     'p': pd.period_range('2020', periods=2, freq='M'), 'o': [pd.NA, 1j],\n"
          "     'f': [1.5, float('nan')], 'c': pd.Categorical(['x', 'y'])})")
          .result_field("data"),
      R"({"n":[1,null],"s":["a",null],"p":["2020-01","2020-02"],"o":[null,"1j"],)"
      R"("f":[1.5E0,null],"c":["x","y"]})");
  EXPECT_EQ(run("[pd.NA, pd.NaT]").result_field("json"), "[null,null]");
}

TEST_F(Figures, PicturesAreShownAlsoWhenSaved) {
  const Executed executed =
      run("from PIL import Image\nimport os, tempfile\npicture = Image.new('RGB', (2, 2))\n"
          "path = tempfile.mktemp('.png')\npicture.save(path)\nos.unlink(path)\npicture");

  ASSERT_EQ(executed.results.size(), 2U) << executed.body;
  EXPECT_TRUE(executed.result_field("png", 0).starts_with("iVBOR"));
  EXPECT_TRUE(executed.result_field("png", 1).starts_with("iVBOR"));
}

}  // namespace
}  // namespace hearth::interpreter
