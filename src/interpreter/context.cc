#include "interpreter/context.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "guest/command_line.h"
#include "interpreter/cell_run.h"

namespace hearth::interpreter {
namespace {

using namespace std::chrono_literals;

// How often who waits for a turn looks whether his client is still there.
constexpr Duration kLook = 500ms;
constexpr Duration kKeepAlive = 5s;

// A cell that is to stop may be held up by a client that does not read.
constexpr Duration kClientPatience = 5s;

// The turn, given back at the end.
class Turn {
 public:
  explicit Turn(Turnstile& turnstile) : turnstile_(turnstile) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { turnstile_.leave(); }

 private:
  Turnstile& turnstile_;
};

// What a process of the sandbox has: PATH, HOME and others also where nobody gave them.
std::vector<std::string> environment_of_processes(const guest::Settings& settings) {
  const std::vector<std::string> given = guest::environment_for_commands(settings);
  const guest::ProcessRights rights;
  return guest::plan_command({.command = {"cell"}}, {.environment = given,
                                                     .user = settings.user,
                                                     .directory = settings.directory,
                                                     .limits = {},
                                                     .rights = rights})
      .environment;
}

// What becomes of the request's variables afterwards: the sandbox's value, or none.
void plan_resets(Cell& cell, const guest::Settings& settings) {
  if (cell.sets.empty()) return;
  const std::vector<std::string> environment = environment_of_processes(settings);
  for (const auto& [name, value] : cell.sets) {
    const std::string start = name + '=';
    const auto global = std::ranges::find_if(
        environment, [&](const std::string& entry) { return entry.starts_with(start); });
    if (global == environment.end()) {
      cell.reset_unsets.push_back(name);
    } else {
      cell.resets.emplace_back(name, global->substr(start.size()));
    }
  }
}

void add_removal(EventStream& stream) {
  stream.add_error("ExecutionAborted", "Context was removed", "");
}

// To a client who waited so long that he is streamed to.
void add_refusal(EventStream& stream, const Error& error) {
  if (error.code() == Code::not_found) return add_removal(stream);
  stream.add_error("UnexpectedEndOfExecution", error.what(), "");
}

}  // namespace

bool Turnstile::enter(bool first, const std::function<bool()>& still_there) {
  std::unique_lock lock(mutex_);
  if (!busy_) {
    busy_ = true;
    return true;
  }
  Waiter waiter;
  waiters_.insert(first ? waiters_.begin() : waiters_.end(), &waiter);
  while (!waiter.has_turn) {
    changed_.wait_for(lock, kLook);
    if (waiter.has_turn) break;
    lock.unlock();
    const bool stays = still_there();
    lock.lock();
    if (!stays && !waiter.has_turn) {
      std::erase(waiters_, &waiter);
      return false;
    }
  }
  return true;
}

void Turnstile::leave() {
  const std::lock_guard lock(mutex_);
  if (waiters_.empty()) {
    busy_ = false;
    return;
  }
  waiters_.front()->has_turn = true;
  waiters_.pop_front();
  changed_.notify_all();
}

Context::Context(guest::Core& core, std::string id, std::string language, std::string directory)
    : core_(core),
      id_(std::move(id)),
      language_(std::move(language)),
      directory_(std::move(directory)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_) throw_errno("make an eventfd");
}

Kernel& Context::ready_kernel() {
  if (wanted_ == Wanted::removal) fail(Code::not_found, "Context {} not found", id_);
  if (kernel_ && !kernel_->is_alive()) kernel_.reset();
  if (kernel_) return *kernel_;
  try {
    kernel_ = std::make_unique<Kernel>(core_, kit_for(language_), directory_);
  } catch (const Error& error) {
    // A program that is not there is "not found" to us; to clients that is a context.
    throw Error(Code::internal, error.what());
  }
  return *kernel_;
}

void Context::warm_up() {
  if (!turnstile_.enter(false, [] { return true; })) return;
  const Turn turn(turnstile_);
  ready_kernel();
}

bool Context::wait_for_turn(serve::Exchange& exchange, EventStream& stream) {
  return turnstile_.enter(false, [&] {
    if (exchange.peer_left()) stream.set_client_left();
    if (std::chrono::steady_clock::now() - stream.last_sent() >= kKeepAlive) stream.keep_alive();
    return !stream.client_left();
  });
}

void Context::execute(serve::Exchange& exchange, std::string code, const Variables& variables) {
  EventStream stream(exchange);
  if (!wait_for_turn(exchange, stream)) return exchange.abandon();
  const Turn turn(turnstile_);
  try {
    ready_kernel();
  } catch (const Error& error) {
    if (!exchange.begun()) throw;
    add_refusal(stream, error);
    return stream.finish();
  }
  run(stream, std::move(code), variables);
  stream.finish();
}

void Context::run(EventStream& stream, std::string code, const Variables& variables) {
  const guest::Settings settings = core_.settings();
  const std::vector<std::string> environment = guest::environment_for_commands(settings);
  Cell cell{.count = kernel_->next_count(),
            .language = language_,
            .code = std::move(code),
            .sets = variables};
  plan_resets(cell, settings);
  const std::uint32_t count = cell.count;
  std::string message = kernel_->message_for(std::move(cell), environment);
  stream.add_execution_count(count);
  {
    const std::lock_guard lock(client_mutex_);
    client_fd_ = stream.client_fd();
  }
  const auto outcome = CellRun(*kernel_, stream, bell_.get(), count).run(std::move(message));
  {
    const std::lock_guard lock(client_mutex_);
    client_fd_ = -1;
  }
  if (outcome != CellRun::Outcome::done) kernel_.reset();
  if (outcome != CellRun::Outcome::stopped) return;
  if (wanted_ == Wanted::removal) {
    add_removal(stream);
  } else {
    stream.add_error("ContextRestarting", "Context was restarted", "");
  }
}

// With the turn on return, and without a kernel.
void Context::end_kernel(Wanted why) {
  Wanted before = wanted_;
  while (before != Wanted::removal && !wanted_.compare_exchange_weak(before, why)) {
  }
  ring();
  const Deadline patience = Deadline::after(kClientPatience);
  turnstile_.enter(true, [&] {
    ring();  // another who came at the same time may have silenced it
    const std::lock_guard lock(client_mutex_);
    if (patience.passed() && client_fd_ >= 0) ::shutdown(client_fd_, SHUT_RDWR);
    return true;
  });
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t silenced = ::read(bell_.get(), &count, sizeof count);
  kernel_.reset();
}

void Context::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t rung = ::write(bell_.get(), &one, sizeof one);
}

void Context::restart() {
  end_kernel(Wanted::restart);
  const Turn turn(turnstile_);
  Wanted before = Wanted::restart;
  wanted_.compare_exchange_strong(before, Wanted::nothing);
  ready_kernel();
}

void Context::remove() {
  end_kernel(Wanted::removal);
  const Turn turn(turnstile_);
}

}  // namespace hearth::interpreter
