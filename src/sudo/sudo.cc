#include "sudo/sudo.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "guest/protocol.h"
#include "guest/sudo_door.h"
#include "guest/users.h"
#include "linux/pty.h"
#include "sudo/line.h"
#include "sudo/stand_in.h"

namespace hearth::sudo {
namespace {

using namespace std::chrono_literals;

// The guest answers at once unless it is drowned in work.
constexpr Duration kPatience = 30s;

std::string current_folder() {
  char* const path = ::getcwd(nullptr, 0);
  if (path == nullptr) throw_errno("find out the current folder");
  std::string text(path);
  std::free(path);
  return text;
}

Caller find_caller() {
  Caller caller{.uid = ::getuid(), .gid = ::getgid()};
  caller.name = guest::user_name_here(caller.uid);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    caller.environment.emplace_back(*entry);
  return caller;
}

// Where a command is found. What is nowhere stays as it is: the guest says so.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  std::string_view rest = kSecurePath;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string path = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (::access(path.c_str(), X_OK) == 0) return path;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return name;
}

guest::Reply next_reply(linux::Channel& channel) {
  const auto message = channel.receive(Deadline::after(kPatience));
  if (!message) fail(Code::unavailable, "the sandbox hung up");
  return guest::parse_reply(message->bytes);
}

void fail_as_told(const guest::Reply& reply) {
  if (const auto* failed = std::get_if<guest::Failed>(&reply))
    fail(failed->code, "{}", failed->message);
}

linux::Channel be_admitted(const Caller& caller) {
  linux::Channel channel = guest::knock_at_sudo_door();
  const guest::Reply reply = next_reply(channel);
  if (const auto* failed = std::get_if<guest::Failed>(&reply))
    fail(failed->code, "{} may not run sudo in this sandbox", caller.name);
  return channel;
}

// Those that are closed would be somebody else's by the time they are used.
void have_three_descriptors() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= 2) continue;
    ::close(fd);
    return;
  }
}

struct Wish {
  guest::ExecRequest request;
  bool with_terminal = false;
};

Wish wish_for(const Line& line, const Caller& caller) {
  Wish wish;
  guest::ExecRequest& request = wish.request;
  request.user = target_of(line, caller);
  const guest::User target = guest::find_user_here(request.user);
  request.command = command_of(line, caller, target);
  const std::string program = find_program(request.command.front());
  request.environment = environment_of(line, caller, target, program, request.command);
  if (line.mode == Mode::login)
    request.directory = target.home;
  else
    request.directory = current_folder();
  if (line.directory.starts_with('/'))
    request.directory = line.directory;
  else if (!line.directory.empty())
    request.directory += '/' + line.directory;
  wish.with_terminal = !line.background && ::isatty(0) == 1 && ::isatty(1) == 1;
  if (wish.with_terminal) {
    const linux::WindowSize size = linux::get_window_size(0);
    request.terminal = true;
    request.rows = size.rows;
    request.columns = size.cols;
  }
  return wish;
}

int run_command(const Line& line, const Caller& caller) {
  const Wish wish = wish_for(line, caller);
  linux::Channel channel = be_admitted(caller);
  // Until now they are for this process; nothing runs that they could be meant for.
  const SignalQueue signals;
  const std::string bytes = guest::encode(guest::Request(wish.request));
  if (bytes.size() > guest::kMostSudoBytes)
    fail(Code::exhausted, "the command and its environment are too long");
  const int stdio[] = {0, 1, 2};
  channel.send(bytes, stdio);
  auto message = channel.receive(Deadline::after(kPatience));
  if (!message) fail(Code::unavailable, "the sandbox hung up");
  const guest::Reply reply = guest::parse_reply(message->bytes);
  if (const auto* failed = std::get_if<guest::Failed>(&reply);
      failed != nullptr && failed->code == Code::not_found) {
    fail(Code::not_found, "{}: command not found", wish.request.command.front());
  }
  fail_as_told(reply);
  if (line.background && ::fork() > 0) return 0;
  linux::Fd terminal;
  if (wish.with_terminal && !message->fds.empty()) terminal = std::move(message->fds.front());
  return StandIn(std::move(channel), signals, std::move(terminal)).run();
}

int list_rights(const Line& line, const Caller& caller) {
  be_admitted(caller);
  if (line.command.empty()) {
    std::printf(
        "User %s may run the following commands in this sandbox:\n    (ALL : ALL) NOPASSWD: ALL\n",
        caller.name.c_str());
    return 0;
  }
  const std::string program = find_program(line.command.front());
  if (program.find('/') == std::string::npos) return 1;
  std::string text = program;
  for (std::size_t i = 1; i < line.command.size(); ++i) text += ' ' + line.command[i];
  std::puts(text.c_str());
  return 0;
}

int carry_out(const Line& line, const Caller& caller) {
  switch (line.mode) {
    case Mode::help:
      std::fputs(std::string(kUsage).c_str(), stdout);
      return 0;
    case Mode::version:
      std::puts("Sudo version 1.9 (hearth " HEARTH_VERSION ")");
      return 0;
    case Mode::reset:
      return 0;
    case Mode::check:
      be_admitted(caller);
      return 0;
    case Mode::list:
      return list_rights(line, caller);
    case Mode::run:
    case Mode::shell:
    case Mode::login:
      break;
  }
  return run_command(line, caller);
}

}  // namespace

int run(std::span<char* const> words) {
  have_three_descriptors();
  try {
    const std::vector<std::string_view> texts(words.begin(), words.end());
    Line line;
    try {
      line = parse_line(texts);
    } catch (const Error& error) {
      std::fprintf(stderr, "sudo: %s\n%s", error.what(), std::string(kUsage).c_str());
      return 1;
    }
    return carry_out(line, find_caller());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sudo: %s\n", error.what());
    return 1;
  }
}

}  // namespace hearth::sudo
