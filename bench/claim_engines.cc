#include "bench/claim_engines.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/id.h"
#include "base/on_failure.h"
#include "bench/workshop.h"
#include "runtime/client.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

constexpr Duration kEndPatience = std::chrono::minutes(2);

// "ready kube=https://127.0.0.1:PORT ..." among the first lines.
std::uint16_t read_ready_port(int output_fd) {
  constexpr std::string_view kBefore = "kube=https://127.0.0.1:";
  std::string text;
  char next = 0;
  while (::read(output_fd, &next, 1) == 1) {
    text += next;
    const std::size_t at = text.find(kBefore);
    if (next != '\n' || at == std::string::npos) continue;
    std::uint16_t port = 0;
    std::from_chars(text.data() + at + kBefore.size(), text.data() + text.size(), port);
    return port;
  }
  fail(Code::unavailable, "'hearth up' did not start: '{}'", text);
}

class HearthUp final : public ClaimEngine {
 public:
  HearthUp()
      : bin_(fs::canonical("/proc/self/exe").parent_path()),
        folder_(fs::temp_directory_path() / ("hearth-bench-up-" + random_hex(4))) {
    if (::geteuid() != 0) fail(Code::forbidden, "real sandboxes need root");
    fs::create_directory(folder_);
    OnFailure undo([this] { end(); });
    start();
    add_image();
    undo.release();
  }
  HearthUp(const HearthUp&) = delete;
  HearthUp& operator=(const HearthUp&) = delete;
  ~HearthUp() override { end(); }

  ApiAddress address() const override { return {port_, token_}; }
  std::string image() const override { return kImage; }

 private:
  void start() {
    linux::Pipe pipe = linux::make_pipe();
    child_.emplace(
        std::vector<std::string>{bin_ + "/hearth", "up", "--state-dir", state_dir(), "--kube-port",
                                 "0", "--metrics-port", "0", "--no-e2b", "--log-level", "warning"},
        CommandFds{.input = -1, .output = pipe.write.get()});
    pipe.write.reset();
    port_ = read_ready_port(pipe.read.get());
    output_ = std::move(pipe.read);
    std::ifstream(state_dir() + "/engine/admin.token") >> token_;
  }

  void add_image() const {
    const std::string root = folder_ + "/root";
    for (const char* name : {"", "/dev", "/etc", "/proc", "/root", "/sys", "/tmp"})
      fs::create_directory(root + name);
    fs::copy_file(bin_ + "/bench-noop", root + "/noop");
    runtime::RuntimeClient client(state_dir());
    const linux::Fd root_fd = linux::open_file(root, O_RDONLY | O_DIRECTORY);
    image::Image image;
    image.name = kImage;
    image.id = "sha256:" + random_hex(32);
    image.layers = {client.add_folder(root_fd.get())};
    client.put_image(image);
  }

  // As Ctrl-C does: with every sandbox.
  void end() {
    try {
      if (child_) {
        ::kill(child_->pid(), SIGINT);
        child_->wait(kEndPatience);
      }
    } catch (const Error& error) {
      std::fprintf(stderr, "hearth-bench: end 'hearth up': %s\n", error.what());
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string state_dir() const { return folder_ + "/state"; }

  const std::string bin_;
  const std::string folder_;
  std::optional<Child> child_;
  linux::Fd output_;  // what it says later goes nowhere, and must not end it
  std::uint16_t port_ = 0;
  std::string token_;
};

}  // namespace

std::unique_ptr<ClaimEngine> start_hearth_up() {
  return std::make_unique<HearthUp>();
}

}  // namespace hearth::bench
