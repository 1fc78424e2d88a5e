// The engine, asked by its command line, as people do: the start of a program comes on top.
#include <unistd.h>

#include "bench/command_work.h"
#include "bench/hearth_sandbox.h"
#include "bench/subject.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

class CliExecs final : public Work {
 public:
  CliExecs(const std::string& program, const Engine& engine)
      : sandbox_(engine),
        words_({program, "exec", "--state-dir", engine.state_dir(), "-w", "/", sandbox_.id(), "--",
                "/noop"}) {}

  double do_once() override { return time_commands({words_}); }

 private:
  HearthSandbox sandbox_;
  std::vector<std::string> words_;
};

class HearthCli final : public Subject {
 public:
  explicit HearthCli(const Workshop& workshop)
      : engine_(workshop.engine()), program_(workshop.own_program("hearth")) {
    if (::access(program_.c_str(), X_OK) != 0) fail(Code::not_found, "'hearth' is not built");
  }

  std::unique_ptr<Work> make_cycles() override {
    return std::make_unique<CycleCommand>(
        std::vector<std::string>{program_, "run", "--state-dir", engine_.state_dir(), "--image",
                                 kImage, "--rm", "-w", "/", "--", "/noop"});
  }
  std::unique_ptr<Work> make_execs() override {
    return std::make_unique<CliExecs>(program_, engine_);
  }

 private:
  const Engine& engine_;
  std::string program_;
};

}  // namespace

std::unique_ptr<Subject> make_hearth_cli(const Workshop& workshop) {
  return std::make_unique<HearthCli>(workshop);
}

}  // namespace hearth::bench
