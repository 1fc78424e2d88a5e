#include "node/runtime_backend.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/error.h"
#include "guest/client.h"
#include "model/status.h"
#include "runtime/client.h"
#include "runtime/log_reader.h"

namespace hearth::node {
namespace {

using remote::Command;
using remote::Container;
using remote::Ended;
using remote::Said;
using remote::Streams;
using Event = std::variant<std::monostate, Said, Ended>;

constexpr Duration kStartPatience = std::chrono::seconds(60);
// Until the client says how large it is.
constexpr std::uint16_t kRows = 24;
constexpr std::uint16_t kColumns = 80;
constexpr int kSignalBase = 128;

guest::Connection connect_to(const std::string& state_dir, const Container& container) {
  runtime::RuntimeClient client(state_dir);
  // One that is paused would let us wait until somebody resumes it.
  if (client.get(container.sandbox).state == runtime::State::paused) {
    fail(Code::unavailable, "the container '{}' is paused", container.name);
  }
  return guest::Connection(client.connect(container.sandbox));
}

Ended ended(const guest::Exited& exited) {
  const linux::ExitStatus& status = exited.status;
  return {.exit_code = status.signal != 0 ? kSignalBase + status.signal : status.code};
}

bool is_readable(int fd) {
  pollfd state{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&state, 1, 0) > 0;
}

// Of a command that was started here: its connection's end is its end.
class StartedLife final : public remote::Life {
 public:
  explicit StartedLife(guest::Connection guest) : guest_(std::move(guest)) {}
  int fd() const override { return guest_.fd(); }
  Event next() override {
    if (!is_readable(guest_.fd())) return std::monostate();
    const auto exited = guest_.wait(Deadline::after({}));
    if (!exited) return std::monostate();
    return ended(*exited);
  }

 private:
  guest::Connection guest_;
};

class AttachedLife final : public remote::Life {
 public:
  AttachedLife(guest::Connection guest, const Streams& streams)
      : guest_(std::move(guest)), streams_(streams) {}
  int fd() const override { return guest_.fd(); }
  Event next() override {
    while (is_readable(guest_.fd())) {
      auto event = guest_.next_of_attached();
      if (const auto* exited = std::get_if<guest::Exited>(&event)) return ended(*exited);
      auto& output = std::get<guest::Output>(event);
      const bool is_error = output.stream == guest::Stream::error;
      if (is_error ? streams_.error : streams_.output) {
        return Said{.is_error = is_error, .bytes = std::move(output.bytes)};
      }
    }
    return std::monostate();
  }

 private:
  guest::Connection guest_;
  Streams streams_;
};

linux::Pipe make_open_pipe() {
  linux::Pipe pipe = linux::make_pipe();
  linux::open_to_everyone(pipe.read.get());
  return pipe;
}

// A log on its way through a socket: whoever reads slowly makes the thread wait.
class ThreadFeed final : public remote::LogFeed {
 public:
  ThreadFeed(const std::string& state_dir, const std::string& id, const remote::LogOptions& options)
      : wanted_(options.stream),
        printer_(choice_of(options),
                 [this](guest::Stream stream, std::string_view text) { send(stream, text); }),
        reader_(state_dir, id, printer_, [](std::uint64_t) {}) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw_errno("make a socket pair");
    }
    ours_ = linux::Fd(ends[0]);
    theirs_ = linux::Fd(ends[1]);
    thread_ = std::thread([this, follow = options.follow] { run(follow); });
  }
  ThreadFeed(const ThreadFeed&) = delete;
  ThreadFeed& operator=(const ThreadFeed&) = delete;
  ~ThreadFeed() override {
    reader_.stop();
    ::shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
  }

  int fd() const override { return ours_.get(); }

 private:
  static runtime::LogChoice choice_of(const remote::LogOptions& options) {
    runtime::LogChoice choice{.tail = {}, .since = options.since, .timestamps = options.timestamps};
    if (options.tail_lines) {
      constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
      choice.tail = static_cast<std::uint32_t>(std::min(*options.tail_lines, kMost));
    }
    return choice;
  }

  void run(bool follow) {
    try {
      reader_.read(follow);
    } catch (const std::exception&) {
      // What was sent is all there is; or nobody reads it any more.
    }
    theirs_.reset();
  }

  void send(guest::Stream stream, std::string_view text) {
    const bool is_error = stream == guest::Stream::error;
    if (wanted_ == (is_error ? remote::LogStream::output : remote::LogStream::error)) return;
    while (!text.empty()) {
      const ssize_t sent = ::send(theirs_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) throw_errno("pass on a log");
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  remote::LogStream wanted_;
  runtime::LogPrinter printer_;
  runtime::LogReader reader_;
  linux::Fd ours_;
  linux::Fd theirs_;  // of the thread
  std::thread thread_;
};

}  // namespace

Command RuntimeBackend::start(const Container& container, const std::vector<std::string>& command,
                              const Streams& streams) {
  guest::Connection guest = connect_to(state_dir_, container);
  guest::ExecRequest request;
  request.command = command;
  request.terminal = streams.terminal;
  Command started;
  if (streams.terminal) {
    request.rows = kRows;
    request.columns = kColumns;
    request.environment = {"TERM=xterm"};
    linux::Fd terminal = guest.start(request, {}, Deadline::after(kStartPatience)).terminal;
    if (streams.input) started.input = linux::duplicate(terminal.get());
    started.output = std::move(terminal);
  } else {
    linux::Pipe input;
    linux::Pipe output;
    linux::Pipe error;
    if (streams.input) input = make_open_pipe();
    if (streams.output) output = make_open_pipe();
    if (streams.error) error = make_open_pipe();
    guest.start(
        request,
        {.input = input.read.get(), .output = output.write.get(), .error = error.write.get()},
        Deadline::after(kStartPatience));
    started.input = std::move(input.write);
    started.output = std::move(output.read);
    started.error = std::move(error.read);
  }
  started.life = std::make_unique<StartedLife>(std::move(guest));
  return started;
}

Command RuntimeBackend::attach(const Container& container, const Streams& streams) {
  guest::Connection guest = connect_to(state_dir_, container);
  Command attached;
  linux::Fd input = guest.attach().input;
  if (streams.input) attached.input = std::move(input);
  attached.life = std::make_unique<AttachedLife>(std::move(guest), streams);
  return attached;
}

linux::Fd RuntimeBackend::connect(const Container& container, std::uint16_t port) {
  return connect_to(state_dir_, container).connect(port);
}

std::unique_ptr<remote::LogFeed> RuntimeBackend::open_log(const Container& container,
                                                          const remote::LogOptions& options) {
  const std::string& sandbox = options.previous ? container.previous : container.sandbox;
  if (sandbox.empty()) {
    model::throw_bad_request(
        fmt::format("previous terminated container \"{}\" in pod \"{}\" not found", container.name,
                    container.pod));
  }
  runtime::RuntimeClient(state_dir_).get(sandbox);  // an unknown one is no empty log
  return std::make_unique<ThreadFeed>(state_dir_, sandbox, options);
}

}  // namespace hearth::node
