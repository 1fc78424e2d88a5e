// bubblewrap, and nsenter(1) into one of its sandboxes.
#include "bench/command_work.h"
#include "bench/memory.h"
#include "bench/subject.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

// All namespaces, root inside, no capabilities. bubblewrap knows no limits; it takes a seccomp
// filter, which it is not given: it has less to do than Hearth.
std::vector<std::string> bubblewrap_words(const std::string& program, const Workshop& workshop,
                                          const std::vector<std::string>& tmp,
                                          const std::vector<std::string>& command) {
  std::vector<std::string> words = {program,
                                    "--unshare-all",
                                    "--unshare-user",
                                    "--uid",
                                    "0",
                                    "--gid",
                                    "0",
                                    "--hostname",
                                    "bench",
                                    "--die-with-parent",
                                    "--ro-bind",
                                    workshop.rootfs(),
                                    "/",
                                    "--proc",
                                    "/proc",
                                    "--dev",
                                    "/dev"};
  words.insert(words.end(), tmp.begin(), tmp.end());
  words.insert(words.end(), {"--cap-drop", "ALL", "--"});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<std::string> memory_on_tmp() {
  return {"--tmpfs", "/tmp"};
}

// A sandbox whose program stays.
class BubblewrapSandbox {
 public:
  BubblewrapSandbox(const std::string& program, const Workshop& workshop) {
    child_.emplace(bubblewrap_words(program, workshop, memory_on_tmp(), {"/noop", "forever"}),
                   CommandFds{.input = -1, .output = witness_.fd()});
    if (!witness_.wait_for_byte(*child_)) {
      child_->wait();
      fail(Code::internal, "bubblewrap did not stay");
    }
  }

  // Of its first process outside the sandbox.
  pid_t pid() const { return child_->pid(); }

 private:
  Witness witness_;
  std::optional<Child> child_;
};

class BubblewrapIdle final : public IdleSandboxes {
 public:
  BubblewrapIdle(std::string program, const Workshop& workshop)
      : program_(std::move(program)), workshop_(workshop) {}

  void add(unsigned count) override {
    for (unsigned i = 0; i < count; ++i)
      sandboxes_.push_back(std::make_unique<BubblewrapSandbox>(program_, workshop_));
  }

  std::vector<pid_t> roots() const override {
    std::vector<pid_t> pids;
    for (const auto& sandbox : sandboxes_) pids.push_back(sandbox->pid());
    return pids;
  }

 private:
  std::string program_;
  const Workshop& workshop_;
  std::vector<std::unique_ptr<BubblewrapSandbox>> sandboxes_;
};

class Bubblewrap final : public Subject {
 public:
  explicit Bubblewrap(const Workshop& workshop)
      : workshop_(workshop),
        program_(find_program("bwrap")),
        files_(workshop.make_folder("bwrap-files")) {}

  std::unique_ptr<Work> make_cycles() override {
    return std::make_unique<CycleCommand>(
        bubblewrap_words(program_, workshop_, memory_on_tmp(), {"/noop"}));
  }
  // On the same disk as the native ones.
  std::unique_ptr<Work> make_file_writes() override {
    return std::make_unique<RateCommand>(
        bubblewrap_words(program_, workshop_, {"--bind", files_, "/tmp"},
                         {"/small-files", "/tmp", std::to_string(kFilesAtOnce)}));
  }
  std::unique_ptr<IdleSandboxes> make_idle_sandboxes() override {
    return std::make_unique<BubblewrapIdle>(program_, workshop_);
  }
  std::string version() const override { return first_line_of({program_, "--version"}); }

 private:
  const Workshop& workshop_;
  std::string program_;
  std::string files_;
};

class NsenterExecs final : public Work {
 public:
  NsenterExecs(const std::string& program, const Workshop& workshop)
      : sandbox_(find_program("bwrap"), workshop) {
    // The deepest process is the program itself, in the namespaces to join.
    const std::vector<pid_t> processes = process_tree(sandbox_.pid());
    words_ = {program, "--target", std::to_string(processes.back()), "--all", "--", "/noop"};
  }

  double do_once() override { return time_commands({words_}); }

 private:
  BubblewrapSandbox sandbox_;
  std::vector<std::string> words_;
};

class Nsenter final : public Subject {
 public:
  explicit Nsenter(const Workshop& workshop)
      : workshop_(workshop), program_(find_program("nsenter")) {
    find_program("bwrap");
  }

  std::unique_ptr<Work> make_execs() override {
    return std::make_unique<NsenterExecs>(program_, workshop_);
  }
  std::string version() const override { return first_line_of({program_, "--version"}); }

 private:
  const Workshop& workshop_;
  std::string program_;
};

}  // namespace

std::unique_ptr<Subject> make_bubblewrap(const Workshop& workshop) {
  return std::make_unique<Bubblewrap>(workshop);
}

std::unique_ptr<Subject> make_nsenter(const Workshop& workshop) {
  return std::make_unique<Nsenter>(workshop);
}

}  // namespace hearth::bench
