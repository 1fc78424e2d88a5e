// bubblewrap, nsenter(1), and no sandbox at all.
#include <fcntl.h>

#include "bench/memory.h"
#include "bench/subject.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

// All namespaces, root inside, no capabilities. bubblewrap knows no limits; it takes a seccomp
// filter, which it is not given: it has less to do than Hearth.
std::vector<std::string> bubblewrap_words(const std::string& program, const Workshop& workshop) {
  return {program,
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
          "/dev",
          "--tmpfs",
          "/tmp",
          "--cap-drop",
          "ALL",
          "--",
          "/noop"};
}

// A sandbox whose program stays.
class BubblewrapSandbox {
 public:
  BubblewrapSandbox(const std::string& program, const Workshop& workshop) {
    std::vector<std::string> words = bubblewrap_words(program, workshop);
    words.emplace_back("forever");
    child_.emplace(words, CommandFds{.input = -1, .output = witness_.fd()});
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

class BubblewrapLives final : public Lives {
 public:
  BubblewrapLives(const std::string& program, const Workshop& workshop)
      : words_(bubblewrap_words(program, workshop)) {}

  Turn live_once() override { return time_command(words_, /*input_fd=*/-1, witness_); }

 private:
  std::vector<std::string> words_;
  Witness witness_;
};

class BubblewrapIdle final : public IdleSandboxes {
 public:
  BubblewrapIdle(const std::string& program, const Workshop& workshop, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      sandboxes_.push_back(std::make_unique<BubblewrapSandbox>(program, workshop));
    }
  }

  std::vector<pid_t> pids() const override {
    std::vector<pid_t> pids;
    for (const auto& sandbox : sandboxes_) pids.push_back(sandbox->pid());
    return pids;
  }

 private:
  std::vector<std::unique_ptr<BubblewrapSandbox>> sandboxes_;
};

class Bubblewrap final : public Subject {
 public:
  explicit Bubblewrap(const Workshop& workshop)
      : workshop_(workshop), program_(find_program("bwrap")) {}

  std::unique_ptr<Lives> make_lives() override {
    return std::make_unique<BubblewrapLives>(program_, workshop_);
  }
  std::unique_ptr<IdleSandboxes> make_idle_sandboxes(unsigned count) override {
    return std::make_unique<BubblewrapIdle>(program_, workshop_, count);
  }
  std::string version() const override { return first_line_of({program_, "--version"}); }

 private:
  const Workshop& workshop_;
  std::string program_;
};

class NsenterLive final : public LiveSandbox {
 public:
  NsenterLive(const std::string& program, const Workshop& workshop)
      : sandbox_(find_program("bwrap"), workshop) {
    // The deepest process is the program itself, in the namespaces to join.
    const std::vector<pid_t> processes = process_tree(sandbox_.pid());
    words_ = {program, "--target", std::to_string(processes.back()), "--all", "--", "/noop"};
  }

  double time_exec() override {
    const Moment begin = now();
    run_command(words_);
    return us_between(begin, now());
  }

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

  std::unique_ptr<LiveSandbox> make_live_sandbox() override {
    return std::make_unique<NsenterLive>(program_, workshop_);
  }
  std::string version() const override { return first_line_of({program_, "--version"}); }

 private:
  const Workshop& workshop_;
  std::string program_;
};

class ForkExecLives final : public Lives {
 public:
  explicit ForkExecLives(const Workshop& workshop) : program_(workshop.noop()) {}

  Turn live_once() override {
    const double time = time_vfork_exec(program_, witness_.fd());
    witness_.take_byte();
    return {.done_us = time, .gone_us = time};
  }

 private:
  std::string program_;
  Witness witness_;
};

class ForkExecLive final : public LiveSandbox {
 public:
  explicit ForkExecLive(const Workshop& workshop)
      : program_(workshop.noop()), null_(linux::open_file("/dev/null", O_RDWR)) {}

  double time_exec() override { return time_vfork_exec(program_, null_.get()); }

 private:
  std::string program_;
  linux::Fd null_;
};

class ForkExec final : public Subject {
 public:
  explicit ForkExec(const Workshop& workshop) : workshop_(workshop) {}

  std::unique_ptr<Lives> make_lives() override {
    return std::make_unique<ForkExecLives>(workshop_);
  }
  std::unique_ptr<LiveSandbox> make_live_sandbox() override {
    return std::make_unique<ForkExecLive>(workshop_);
  }

 private:
  const Workshop& workshop_;
};

}  // namespace

std::unique_ptr<Subject> make_bubblewrap(const Workshop& workshop) {
  return std::make_unique<Bubblewrap>(workshop);
}

std::unique_ptr<Subject> make_nsenter(const Workshop& workshop) {
  return std::make_unique<Nsenter>(workshop);
}

std::unique_ptr<Subject> make_fork_exec(const Workshop& workshop) {
  return std::make_unique<ForkExec>(workshop);
}

}  // namespace hearth::bench
