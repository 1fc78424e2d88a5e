#include "cli/runtime_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "cli/values.h"
#include "linux/fd.h"
#include "linux/pidfd.h"
#include "linux/spawn_rules.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

using namespace std::chrono_literals;

// Reading all of /usr and making the files of image `host` takes a second; a machine under load
// takes several, and an ext4 without a journal that has just lost very many files a minute. With
// sudo, somebody may have to find the password first.
constexpr Duration kStartPatience = 180s;
// From its last answer to the end of its process.
constexpr Duration kEndPatience = 10s;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

// sudo(8) closes every descriptor from 3 on, hence its output; otherwise the first free one.
constexpr int kReadyFdThroughSudo = 1;
constexpr int kReadyFd = 3;

std::vector<std::string> runtime_command(const RuntimeWanted& wanted) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> words = {folder / "hearth-runtime",
                                    "--state-dir",
                                    wanted.state_dir,
                                    "--owner",
                                    std::to_string(wanted.owner),
                                    "--log-format",
                                    wanted.log_format,
                                    "--log-level",
                                    wanted.log_level,
                                    "--warm",
                                    std::to_string(wanted.warm)};
  if (!wanted.network) words.insert(words.end(), {"--network", "off"});
  if (wanted.image_quota_bytes != 0) {
    const std::uint64_t mebibytes = (wanted.image_quota_bytes + kMebibyte - 1) / kMebibyte;
    words.insert(words.end(), {"--image-quota", std::to_string(mebibytes)});
  }
  for (const std::string& path : wanted.host_paths)
    words.insert(words.end(), {"--allow-host-path", path});
  return words;
}

std::string quote_all(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quote(word);
  return line;
}

// Starts a program that knows nothing of us but our stderr and the pipe. An errno, or 0.
int spawn(const std::vector<std::string>& command, int ready_fd, int pipe_fd, pid_t& pid) {
  linux::SpawnRules rules;
  rules.connect(-1, STDIN_FILENO);
  rules.connect(-1, STDOUT_FILENO);
  rules.connect(pipe_fd, ready_fd);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return ::posix_spawnp(&pid, words[0], rules.actions(), rules.attributes(), words.data(), environ);
}

enum class Readiness { ready, ended, late };

Readiness wait_ready(int pipe_fd, Deadline deadline) {
  std::string heard;
  while (!heard.ends_with("ready\n")) {
    pollfd waiting{.fd = pipe_fd, .events = POLLIN, .revents = 0};
    const int count = ::poll(&waiting, 1, deadline.poll_milliseconds());
    if (count == 0) return Readiness::late;
    std::array<char, 64> piece{};
    const ssize_t got = count < 0 ? -1 : ::read(pipe_fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Readiness::ended;
    heard.append(piece.data(), static_cast<std::size_t>(got));
  }
  return Readiness::ready;
}

void start_runtime(const RuntimeWanted& wanted) {
  const bool through_sudo = ::geteuid() != 0;
  const std::string by_hand = quote_all(runtime_command(wanted));
  std::vector<std::string> command = runtime_command(wanted);
  const int ready_fd = through_sudo ? kReadyFdThroughSudo : kReadyFd;
  command.insert(command.end(), {"--ready-fd", std::to_string(ready_fd)});
  if (through_sudo) command.insert(command.begin(), {"sudo", "--"});

  linux::Pipe pipe = linux::make_pipe();
  pid_t pid = 0;
  const int error = spawn(command, ready_fd, pipe.write.get(), pid);
  pipe.write.reset();
  if (error != 0 && through_sudo) {
    fail(Code::unavailable,
         "making sandboxes needs root, and sudo cannot be run ({}); run this as root, then 'hearth "
         "up' again: {}",
         errno_text(error), by_hand);
  }
  if (error != 0)
    fail(Code::unavailable, "hearth-runtime cannot be run ({}); it belongs beside hearth: {}",
         errno_text(error), by_hand);

  switch (wait_ready(pipe.read.get(), Deadline::after(kStartPatience))) {
    case Readiness::ready:
      return;
    case Readiness::ended:
      fail(Code::unavailable, "hearth-runtime did not start; {}; to try by hand{}: {}",
           through_sudo ? "sudo refused, or it said why above" : "it said why above",
           through_sudo ? ", as root" : "", by_hand);
    case Readiness::late:
      ::kill(pid, SIGTERM);
      fail(Code::timeout, "hearth-runtime was not ready in time; to try by hand: {}", by_hand);
  }
}

// The socket's owner is whom the runtime serves.
bool serves(const RuntimeWanted& wanted) {
  struct stat status{};
  const std::string socket = fmt::format("{}/{}", wanted.state_dir, runtime::kSocketName);
  return ::stat(socket.c_str(), &status) == 0 && status.st_uid == wanted.owner;
}

// Nothing when no runtime answers. One of another version may answer with what we cannot read.
std::optional<runtime::Hello> find_runtime(const std::string& state_dir) {
  try {
    runtime::RuntimeClient client(state_dir);
    try {
      return client.hello();
    } catch (const Error& error) {
      if (error.code() != Code::invalid) throw;
      return runtime::Hello{.protocol = 0, .version = "unknown"};
    }
  } catch (const Error& error) {
    if (error.code() == Code::unavailable) return std::nullopt;
    throw;
  }
}

}  // namespace

RuntimeFound ensure_runtime(const RuntimeWanted& wanted) {
  if (const auto found = find_runtime(wanted.state_dir)) {
    const bool fits =
        found->version == HEARTH_VERSION && found->protocol == runtime::kProtocolVersion;
    if (fits && serves(wanted)) return {.hello = *found, .started = false};
    end_runtime(wanted.state_dir, /*destroy_all=*/false);
  }
  start_runtime(wanted);
  return {.hello = runtime::RuntimeClient(wanted.state_dir).hello(), .started = true};
}

void end_runtime(const std::string& state_dir, bool destroy_all) {
  runtime::RuntimeClient client(state_dir);
  // Opened before it is told: afterwards the pid may be another's.
  const auto process = linux::Pidfd::find(linux::peer_of(client.fd()).pid);
  client.shut_down(destroy_all);
  if (process && !process->wait_for_end(Deadline::after(kEndPatience))) {
    fail(Code::timeout, "hearth-runtime has answered, but does not end");
  }
}

}  // namespace hearth::cli
