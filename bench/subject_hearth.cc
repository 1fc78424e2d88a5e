// The engine, asked over its socket.
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "bench/hearth_sandbox.h"
#include "bench/subject.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

using namespace std::chrono_literals;

class HearthCycles : public Work {
 public:
  explicit HearthCycles(const Engine& engine)
      : client_(engine.state_dir()), null_(linux::open_file("/dev/null", O_RDWR)) {}

  double do_once() override {
    const Moment begin = now();
    runtime::Runtime::Created created = client_.create(spec_);
    guest::Connection guest(std::move(created.guest));
    const guest::Exited exited =
        guest.run(request_, {.input = null_.get(), .output = witness_.fd(), .error = null_.get()});
    client_.destroy(created.sandbox.id);
    const double time = us_between(begin, now());
    check_end(exited);
    witness_.take_byte();
    return time;
  }

 protected:
  runtime::RuntimeClient& client() { return client_; }

 private:
  runtime::RuntimeClient client_;
  linux::Fd null_;
  Witness witness_;
  runtime::SandboxSpec spec_ = bench_spec();
  guest::ExecRequest request_ = request_of({"/noop"});
};

// The same, of shells that are ready: a sandbox that had to be made from nothing is a failure.
class PooledCycles final : public HearthCycles {
 public:
  explicit PooledCycles(const Engine& engine) : HearthCycles(engine), wanted_(engine.warm()) {
    recover();
    misses_ = client().hello().warm_misses;
  }

  void recover() override {
    const Deadline deadline = Deadline::after(kPatience);
    while (true) {
      const runtime::Hello hello = client().hello();
      if (misses_ && hello.warm_misses != *misses_) fail(Code::internal, "the pool ran dry");
      if (hello.warm >= wanted_) return;
      if (deadline.passed())
        fail(Code::timeout, "the pool has {} of {} shells", hello.warm, wanted_);
      std::this_thread::sleep_for(1ms);
    }
  }

 private:
  unsigned wanted_;
  std::optional<std::uint64_t> misses_;
};

class HearthExecs final : public Work {
 public:
  explicit HearthExecs(const Engine& engine)
      : sandbox_(engine), null_(linux::open_file("/dev/null", O_RDWR)) {}

  double do_once() override {
    const Moment begin = now();
    const guest::Exited exited = sandbox_.guest().run(
        request_, {.input = null_.get(), .output = null_.get(), .error = null_.get()});
    const double time = us_between(begin, now());
    check_end(exited);
    return time;
  }

 private:
  HearthSandbox sandbox_;
  linux::Fd null_;
  guest::ExecRequest request_ = request_of({"/noop"});
};

class HearthPauses final : public Work {
 public:
  explicit HearthPauses(const Engine& engine) : sandbox_(engine) {
    guest::ExecRequest request = request_of({"/noop", "forever"});
    request.detached = true;
    for (unsigned i = 0; i < kPausedProcesses; ++i)
      guest::Connection(sandbox_.client().connect(sandbox_.id())).start(request, {});
  }

  double do_once() override {
    const Moment begin = now();
    sandbox_.client().pause(sandbox_.id());
    sandbox_.client().resume(sandbox_.id());
    return us_between(begin, now());
  }

 private:
  HearthSandbox sandbox_;
};

class HearthFileWrites final : public Work {
 public:
  explicit HearthFileWrites(const Engine& engine) : sandbox_(engine) {}

  double do_once() override {
    check_end(sandbox_.guest().run(request_, {.output = pipe_.write.get()}));
    std::string line(64, '\0');
    const ssize_t got = ::read(pipe_.read.get(), line.data(), line.size());
    line.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return parse_figure(line);
  }

 private:
  HearthSandbox sandbox_;
  linux::Pipe pipe_ = linux::make_pipe();
  guest::ExecRequest request_ = request_of({"/small-files", "/tmp", std::to_string(kFilesAtOnce)});
};

class HearthIdle final : public IdleSandboxes {
 public:
  explicit HearthIdle(const Engine& engine) : engine_(engine), client_(engine.state_dir()) {}
  HearthIdle(const HearthIdle&) = delete;
  HearthIdle& operator=(const HearthIdle&) = delete;
  ~HearthIdle() override {
    try {
      for (const runtime::Sandbox& sandbox : sandboxes_) client_.destroy(sandbox.id);
    } catch (const Error&) {
      // The engine destroys everything when it ends.
    }
  }

  void add(unsigned count) override {
    for (unsigned i = 0; i < count; ++i) sandboxes_.push_back(client_.create(bench_spec()).sandbox);
  }

  // The engine too: what it keeps of each sandbox is part of the price.
  std::vector<pid_t> roots() const override {
    std::vector<pid_t> pids = {engine_.pid()};
    for (const runtime::Sandbox& sandbox : sandboxes_) pids.push_back(sandbox.pid);
    return pids;
  }

 private:
  const Engine& engine_;
  runtime::RuntimeClient client_;
  std::vector<runtime::Sandbox> sandboxes_;
};

class Hearth final : public Subject {
 public:
  explicit Hearth(const Engine& engine)
      : engine_(engine), hello_(runtime::RuntimeClient(engine.state_dir()).hello()) {}

  std::unique_ptr<Work> make_cycles() override { return std::make_unique<HearthCycles>(engine_); }
  std::unique_ptr<Work> make_execs() override { return std::make_unique<HearthExecs>(engine_); }
  std::unique_ptr<Work> make_pauses() override { return std::make_unique<HearthPauses>(engine_); }
  std::unique_ptr<Work> make_file_writes() override {
    return std::make_unique<HearthFileWrites>(engine_);
  }
  std::unique_ptr<IdleSandboxes> make_idle_sandboxes() override {
    return std::make_unique<HearthIdle>(engine_);
  }
  std::string version() const override {
    return fmt::format("{}, limits by {}", hello_.version, hello_.cgroups);
  }

 private:
  const Engine& engine_;
  runtime::Hello hello_;
};

class HearthPooled final : public Subject {
 public:
  explicit HearthPooled(const Engine& engine)
      : engine_(engine), hello_(runtime::RuntimeClient(engine.state_dir()).hello()) {}

  std::unique_ptr<Work> make_cycles() override { return std::make_unique<PooledCycles>(engine_); }
  std::string version() const override {
    return hello_.network.empty() ? "no network here: the shells have no links"
                                  : fmt::format("links in {}", hello_.network);
  }

 private:
  const Engine& engine_;
  runtime::Hello hello_;
};

}  // namespace

std::unique_ptr<Subject> make_hearth(const Workshop& workshop) {
  return std::make_unique<Hearth>(workshop.engine());
}

std::unique_ptr<Subject> make_hearth_pooled(const Workshop& workshop) {
  return std::make_unique<HearthPooled>(workshop.pooled_engine());
}

}  // namespace hearth::bench
