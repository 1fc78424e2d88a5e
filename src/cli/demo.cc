#include "cli/demo.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/on_failure.h"
#include "cli/environment.h"
#include "cli/values.h"
#include "guest/client.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

using namespace std::chrono_literals;

// A demonstration that hangs demonstrates nothing.
constexpr std::uint64_t kTimeoutMilliseconds = 30'000;

constexpr const char* kProgram = R"(import os, platform, socket
print("  python   ", platform.python_version())
print("  hostname ", socket.gethostname())
print("  uid      ", os.getuid())
print("  processes", sum(name.isdigit() for name in os.listdir("/proc")))
print("  6 * 7 =  ", 6 * 7)
)";

template <typename F>
Duration time_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  std::forward<F>(work)();
  return std::chrono::steady_clock::now() - start;
}

double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Prints the program's output when it has ended; it is less than a pipe holds.
void run_program(guest::Connection& guest) {
  linux::Pipe pipe = linux::make_pipe();
  const guest::ExecRequest request{.command = {"python3", "-c", kProgram},
                                   .timeout_milliseconds = kTimeoutMilliseconds};
  const guest::Exited exited =
      guest.run(request, {.input = -1, .output = pipe.write.get(), .error = pipe.write.get()});
  pipe.write.reset();
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(pipe.read.get(), buffer, sizeof buffer)) > 0) {
    std::fwrite(buffer, 1, static_cast<std::size_t>(got), stdout);
  }
  if (exited.status != linux::ExitStatus{}) {
    fail(Code::internal, "the demonstration's program failed; 'hearth doctor' may know why");
  }
}

void print_next_steps(const std::string& state_dir, const Endpoints& endpoints) {
  const std::string lines = environment_lines(state_dir, endpoints);
  std::fputs("\nIn another terminal:\n\n", stdout);
  std::fputs(lines.c_str(), stdout);
  std::fputs(
      "eval \"$(hearth env)\"    # for kubectl, and for the SDKs of E2B\n"
      "hearth run --rm -it\n"
      "hearth run --rm --memory 64m -- python3 -c 'x = bytearray(10**9)'\n"
      "hearth run -d --name work\n"
      "hearth exec work -- sh -c 'echo kept > /tmp/note; cat /tmp/note'\n"
      "hearth ls\n"
      "\nCtrl-C ends the engine and everything in it.\n",
      stdout);
  std::fflush(stdout);
}

}  // namespace

void run_demo(const std::string& state_dir, const Endpoints& endpoints) {
  runtime::RuntimeClient runtime(state_dir);
  runtime::Runtime::Created created;
  const Duration create = time_of([&] { created = runtime.create({}); });
  OnFailure remove([&] { runtime.destroy(created.sandbox.id); });

  std::fputs(fmt::format("\nA program in sandbox {}:\n", created.sandbox.id).c_str(), stdout);
  guest::Connection guest(std::move(created.guest));
  const Duration first = time_of([&] { run_program(guest); });
  const Duration second = time_of([&] { guest.run({.command = {"true"}}, {}); });
  remove.release();
  const Duration release = time_of([&] { runtime.destroy(created.sandbox.id); });
  std::fputs(
      fmt::format(
          "\ncreate {:.1f} ms, first exec (python3) {:.1f} ms, second exec (true) {:.1f} ms, "
          "release {:.1f} ms\n",
          milliseconds(create), milliseconds(first), milliseconds(second), milliseconds(release))
          .c_str(),
      stdout);
  print_next_steps(state_dir, endpoints);
}

}  // namespace hearth::cli
