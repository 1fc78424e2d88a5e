#include "bench/hearth_up.h"

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

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

constexpr Duration kEndPatience = std::chrono::minutes(2);

// The number behind "NAME=SCHEME://127.0.0.1:"; 0 when there is none.
std::uint16_t port_in(std::string_view line, std::string_view before) {
  const std::size_t at = line.find(before);
  std::uint16_t port = 0;
  if (at != std::string_view::npos)
    std::from_chars(line.data() + at + before.size(), line.data() + line.size(), port);
  return port;
}

// "ready kube=https://127.0.0.1:PORT ..." among the first lines.
std::string read_ready_line(int output_fd) {
  constexpr std::string_view kReady = "ready kube=";
  std::string text;
  std::size_t line = 0;
  char next = 0;
  while (::read(output_fd, &next, 1) == 1) {
    text += next;
    if (next != '\n') continue;
    if (text.find(kReady, line) != std::string::npos) return text.substr(line);
    line = text.size();
  }
  fail(Code::unavailable, "'hearth up' did not start: '{}'", text);
}

}  // namespace

HearthUp::HearthUp(const std::vector<std::string>& options)
    : bin_(fs::canonical("/proc/self/exe").parent_path()),
      folder_(fs::temp_directory_path() / ("hearth-bench-up-" + random_hex(4))) {
  if (::geteuid() != 0) fail(Code::forbidden, "real sandboxes need root");
  fs::create_directory(folder_);
  OnFailure undo([this] { end(); });
  start(options);
  make_image();
  undo.release();
}

HearthUp::~HearthUp() {
  end();
}

void HearthUp::start(const std::vector<std::string>& options) {
  linux::Pipe pipe = linux::make_pipe();
  std::vector<std::string> words = {bin_ + "/hearth", "up",     "--state-dir",    state_dir(),
                                    "--kube-port",    "0",      "--metrics-port", "0",
                                    "--log-level",    "warning"};
  words.insert(words.end(), options.begin(), options.end());
  child_.emplace(words, CommandFds{.input = -1, .output = pipe.write.get()});
  pipe.write.reset();
  const std::string ready = read_ready_line(pipe.read.get());
  kube_port_ = port_in(ready, "kube=https://127.0.0.1:");
  e2b_port_ = port_in(ready, "e2b=http://127.0.0.1:");
  output_ = std::move(pipe.read);
  std::ifstream(state_dir() + "/engine/admin.token") >> token_;
}

std::string HearthUp::e2b_key() const {
  std::string key;
  std::ifstream(state_dir() + "/e2b.key") >> key;
  if (key.empty()) fail(Code::unavailable, "'hearth up' wrote no API key");
  return key;
}

void HearthUp::make_image() const {
  const std::string root = folder_ + "/root";
  for (const char* name : {"", "/bin", "/dev", "/etc", "/proc", "/root", "/sys", "/tmp"})
    fs::create_directory(root + name);
  fs::copy_file(bin_ + "/bench-noop", root + "/noop");
  // What E2B's SDKs start, whatever the command is.
  fs::copy_file(bin_ + "/bench-noop", root + "/bin/bash");
  add_image(state_dir(), root);
}

void HearthUp::end() {
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

}  // namespace hearth::bench
