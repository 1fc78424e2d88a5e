// Sandboxes with the payload in them, and things of the host that must stay as they are.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "kernel/testing.h"

namespace hearth::escape {

namespace fs = std::filesystem;

// Where the payload lies inside.
inline constexpr const char* kPayload = "/tmp/payload";

// Crosses from the payload as its exit code.
enum class Verdict : std::uint8_t { hole = 0, refused = 1, not_here = 2, broken = 3 };

struct Report {
  Verdict verdict = Verdict::broken;
  std::string text;  // what the payload wrote
};
// For a test that fails: the holes alone, or all there is.
std::ostream& operator<<(std::ostream& out, const Report& report);

void bring_payload(runtime::Runtime& runtime, const std::string& id);

// Runs one attempt inside; empty user: root.
Report attempt(runtime::Runtime& runtime, const std::string& id, std::vector<std::string> words,
               const std::string& user = "");

// A file of the host that must be as it was.
class Canary {
 public:
  Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;
  ~Canary();
  // A folder with one file in it.
  const fs::path& folder() const { return folder_; }
  fs::path file() const { return folder_ / "canary"; }
  bool sings() const;

 private:
  fs::path folder_;
};

// What a refusal must look like.
#define EXPECT_REFUSED(report)                                                     \
  do {                                                                             \
    const ::hearth::escape::Report seen = (report);                                \
    if (seen.verdict == ::hearth::escape::Verdict::not_here) GTEST_SKIP() << seen; \
    EXPECT_EQ(seen.verdict, ::hearth::escape::Verdict::refused) << seen;           \
  } while (false)

// One engine for all, one sandbox with the payload for each test.
class EscapeTest : public runtime::SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (!IsSkipped()) bring_payload(runtime(), id_);
  }

  Report as_root(std::vector<std::string> words) {
    return attempt(runtime(), id_, std::move(words));
  }
  Report as_user(std::vector<std::string> words) {
    return attempt(runtime(), id_, std::move(words), "1000:1000");
  }
  bool is_alive() { return sh("echo alive").output == "alive\n"; }

  // A second one.
  std::string make_sandbox(const runtime::SandboxSpec& spec) {
    const std::string id = runtime().create(spec).sandbox.id;
    others_.push_back(id);
    bring_payload(runtime(), id);
    return id;
  }
  void destroy_others() {
    for (const std::string& id : others_) runtime().destroy(id);
    others_.clear();
  }
  void TearDown() override {
    if (engine_) destroy_others();
    SandboxTest::TearDown();
  }

 private:
  std::vector<std::string> others_;
};

}  // namespace hearth::escape
