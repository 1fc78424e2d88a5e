#include "bench/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace hearth::bench {
namespace {

using namespace std::chrono_literals;

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }

  void place(int fd, int target) { posix_spawn_file_actions_adddup2(&actions_, fd, target); }
  void place_null(int target) {
    posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", O_RDWR, 0);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawn(const std::vector<std::string>& words, const CommandFds& fds, int complaints_fd) {
  SpawnActions actions;
  const auto place = [&](int fd, int target) {
    if (fd < 0) return actions.place_null(target);
    actions.place(fd, target);
  };
  place(fds.input, STDIN_FILENO);
  place(fds.output, STDOUT_FILENO);
  place(complaints_fd, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, words.front().c_str(), actions.get(), &attributes,
                                  pointers_to(words).data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw_errno_text(error, fmt::format("start '{}'", words.front()));
  return pid;
}

// What commands of this thread write to their stderr: read when one fails. Made once, so that no
// command pays for it.
int complaints() {
  thread_local const linux::Fd file(::memfd_create("complaints", MFD_CLOEXEC));
  if (!file) throw_errno("make a file for complaints");
  ::fcntl(file.get(), F_SETFL, O_APPEND);
  return file.get();
}

// The last line says what went wrong; in one line, as it goes into a table.
std::string last_line(int fd) {
  std::array<char, 4096> buffer{};
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const off_t from =
      size > static_cast<off_t>(buffer.size()) ? size - static_cast<off_t>(buffer.size()) : 0;
  const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), from);
  if (got <= 0) return "it says nothing";
  std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const std::size_t end = text.rfind('\n'); end != std::string_view::npos)
    text.remove_prefix(end + 1);
  return std::string(text);
}

// Waits until one of two descriptors has something: true when the first has. Throws Error(timeout).
bool wait_for_either(int first_fd, int second_fd, Deadline deadline) {
  while (true) {
    std::array<pollfd, 2> waiting = {{{.fd = first_fd, .events = POLLIN, .revents = 0},
                                      {.fd = second_fd, .events = POLLIN, .revents = 0}}};
    const int ready = ::poll(waiting.data(), waiting.size(), deadline.poll_milliseconds());
    if (ready < 0 && errno != EINTR) throw_errno("wait for a command");
    if (ready > 0) return waiting[0].revents != 0;
    if (deadline.passed()) fail(Code::timeout, "the command did nothing for {} s", kPatience / 1s);
  }
}

}  // namespace

std::string find_program(const std::string& name) {
  // A root shell may lack the sbin folders, where Debian puts runc.
  std::string path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  path += ":/usr/bin:/usr/sbin:/bin:/sbin";
  std::size_t begin = 0;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = fmt::format("{}/{}", path.substr(begin, end - begin), name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  fail(Code::not_found, "'{}' is not installed", name);
}

Child::Child(const std::vector<std::string>& words, const CommandFds& fds) : name_(words.front()) {
  const int complaints_fd = complaints();
  if (::ftruncate(complaints_fd, 0) != 0) throw_errno("forget old complaints");
  pid_ = spawn(words, fds, complaints_fd);
  // Before it is reaped the pid cannot be anyone else's.
  auto pidfd = linux::Pidfd::find(pid_);
  if (!pidfd) fail(Code::internal, "'{}' vanished", name_);
  pidfd_ = std::move(*pidfd);
}

Child::~Child() {
  if (!pidfd_) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Child::wait(Duration patience) {
  if (!pidfd_.wait_for_end(Deadline::after(patience))) {
    fail(Code::timeout, "'{}' did not end within {} s", name_, patience / 1s);
  }
  const auto status = pidfd_.reap();
  pidfd_ = linux::Pidfd();
  if (status && *status == linux::ExitStatus{}) return;
  const std::string how = !status ? "was reaped by someone else"
                          : status->signal != 0
                              ? fmt::format("was ended by signal {}", status->signal)
                              : fmt::format("ended with code {}", status->code);
  fail(Code::internal, "'{}' {}: {}", name_, how, last_line(complaints()));
}

void run_command(const std::vector<std::string>& words, const CommandFds& fds) {
  Child(words, fds).wait();
}

std::string first_line_of(const std::vector<std::string>& words) {
  linux::Pipe pipe = linux::make_pipe();
  Child child(words, {.input = -1, .output = pipe.write.get()});
  pipe.write.reset();
  std::string text;
  std::array<char, 512> buffer{};
  ssize_t got = 0;
  while ((got = ::read(pipe.read.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  child.wait();
  return text.substr(0, text.find('\n'));
}

std::optional<Moment> Witness::wait_for_byte(const Child& child) {
  const bool byte = wait_for_either(pipe_.read.get(), child.pidfd(), Deadline::after(kPatience));
  const Moment moment = now();
  if (!byte) return std::nullopt;
  take_byte();
  return moment;
}

void Witness::take_byte() {
  pollfd waiting{.fd = pipe_.read.get(), .events = POLLIN, .revents = 0};
  char byte = 0;
  if (::poll(&waiting, 1, 0) <= 0 || ::read(pipe_.read.get(), &byte, 1) != 1) {
    fail(Code::internal, "the program did not run");
  }
}

double time_command(const std::vector<std::string>& words, Witness& witness) {
  const Moment begin = now();
  Child child(words, {.input = -1, .output = witness.fd()});
  child.wait();
  const double time = us_between(begin, now());
  witness.take_byte();
  return time;
}

double time_commands(const std::vector<std::vector<std::string>>& commands) {
  const Moment begin = now();
  for (const std::vector<std::string>& words : commands) run_command(words);
  return us_between(begin, now());
}

double parse_figure(const std::string& text) {
  double figure = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), figure);
  if (error != std::errc() || end == text.data() || figure <= 0)
    fail(Code::internal, "'{}' is no figure", text);
  return figure;
}

double time_vfork_exec(const std::string& program, int output_fd) {
  char* const arguments[] = {const_cast<char*>(program.c_str()), nullptr};
  const Moment begin = now();
  // Not posix_spawn(3), which asks for the disposition of every signal on the way.
  const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions): it calls exec right away
  if (pid == 0) {
    if (::dup2(output_fd, STDOUT_FILENO) < 0) ::_exit(126);
    ::execve(arguments[0], arguments, environ);
    ::_exit(127);
  }
  int status = -1;
  if (pid > 0) {
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  const double time = us_between(begin, now());
  if (status != 0) fail(Code::internal, "'{}' could not be run", program);
  return time;
}

}  // namespace hearth::bench
