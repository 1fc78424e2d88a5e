#include "interpreter/kernel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "guest/users.h"

namespace hearth::interpreter {
namespace {

using namespace std::chrono_literals;

// A sandbox starved of CPU, with a Python that compiles its library first.
constexpr Duration kStartPatience = 60s;

// What is read at once; also how long one event of output gets.
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

// What background processes can write between two cells before they have to wait for the next one.
constexpr int kPipeBytes = 1 << 20;

// Of what a kernel wrote that did not start, for the message.
constexpr std::size_t kMostComplaint = 2000;

std::map<std::string, std::string> as_map(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return variables;
}

// So that /dev/stdout can be opened by who runs there.
linux::Pipe make_output_pipe(const guest::User& user) {
  linux::Pipe pipe = linux::make_pipe();
  ::fcntl(pipe.write.get(), F_SETPIPE_SZ, kPipeBytes);  // without it there is less room, no more
  [[maybe_unused]] const int owned = ::fchown(pipe.write.get(), user.uid, user.gid);
  linux::set_nonblocking(pipe.read.get(), true);
  return pipe;
}

}  // namespace

Kernel::Kernel(guest::Core& core, Kit kit, const std::string& directory)
    : kit_(std::move(kit)),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)),
      connection_(core.connect()) {
  start(core, directory);
  wait_until_ready(Deadline::after(kStartPatience));
}

void Kernel::start(guest::Core& core, const std::string& directory) {
  const guest::Settings settings = core.settings();
  const guest::User user = guest::find_user_here(settings.user);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("make a pair of sockets");
  control_ = linux::Fd(ends[0]);
  const linux::Fd theirs(ends[1]);
  linux::Pipe output = make_output_pipe(user);
  linux::Pipe error = make_output_pipe(user);
  guest::ExecRequest request;
  request.command = kit_.command;
  request.directory = directory;
  environment_ = guest::environment_for_commands(settings);
  connection_.start(
      request, {.input = theirs.get(), .output = output.write.get(), .error = error.write.get()},
      Deadline::after(kStartPatience));
  output_.fd = std::move(output.read);
  error_.fd = std::move(error.read);
}

void Kernel::wait_until_ready(Deadline deadline) {
  std::string_view words = kit_.first_words;
  while (true) {
    if (!words.empty()) words.remove_prefix(send_some(words));
    pollfd waited{.fd = control_.get(),
                  .events = static_cast<short>(words.empty() ? POLLIN : POLLIN | POLLOUT),
                  .revents = 0};
    const int count = ::poll(&waited, 1, deadline.poll_milliseconds());
    if (count == 0) fail(Code::timeout, "{} did not get ready in time", kit_.program);
    if (count < 0 && errno != EINTR) throw_errno("wait for a kernel");
    if ((waited.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    bool gone = false;
    frames_.feed(receive(gone));
    if (gone) throw_not_started();
    while (const auto frame = frames_.next()) {
      if (frame->kind == Frame::Kind::ready) return;
    }
  }
}

void Kernel::throw_not_started() {
  const auto exited = wait_for_end(Deadline::after(1s));
  if (exited && exited->status.code == 127)
    fail(Code::not_found, "there is no program '{}' in the sandbox", kit_.program);
  const std::string complaint(read(error_).substr(0, kMostComplaint));
  fail(Code::unavailable, "{} did not start: {}", kit_.program,
       complaint.empty() ? "it ended at once" : complaint);
}

std::size_t Kernel::send_some(std::string_view bytes) {
  while (true) {
    const ssize_t sent =
        ::send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN) return 0;
    // Gone; what it said before is still to be read.
    if (errno == EPIPE || errno == ECONNRESET) return bytes.size();
    if (errno != EINTR) throw_errno("speak to a kernel");
  }
}

std::string_view Kernel::receive(bool& gone) {
  while (true) {
    const ssize_t got = ::recv(control_.get(), buffer_.get(), kBufferBytes, MSG_DONTWAIT);
    if (got > 0) return {buffer_.get(), static_cast<std::size_t>(got)};
    if (got < 0 && errno == EINTR) continue;
    gone = got == 0 || errno != EAGAIN;
    return {};
  }
}

std::string_view Kernel::read(OutputPipe& pipe) {
  while (pipe.fd) {
    const ssize_t got = ::read(pipe.fd.get(), buffer_.get(), kBufferBytes);
    if (got > 0) return {buffer_.get(), static_cast<std::size_t>(got)};
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) pipe.fd.reset();
    break;
  }
  return {};
}

bool Kernel::is_alive() const {
  pollfd looked{.fd = control_.get(), .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&looked, 1, 0) <= 0 || (looked.revents & (POLLHUP | POLLRDHUP | POLLERR)) == 0;
}

std::string Kernel::message_for(Cell cell, const std::vector<std::string>& environment) {
  if (environment != environment_) {
    const auto before = as_map(environment_);
    const auto now = as_map(environment);
    Variables changed;
    for (const auto& [name, value] : now) {
      const auto old = before.find(name);
      if (old == before.end() || old->second != value) changed.emplace_back(name, value);
    }
    for (const auto& [name, value] : before) {
      if (!now.contains(name)) cell.unsets.push_back(name);
    }
    // The request's own come after, and win.
    cell.sets.insert(cell.sets.begin(), changed.begin(), changed.end());
    environment_ = environment;
  }
  if (!kit_.is_shell) return frame_of(cell);
  cell.sets.insert(cell.sets.begin(), resets_.begin(), resets_.end());
  cell.unsets.insert(cell.unsets.begin(), reset_unsets_.begin(), reset_unsets_.end());
  std::string line = shell_line_of(cell);
  resets_ = std::move(cell.resets);
  reset_unsets_ = std::move(cell.reset_unsets);
  return line;
}

}  // namespace hearth::interpreter
