// Where E2B's own packages are: tests/compat fetches them into the build folder, once.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/e2b_subjects.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

// The newest folder NAME-* that holds this path; empty for none.
std::string find_package(const std::string& name, const std::string& path) {
  const fs::path folder = fs::canonical("/proc/self/exe").parent_path().parent_path() / "compat";
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const bool is_whole = fs::exists(entry.path() / "complete", ignored);
    if (is_whole && entry.path().filename().string().starts_with(name + "-e2b") &&
        fs::exists(entry.path() / path, ignored))
      found.push_back(entry.path());
  }
  if (found.empty())
    fail(
        Code::not_found,
        "E2B's packages are not here: 'python3 tests/compat/e2b_test.py' fetches them from npm and "
        "PyPI (it needs node, npm and python3-venv)");
  return std::ranges::max(found);
}

// HEARTH_BENCH_SDK is the folder of our scripts.
std::string script(const char* name) {
  return fmt::format("{}/{}", HEARTH_BENCH_SDK, name);
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  if (text.str().empty()) fail(Code::not_found, "'{}' is not there", path);
  return text.str();
}

}  // namespace

std::unique_ptr<Starts> make_js_sdk(E2bEngine& engine) {
  const std::string node = find_program("node");
  const std::string folder = find_package("node", "node_modules/e2b/package.json");
  // Imports are looked for from the working folder.
  return std::make_unique<SdkStarts>(
      engine,
      std::vector<std::string>{find_program("env"), "-C", folder, node, "--input-type=module", "-e",
                               text_of(script("first_exec.mjs"))});
}

std::unique_ptr<Starts> make_py_sdk(E2bEngine& engine) {
  const std::string folder = find_package("python", "bin/python");
  return std::make_unique<SdkStarts>(
      engine, std::vector<std::string>{folder + "/bin/python", script("first_exec.py")});
}

}  // namespace hearth::bench
