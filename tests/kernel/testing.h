// A real hearth-runtime for kernel tests: its own state folder, its own process, gone at the end.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "guest/client.h"
#include "linux/pidfd.h"
#include "runtime/client.h"

namespace hearth::runtime {

class TestEngine {
 public:
  // Without shells made ahead, unless that is what a test is about: what is there is then there
  // because somebody asked for it. `above` is where its state folder is made.
  explicit TestEngine(unsigned warm = 0, const std::string& above = "/tmp");
  TestEngine(const TestEngine&) = delete;
  TestEngine& operator=(const TestEngine&) = delete;
  ~TestEngine();

  // A runtime process on the folder; waits until it serves. Throws Error when it ends instead.
  void start();
  // kill -9, as a crash would.
  void kill();
  // The polite ways.
  void stop(bool destroy_all);

  RuntimeClient& runtime() { return *client_; }
  const std::string& state_dir() const { return state_dir_; }
  int pid() const { return pid_; }

 private:
  unsigned warm_;
  std::string state_dir_;
  int pid_ = 0;
  std::unique_ptr<RuntimeClient> client_;
};

struct Outcome {
  guest::Exited exited;
  std::string output;
  std::string error;
};

// Runs a command to its end and collects what it wrote.
Outcome run_in(linux::Channel guest, const guest::ExecRequest& request);
Outcome run_shell(Runtime& runtime, const std::string& id, const std::string& script,
                  const std::string& user = {});

// What must be as before when all sandboxes are gone.
struct HostState {
  std::vector<std::string> mounts;
  std::vector<std::string> cgroups;
  std::vector<std::string> namespaces;
  std::vector<std::string> links;
  std::vector<std::string> guests;   // processes
  std::vector<std::string> folders;  // of sandboxes
  bool operator==(const HostState&) const = default;
};
HostState look_at_host();

// For a test's first line: skips loudly unless we are root and the programs are built.
#define HEARTH_NEED_ROOT()                                                                \
  do {                                                                                    \
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: sandboxes are made by the kernel"; \
    if (std::getenv("HEARTH_BIN") == nullptr)                                             \
      GTEST_SKIP() << "needs HEARTH_BIN, the folder of our programs";                     \
  } while (false)

// One engine for a suite, one sandbox for each test.
class SandboxTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (::geteuid() == 0 && std::getenv("HEARTH_BIN") != nullptr)
      engine_ = std::make_unique<TestEngine>();
  }
  static void TearDownTestSuite() { engine_.reset(); }

  void SetUp() override {
    HEARTH_NEED_ROOT();
    id_ = runtime().create({}).sandbox.id;
  }
  void TearDown() override {
    if (engine_) runtime().destroy(id_);
  }

  static RuntimeClient& runtime() { return engine_->runtime(); }
  Outcome sh(const std::string& script, const std::string& user = {}) {
    return run_shell(runtime(), id_, script, user);
  }

  static inline std::unique_ptr<TestEngine> engine_;
  std::string id_;
};

}  // namespace hearth::runtime
