#include "inside/processes.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/on_failure.h"
#include "guest/awake.h"
#include "inside/process.h"

namespace hearth::inside {
namespace {

using namespace std::chrono_literals;

// How long after its end a command can still be asked how it ended; a pause is no part of it.
constexpr Duration kRetained = guest::AwakeClock::kKeptAfterEnd;
// More than so many, and those that have ended are forgotten at once.
constexpr std::size_t kMostKept = 4096;
// Connections to the server that wait for the next command.
constexpr std::size_t kIdleConnections = 8;

int sooner(int one, int other) {
  if (one < 0 || other < 0) return std::max(one, other);
  return std::min(one, other);
}

}  // namespace

// One thread that reads for all commands whose starter has stopped listening.
class Keeper {
 public:
  using Over = std::function<void(Process&)>;

  explicit Keeper(Over over)
      : over_(std::move(over)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!bell_) throw_errno("make an eventfd");
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    arriving_.with([](Arriving& arriving) { arriving.stopping = true; });
    ring();
    if (thread_.joinable()) thread_.join();
  }

  void adopt(std::shared_ptr<Process> process) {
    arriving_.with([&](Arriving& arriving) {
      arriving.processes.push_back(std::move(process));
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    });
    ring();
  }

 private:
  struct Arriving {
    std::vector<std::shared_ptr<Process>> processes;
    bool stopping = false;
  };

  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = ::write(bell_.get(), &one, sizeof one);
  }

  // False when it is time to end.
  bool take_arrivals() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(bell_.get(), &count, sizeof count);
    return arriving_.with([this](Arriving& arriving) {
      std::ranges::move(arriving.processes, std::back_inserter(kept_));
      arriving.processes.clear();
      return !arriving.stopping;
    });
  }

  void run() {
    std::vector<pollfd> waits;
    std::vector<std::size_t> counts;
    while (take_arrivals()) {
      waits.assign(1, {.fd = bell_.get(), .events = POLLIN, .revents = 0});
      counts.clear();
      int patience = -1;
      for (const auto& process : kept_) {
        std::array<pollfd, Process::kWaits> own{};
        counts.push_back(process->add_waits(own));
        waits.insert(waits.end(), own.begin(), own.begin() + counts.back());
        patience = sooner(patience, process->patience());
      }
      ::poll(waits.data(), waits.size(), patience);
      std::span<const pollfd> rest = std::span(waits).subspan(1);
      std::size_t i = 0;
      std::erase_if(kept_, [&](const std::shared_ptr<Process>& process) {
        const bool is_over = process->pump(rest.first(counts[i]), nullptr) == Process::Pumped::over;
        rest = rest.subspan(counts[i++]);
        if (is_over) over_(*process);
        return is_over;
      });
    }
  }

  const Over over_;
  linux::Fd bell_;
  Guarded<Arriving> arriving_;
  std::thread thread_;                          // guarded by arriving_
  std::vector<std::shared_ptr<Process>> kept_;  // of the thread
};

Processes::Processes(guest::Core& core) : core_(core) {
  keeper_ = std::make_unique<Keeper>([this](Process& process) { retire(process); });
  // For the first command: whoever knocks is about to ask for one.
  prepare_connection();
}

Processes::~Processes() = default;

void Processes::prepare_connection() {
  idle_.with([&](std::vector<guest::Connection>& idle) {
    if (idle.empty()) idle.push_back(core_.connect());
  });
}

std::shared_ptr<Process> Processes::start(StartOrder order) {
  forget_old();
  // What fails takes its connection along: the next command shall find another.
  OnFailure refill([this] { prepare_connection(); });
  auto idle = idle_.with([](std::vector<guest::Connection>& connections) {
    std::optional<guest::Connection> last;
    if (connections.empty()) return last;
    last.emplace(std::move(connections.back()));
    connections.pop_back();
    return last;
  });
  auto process =
      std::make_shared<Process>(idle ? std::move(*idle) : core_.connect(), std::move(order));
  table_.with([&](auto& table) { table[process->pid()] = process; });
  refill.release();
  return process;
}

void Processes::retire(Process& process) {
  auto connection = process.take_connection();
  if (!connection) return;
  idle_.with([&](std::vector<guest::Connection>& connections) {
    if (connections.size() < kIdleConnections) connections.push_back(std::move(*connection));
  });
}

Heard Processes::listen_as_starter(const std::shared_ptr<Process>& process,
                                   const Listener& listener) {
  OnFailure hand_over([&] { keeper_->adopt(process); });
  listener.begin();
  Deadline idle = Deadline::after(listener.idle_after);
  while (true) {
    std::array<pollfd, Process::kWaits + 1> waits{};
    const std::size_t count = process->add_waits(waits);
    pollfd& peer = waits[count];
    peer = {.fd = listener.peer_fd, .events = POLLRDHUP, .revents = 0};
    const int patience = sooner(idle.poll_milliseconds(), listener.deadline.poll_milliseconds());
    poll_and_flush(std::span(waits).first(count + 1), sooner(patience, process->patience()),
                   listener);
    switch (process->pump(std::span(waits).first(count), &listener)) {
      case Process::Pumped::over:
        hand_over.release();
        retire(*process);
        return Heard::end;
      case Process::Pumped::output:
        idle = Deadline::after(listener.idle_after);
        break;
      case Process::Pumped::nothing:
        break;
    }
    if ((peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return Heard::peer_left;
    if (listener.deadline.passed()) return Heard::deadline;
    if (!idle.passed()) continue;
    listener.idle();
    idle = Deadline::after(listener.idle_after);
  }
}

void Processes::forget_old() {
  const auto limit = guest::AwakeClock::here().now() - kRetained;
  table_.with([&](auto& table) {
    const bool is_full = table.size() > kMostKept;
    std::erase_if(table, [&](const auto& each) {
      return each.second->end() && (is_full || each.second->ended_at() < limit);
    });
  });
}

std::vector<std::shared_ptr<Process>> Processes::list() {
  forget_old();
  std::vector<std::shared_ptr<Process>> running;
  table_.with([&](const auto& table) {
    for (const auto& [pid, process] : table) {
      if (!process->is_gone()) running.push_back(process);
    }
  });
  return running;
}

std::shared_ptr<Process> Processes::find(std::uint32_t pid) {
  forget_old();
  return table_.with([&](const auto& table) {
    const auto found = table.find(pid);
    if (found == table.end()) fail(Code::not_found, "process with pid {} not found", pid);
    return found->second;
  });
}

std::shared_ptr<Process> Processes::find(const std::string& tag) {
  forget_old();
  return table_.with([&](const auto& table) {
    std::shared_ptr<Process> best;
    // One that runs before one that has ended.
    for (const auto& [pid, process] : table) {
      if (process->tag() == tag && (!best || best->end())) best = process;
    }
    if (!best) fail(Code::not_found, "process with tag {} not found", tag);
    return best;
  });
}

}  // namespace hearth::inside
