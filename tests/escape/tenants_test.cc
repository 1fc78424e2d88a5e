// Two sandboxes share nothing, at the same time or one after the other.
#include <unistd.h>

#include <filesystem>

#include "escape/testing.h"

namespace hearth::escape {
namespace {

using EscapeTenants = EscapeTest;

TEST_F(EscapeTenants, TracesOfOneAreNotSeenByAnother) {
  const std::string other = make_sandbox({});
  EXPECT_REFUSED(as_root({"leave-traces", "first"}));
  EXPECT_EQ(as_root({"find-traces", "first"}).verdict, Verdict::hole) << "they are there";

  EXPECT_REFUSED(attempt(runtime(), other, {"find-traces", "first"}));
}

TEST_F(EscapeTenants, EachIsAMachineOfItsOwn) {
  const std::string other = make_sandbox({});
  for (const char* script :
       {"cat /proc/sys/kernel/random/boot_id", "hostname", "readlink /proc/self/ns/net",
        "readlink /proc/self/ns/user", "cut -d' ' -f1-20 /proc/self/uid_map | tr -s ' '"}) {
    const std::string here = sh(script).output;
    EXPECT_NE(here, "") << script;
    EXPECT_NE(here, runtime::run_shell(runtime(), other, script).output) << script;
  }
  // From outside: where v2 limits, every command has one of its own, and numbers are used again.
  const auto cgroup_namespace = [](const std::string& id) {
    return std::filesystem::read_symlink(fmt::format("/proc/{}/ns/cgroup", runtime().get(id).pid));
  };
  EXPECT_NE(cgroup_namespace(id_), cgroup_namespace(other));
  const std::string host = linux::read_file("/proc/sys/kernel/random/boot_id");
  EXPECT_NE(sh("cat /proc/sys/kernel/random/boot_id").output, host);
}

// Shells are made ahead, and their parts (ids, addresses, cgroups) are used again.
TEST(EscapeTenancy, NothingIsLeftForTheNextOne) {
  HEARTH_NEED_ROOT();
  runtime::TestEngine engine(8);
  std::vector<std::string> words = {"find-traces"};
  constexpr int kTenants = 30;
  for (int i = 0; i < kTenants; ++i) {
    runtime::SandboxSpec spec;
    if (i % 2 == 0) spec.network = network::Policy{};
    const std::string id = engine.runtime().create(spec).sandbox.id;
    bring_payload(engine.runtime(), id);
    ASSERT_EQ(attempt(engine.runtime(), id, words).verdict, Verdict::refused)
        << attempt(engine.runtime(), id, words);
    const std::string name = fmt::format("tenant-{}", i);
    ASSERT_EQ(attempt(engine.runtime(), id, {"leave-traces", name}).verdict, Verdict::refused);
    words.push_back(name);
    engine.runtime().destroy(id);
  }
}

// One that takes all it can get is no reason for another to wait.
TEST_F(EscapeTenants, AStormNextDoorIsNotFelt) {
  const std::string storm = make_sandbox(
      {.limits = {
           .memory_bytes = 128 << 20, .cpu_millis = 500, .pids = 64, .disk_bytes = 32 << 20}});
  std::vector<guest::Connection> storms;
  for (const char* script : {"bomb() { sleep 100 & bomb & bomb; }; bomb",
                             "i=0; while :; do : > /tmp/file-$i; i=$((i+1)); done",
                             "python3 -c 'x=[]\nwhile True: x.append(bytearray(1 << 20))'",
                             "while :; do head -c 100000000 /dev/zero > /tmp/large; done",
                             "python3 -c 'import os\nf=[]\nwhile True: f.append(os.pipe())'"}) {
    guest::Connection& one = storms.emplace_back(runtime().connect(storm));
    guest::ExecRequest request;
    request.command = {"/bin/sh", "-c", script};
    try {
      one.start(request, {}, Deadline::after(std::chrono::seconds(20)));
    } catch (const std::exception&) {
      // The storm before it leaves no room.
    }
  }
  const Deadline deadline = Deadline::after(std::chrono::seconds(2));
  while (!deadline.passed()) {
    EXPECT_TRUE(is_alive());
    ASSERT_EQ(sh("echo x > /tmp/x && cat /tmp/x && sleep 0.01 & wait").output, "x\n");
  }
  runtime().destroy(storm);
  EXPECT_TRUE(is_alive());
}

}  // namespace
}  // namespace hearth::escape
