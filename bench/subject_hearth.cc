#include <fcntl.h>

#include <algorithm>

#include "bench/subject.h"
#include "bench/workshop.h"
#include "guest/client.h"
#include "linux/files.h"
#include "runtime/client.h"

namespace hearth::bench {
namespace {

// Image 'host' holds this machine's /usr and nothing of ours. A new sandbox is given the program
// as its stdin and executes that; one that lives on gets a copy.
constexpr const char* kProgramOnStdin = "/proc/self/fd/0";
constexpr const char* kProgramInside = "/tmp/noop";

void check_end(const guest::Exited& exited) {
  if (exited.status == linux::ExitStatus{}) return;
  fail(Code::internal, "the program ended with code {}, signal {}", exited.status.code,
       exited.status.signal);
}

guest::ExecRequest request_of(std::vector<std::string> command) {
  guest::ExecRequest request;
  request.command = std::move(command);
  request.directory = "/";
  return request;
}

// A sandbox with the program in it.
class Prepared {
 public:
  explicit Prepared(const Workshop& workshop)
      : client_(workshop.engine().state_dir()),
        created_(client_.create({})),
        guest_(std::move(created_.guest)) {
    const linux::Fd program = linux::open_file(workshop.noop(), O_RDONLY);
    const auto copy =
        request_of({"/bin/sh", "-c", fmt::format("cat > {0} && chmod 755 {0}", kProgramInside)});
    check_end(guest_.run(copy, {.input = program.get()}));
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() {
    try {
      client_.destroy(id());
    } catch (const Error&) {
      // The engine destroys everything when it ends.
    }
  }

  guest::Connection& guest() { return guest_; }
  const std::string& id() const { return created_.sandbox.id; }

 private:
  runtime::RuntimeClient client_;
  runtime::Runtime::Created created_;
  guest::Connection guest_;
};

class HearthLives final : public Lives {
 public:
  explicit HearthLives(const Workshop& workshop)
      : client_(workshop.engine().state_dir()),
        program_(linux::open_file(workshop.noop(), O_RDONLY)),
        null_(linux::open_file("/dev/null", O_RDWR)) {}

  Turn live_once() override {
    const Moment begin = now();
    runtime::Runtime::Created created = client_.create({});
    guest::Connection guest(std::move(created.guest));
    const guest::Exited exited = guest.run(
        request_, {.input = program_.get(), .output = witness_.fd(), .error = null_.get()});
    const Moment done = now();
    client_.destroy(created.sandbox.id);
    const Moment gone = now();
    check_end(exited);
    witness_.take_byte();
    return {.done_us = us_between(begin, done), .gone_us = us_between(begin, gone)};
  }

 private:
  runtime::RuntimeClient client_;
  linux::Fd program_;
  linux::Fd null_;
  Witness witness_;
  guest::ExecRequest request_ = request_of({kProgramOnStdin});
};

class HearthLive final : public LiveSandbox {
 public:
  explicit HearthLive(const Workshop& workshop)
      : sandbox_(workshop), null_(linux::open_file("/dev/null", O_RDWR)) {}

  double time_exec() override {
    const Moment begin = now();
    const guest::Exited exited = sandbox_.guest().run(
        request_, {.input = null_.get(), .output = null_.get(), .error = null_.get()});
    const double time = us_between(begin, now());
    check_end(exited);
    return time;
  }

 private:
  Prepared sandbox_;
  linux::Fd null_;
  guest::ExecRequest request_ = request_of({kProgramInside});
};

class HearthIdle final : public IdleSandboxes {
 public:
  HearthIdle(const Workshop& workshop, unsigned count) : client_(workshop.engine().state_dir()) {
    for (unsigned i = 0; i < count; ++i) sandboxes_.push_back(client_.create({}).sandbox);
  }
  HearthIdle(const HearthIdle&) = delete;
  HearthIdle& operator=(const HearthIdle&) = delete;
  ~HearthIdle() override {
    try {
      for (const runtime::Sandbox& sandbox : sandboxes_) client_.destroy(sandbox.id);
    } catch (const Error&) {
      // The engine destroys everything when it ends.
    }
  }

  std::vector<pid_t> pids() const override {
    std::vector<pid_t> pids;
    for (const runtime::Sandbox& sandbox : sandboxes_) pids.push_back(sandbox.pid);
    return pids;
  }

 private:
  runtime::RuntimeClient client_;
  std::vector<runtime::Sandbox> sandboxes_;
};

class Hearth final : public Subject {
 public:
  explicit Hearth(const Workshop& workshop) : workshop_(workshop) {
    hello_ = runtime::RuntimeClient(workshop.engine().state_dir()).hello();
  }

  std::unique_ptr<Lives> make_lives() override { return std::make_unique<HearthLives>(workshop_); }
  std::unique_ptr<LiveSandbox> make_live_sandbox() override {
    return std::make_unique<HearthLive>(workshop_);
  }
  std::unique_ptr<IdleSandboxes> make_idle_sandboxes(unsigned count) override {
    return std::make_unique<HearthIdle>(workshop_, count);
  }
  std::string version() const override {
    return fmt::format("{}, limits by {}", hello_.version, hello_.cgroups);
  }

 private:
  const Workshop& workshop_;
  runtime::Hello hello_;
};

class CliLives final : public Lives {
 public:
  explicit CliLives(const Workshop& workshop)
      : program_(linux::open_file(workshop.noop(), O_RDONLY)),
        words_({workshop.own_program("hearth"), "run", "--state-dir", workshop.engine().state_dir(),
                "--rm", "-i", "--", kProgramOnStdin}) {}

  Turn live_once() override { return time_command(words_, program_.get(), witness_); }

 private:
  linux::Fd program_;
  Witness witness_;
  std::vector<std::string> words_;
};

class CliLive final : public LiveSandbox {
 public:
  explicit CliLive(const Workshop& workshop)
      : sandbox_(workshop),
        words_({workshop.own_program("hearth"), "exec", "--state-dir",
                workshop.engine().state_dir(), sandbox_.id(), "--", kProgramInside}) {}

  double time_exec() override {
    const Moment begin = now();
    run_command(words_);
    return us_between(begin, now());
  }

 private:
  Prepared sandbox_;
  std::vector<std::string> words_;
};

class HearthCli final : public Subject {
 public:
  explicit HearthCli(const Workshop& workshop) : workshop_(workshop) {
    const std::string program = workshop.own_program("hearth");
    if (::access(program.c_str(), X_OK) != 0) fail(Code::not_found, "'hearth' is not built");
    workshop.engine();
  }

  std::unique_ptr<Lives> make_lives() override { return std::make_unique<CliLives>(workshop_); }
  std::unique_ptr<LiveSandbox> make_live_sandbox() override {
    return std::make_unique<CliLive>(workshop_);
  }

 private:
  const Workshop& workshop_;
};

}  // namespace

std::unique_ptr<Subject> make_hearth(const Workshop& workshop) {
  return std::make_unique<Hearth>(workshop);
}

std::unique_ptr<Subject> make_hearth_cli(const Workshop& workshop) {
  return std::make_unique<HearthCli>(workshop);
}

}  // namespace hearth::bench
