#include "kernel/testing.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "linux/fd.h"
#include "linux/mounts.h"

namespace hearth::runtime {
namespace {

namespace fs = std::filesystem;

std::string program(const char* name) {
  return fmt::format("{}/{}", std::getenv("HEARTH_BIN"), name);
}

// Reads two pipes until the command ended and both are dry.
void collect(linux::Fd& pipe, std::string& text, bool wait) {
  while (pipe) {
    pollfd waiting{.fd = pipe.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, wait ? 10 : 0) <= 0) return;
    char buffer[65536];
    const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
    if (got <= 0) return pipe.reset();
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

// Without those that nobody uses: they wait for the next sandbox, and go with the engine.
void add_cgroups(const fs::path& root, std::set<std::string>& found) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "hearth", ignored)) {
    if (!entry.is_directory()) continue;
    for (const auto& leaf : fs::directory_iterator(entry.path(), ignored)) {
      const bool is_spare = leaf.path().filename().string().starts_with(".spare-");
      if (leaf.is_directory() && !is_spare) found.insert(leaf.path());
    }
  }
}

// Of a sandbox whose runtime was killed somebody else is the parent, and reaps when he likes.
bool is_zombie(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end == std::string::npos || text.compare(name_end + 2, 1, "Z") == 0;
}

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

TestEngine::TestEngine(unsigned warm, const std::string& above)
    : warm_(warm), state_dir_(above + "/hearth-test-XXXXXX") {
  if (::mkdtemp(state_dir_.data()) == nullptr) throw_errno("make a state folder");
  start();
}

TestEngine::~TestEngine() {
  try {
    if (pid_ != 0) stop(/*destroy_all=*/true);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "stop the runtime: " << error.what();
    kill();
  }
  fs::remove_all(state_dir_);
}

void TestEngine::start() {
  linux::Pipe ready = linux::make_pipe();
  std::vector<std::string> words = {program("hearth-runtime"),
                                    "--state-dir",
                                    state_dir_,
                                    "--owner",
                                    "0",
                                    "--ready-fd",
                                    "9",
                                    "--log-level",
                                    "warning",
                                    "--warm",
                                    std::to_string(warm_)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ready.write.get(), 9);
  const int error =
      ::posix_spawn(&pid_, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw_errno_text(error, "start hearth-runtime");
  ready.write.reset();
  char line[16];
  if (::read(ready.read.get(), line, sizeof line) <= 0) {
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
    fail(Code::internal, "hearth-runtime did not come up");
  }
  client_ = std::make_unique<RuntimeClient>(state_dir_);
}

void TestEngine::kill() {
  client_.reset();
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void TestEngine::stop(bool destroy_all) {
  client_->shut_down(destroy_all);
  client_.reset();
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

Outcome run_in(linux::Channel guest, const guest::ExecRequest& request) {
  guest::Connection connection(std::move(guest));
  linux::Pipe out = linux::make_pipe();
  linux::Pipe err = linux::make_pipe();
  connection.start(request, {.input = -1, .output = out.write.get(), .error = err.write.get()});
  out.write.reset();
  err.write.reset();
  Outcome outcome;
  std::optional<guest::Exited> exited;
  while (!exited) {
    collect(out.read, outcome.output, /*wait=*/true);
    collect(err.read, outcome.error, /*wait=*/true);
    exited = connection.wait(Deadline::after(std::chrono::milliseconds(1)));
  }
  collect(out.read, outcome.output, /*wait=*/false);
  collect(err.read, outcome.error, /*wait=*/false);
  outcome.exited = *exited;
  return outcome;
}

Outcome run_shell(Runtime& runtime, const std::string& id, const std::string& script,
                  const std::string& user) {
  guest::ExecRequest request;
  request.command = {"/bin/sh", "-c", script};
  request.user = user;
  return run_in(runtime.connect(id), request);
}

HostState look_at_host() {
  HostState state;
  for (const linux::MountEntry& mount : linux::mount_table())
    state.mounts.push_back(mount.mount_point);
  std::set<std::string> cgroups;
  for (const linux::MountEntry& mount : linux::mount_table()) {
    if (mount.type == "cgroup" || mount.type == "cgroup2") add_cgroups(mount.mount_point, cgroups);
  }
  state.cgroups.assign(cgroups.begin(), cgroups.end());
  for (const auto& entry : fs::directory_iterator("/sys/class/net"))
    state.links.push_back(entry.path().filename());
  std::set<std::string> namespaces;
  std::set<std::string> guests;
  const fs::path own_users = fs::read_symlink("/proc/self/ns/user");
  for (const auto& process : fs::directory_iterator("/proc")) {
    if (!is_number(process.path().filename()) || is_zombie(process.path())) continue;
    std::ifstream name(process.path() / "comm");
    std::string text;
    std::getline(name, text);
    std::error_code error;
    // Strangers come and go with theirs. What is in a sandbox has users of its own.
    const bool is_stranger = !text.starts_with("hearth-") &&
                             fs::read_symlink(process.path() / "ns/user", error) == own_users;
    if (is_stranger || error) continue;
    for (const auto& ns : fs::directory_iterator(process.path() / "ns", error)) {
      const fs::path target = fs::read_symlink(ns.path(), error);
      if (!error) namespaces.insert(target);
    }
    // Nurseries are the engine's, and live where we do.
    std::error_code gone;
    const bool inside =
        fs::read_symlink(process.path() / "ns/pid", gone) != fs::read_symlink("/proc/self/ns/pid");
    if (text.starts_with("hearth-guest") && inside) guests.insert(process.path().filename());
  }
  for (const char* memory : {"/run/hearth", "/dev/shm/hearth"}) {
    std::error_code none;
    for (const auto& engine : fs::directory_iterator(memory, none)) {
      for (const auto& folder : fs::directory_iterator(engine.path() / "sandboxes", none)) {
        state.folders.push_back(folder.path());
      }
    }
  }
  state.namespaces.assign(namespaces.begin(), namespaces.end());
  state.guests.assign(guests.begin(), guests.end());
  return state;
}

}  // namespace hearth::runtime
