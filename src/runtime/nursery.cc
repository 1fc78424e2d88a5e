#include "runtime/nursery.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "linux/namespaces.h"
#include "linux/spawn_rules.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// Making namespaces takes a millisecond. A machine so busy that it takes longer than this is better
// served by an honest failure.
constexpr Duration kPatience = 20s;

// Its channel, and behind it the program that it is executed from.
constexpr int kChannelFd = 3;
constexpr int kProgramFd = 4;

// Of a number that is not among those the program finds its own under.
linux::Fd out_of_the_way(int fd) {
  linux::Fd high(::fcntl(fd, F_DUPFD_CLOEXEC, kProgramFd + 1));
  if (!high) throw_errno("duplicate a descriptor");
  return high;
}

pid_t start_program(int program_fd, int channel_fd) {
  HEARTH_ASSERT(program_fd > kProgramFd && channel_fd > kProgramFd);
  linux::SpawnRules rules;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) rules.connect(-1, fd);
  rules.connect(channel_fd, kChannelFd);
  rules.connect(program_fd, kProgramFd);
  // It would be open in every sandbox.
  rules.close_from(kProgramFd + 1);

  const std::string path = fmt::format("/proc/self/fd/{}", kProgramFd);
  std::string name = "hearth-guest";
  std::string role = "--nursery";
  char* const command[] = {name.data(), role.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, path.c_str(), rules.actions(), rules.attributes(), command, environment);
  if (error != 0) throw_errno_text(error, "start a nursery");
  return pid;
}

// Namespaces belong to threads, and this one ends with its errand.
pid_t start_program_in(const Namespaces& place, int program_fd, int channel_fd) {
  pid_t pid = 0;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      linux::enter_namespace(place.net.get(), CLONE_NEWNET);
      linux::enter_namespace(place.ipc.get(), CLONE_NEWIPC);
      linux::enter_namespace(place.uts.get(), CLONE_NEWUTS);
      pid = start_program(program_fd, channel_fd);
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return pid;
}

}  // namespace

Nursery::Nursery(int guest_program_fd, const guest::NurseryConfig& config, const Namespaces* place)
    : program_fd_(guest_program_fd), config_(config), place_(place) {
  OnFailure end_it([&] { end(); });
  start();
  end_it.release();
}

Nursery::~Nursery() {
  end();
}

void Nursery::start() {
  auto [ours, theirs] = linux::Channel::make_pair();
  const linux::Fd high = out_of_the_way(theirs.fd());
  theirs = linux::Channel();
  pid_ = place_ == nullptr ? start_program(program_fd_, high.get())
                           : start_program_in(*place_, program_fd_, high.get());
  channel_ = std::move(ours);
  channel_.send(encode(config_));
  const auto answer = channel_.receive(Deadline::after(kPatience));
  if (!answer) fail(Code::internal, "a nursery ended before it was ready");
  if (answer->bytes != guest::kReady) fail(Code::internal, "a nursery: {}", answer->bytes);
}

void Nursery::end() {
  channel_ = linux::Channel();  // which is its sign to end
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

// Between two orders it has nothing to say. If it does, it hung up, or answers one that nobody
// waits for any more.
bool Nursery::is_usable() const {
  pollfd looking{.fd = channel_.fd(), .events = POLLIN, .revents = 0};
  return channel_ && ::poll(&looking, 1, 0) == 0;
}

linux::Forked Nursery::order(const guest::ShellOrder& order, std::span<const int> fds) {
  const std::lock_guard lock(mutex_);
  busy_ = true;
  const OnFailure free_again([&] { busy_ = false; });  // in any case
  if (!is_usable()) {
    log::warning("a nursery died; starting another", {{"pid", pid_}});
    end();
    start();
  }
  const std::string text = encode(order);
  channel_.send(text, fds);
  auto answer = channel_.receive(Deadline::after(kPatience));
  // Not said again to the next one: something may have been born already.
  if (!answer) fail(Code::unavailable, "a nursery died while it made a sandbox; try again");
  const std::string& bytes = answer->bytes;
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), pid);
  if (error != std::errc() || pid <= 0 || answer->fds.size() != 1)
    fail(Code::internal, "{}", bytes);
  return {.pid = pid, .pidfd = linux::Pidfd(std::move(answer->fds.front()))};
}

Nurseries::Nurseries(linux::Fd guest_program, guest::NurseryConfig config, unsigned count)
    : program_(out_of_the_way(guest_program.get())),
      config_(std::move(config)),
      joined_config_(config_) {
  joined_config_.joined = true;
  for (unsigned i = 0; i < count; ++i)
    all_.push_back(std::make_unique<Nursery>(program_.get(), config_));
}

std::unique_ptr<Nursery> Nurseries::start_in(const Namespaces& place) const {
  return std::make_unique<Nursery>(program_.get(), joined_config_, &place);
}

linux::Forked Nurseries::order(const guest::ShellOrder& order, std::span<const int> fds) {
  for (const auto& nursery : all_) {
    if (!nursery->busy()) return nursery->order(order, fds);
  }
  return all_[turn_++ % all_.size()]->order(order, fds);
}

}  // namespace hearth::runtime
