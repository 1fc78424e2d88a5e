// Every case once, with hardly any rounds: does the benchmark still work, and leave nothing behind?
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "bench/process.h"
#include "linux/mounts.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

std::string bench_program() {
  return fmt::format("{}/hearth-bench", std::getenv("HEARTH_BIN"));
}

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The output of hearth-bench with these arguments.
std::string run_bench(const fs::path& folder, std::vector<std::string> words) {
  words.insert(words.begin(), bench_program());
  const std::string path = folder / "output";
  const linux::Fd output = linux::open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Child child(words, {.input = -1, .output = output.get()});
  child.wait(std::chrono::seconds(200));  // on a busy machine
  return read_text(path);
}

// Folders of ours in any cgroup hierarchy, and in the folder for temporary files.
std::set<std::string> find_traces() {
  std::set<std::string> traces;
  std::error_code error;
  const auto look_at = [&](const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("hearth-bench-")) traces.insert(entry.path());
    }
  };
  look_at(fs::temp_directory_path());
  look_at("/dev/shm");
  for (const linux::MountEntry& mount : linux::mount_table()) {
    if (mount.type.starts_with("cgroup")) look_at(mount.mount_point);
    if (mount.mount_point.find("hearth-bench-") != std::string::npos)
      traces.insert(mount.mount_point);
  }
  return traces;
}

class BenchSmokeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: sandboxes are made by the kernel";
    if (std::getenv("HEARTH_BIN") == nullptr)
      GTEST_SKIP() << "needs HEARTH_BIN, the folder of our programs";
    char path[] = "/tmp/bench-smoke-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  fs::path folder_;
};

TEST_F(BenchSmokeTest, RefusesWhatItDoesNotKnow) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"sandbox"}, {"--only", "nothing"}, {"--many", "0"}, {"--many", "1e3"}, {"--only"}}) {
    EXPECT_THROW(run_bench(folder_, words), Error) << words.front();
  }
}

// How many rows a page is said to have, when each of them is there or excused.
int check_rows(const std::string& list, const std::string& page, const std::string& json,
               const std::string& output) {
  std::istringstream lines(list);
  int rows = 0;
  bool in_page = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) in_page = line.starts_with(fmt::format("# {}:", page));
    if (line.starts_with('#') || !in_page) continue;
    const std::string bench_case = line.substr(0, line.find(':'));
    std::istringstream subjects(line.substr(line.find(':') + 1));
    for (std::string subject; subjects >> subject; ++rows) {
      const bool measured = json.find(fmt::format(R"({{"case": "{}", "subject": "{}", )",
                                                  bench_case, subject)) != std::string::npos;
      const bool excused =
          output.find(fmt::format("skipped: {}: ", subject)) != std::string::npos ||
          output.find(fmt::format("skipped: {} in {}: ", subject, bench_case)) != std::string::npos;
      // Memory can be told apart only while nobody else takes and frees any.
      const bool busy = output.find(fmt::format("skipped: {} in {}: the machine is too busy",
                                                subject, bench_case)) != std::string::npos;
      const bool ours = subject == "hearth" || subject == "hearth_pooled" ||
                        subject == "fork_exec" || subject == "native";
      EXPECT_TRUE(measured || (excused && !ours) || busy) << bench_case << " of " << subject << "\n"
                                                          << output;
    }
  }
  return rows;
}

TEST_F(BenchSmokeTest, HasARowForEverySubjectThatIsHereAndLeavesNothingBehind) {
  const std::set<std::string> traces = find_traces();
  const std::string json_path = folder_ / "rows.json";

  const std::string output = run_bench(
      folder_, {"runtime", "--rounds", "2", "--many", "3", "--long", "--json", json_path});

  const std::string json = read_text(json_path);
  EXPECT_GE(check_rows(run_bench(folder_, {"--list"}), "runtime", json, output), 50);
  EXPECT_NE(json.find(R"({"case": "many", "subject": "hearth", )"), std::string::npos) << json;
  EXPECT_NE(output.find("long run of hearth"), std::string::npos) << output;
  EXPECT_NE(output.find(" of 12 reached"), std::string::npos) << output;
  EXPECT_EQ(find_traces(), traces);
}

TEST_F(BenchSmokeTest, AsksASandboxForEverythingItServes) {
  const std::set<std::string> traces = find_traces();
  const std::string json_path = folder_ / "rows.json";

  const std::string output = run_bench(folder_, {"guest", "--rounds", "2", "--json", json_path});

  const std::string list = run_bench(folder_, {"--list"});
  EXPECT_EQ(check_rows(list, "guest", read_text(json_path), output), 11) << output;
  EXPECT_EQ(find_traces(), traces);
}

TEST_F(BenchSmokeTest, KeepsObjectsBesideEtcd) {
  const std::set<std::string> traces = find_traces();
  const std::string json_path = folder_ / "rows.json";

  const std::string output = run_bench(folder_, {"kube", "--rounds", "2", "--json", json_path});

  const std::string list = run_bench(folder_, {"--list"});
  EXPECT_EQ(check_rows(list, "kube", read_text(json_path), output), 37) << output;
  EXPECT_EQ(find_traces(), traces);
}

TEST_F(BenchSmokeTest, CreatesThroughE2bBesideWhatElseThereIs) {
  const std::set<std::string> traces = find_traces();
  const std::string json_path = folder_ / "rows.json";

  const std::string output = run_bench(folder_, {"e2b", "--rounds", "2", "--json", json_path});

  const std::string list = run_bench(folder_, {"--list"});
  EXPECT_EQ(check_rows(list, "e2b", read_text(json_path), output), 22) << output;
  EXPECT_EQ(find_traces(), traces);
}

}  // namespace
}  // namespace hearth::bench
