#include "runtime/log_keeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "linux/channel.h"
#include "linux/files.h"
#include "runtime/shell.h"

namespace hearth::runtime {
namespace {

using namespace std::chrono_literals;

// A guest sends less; a larger piece comes from something else.
constexpr std::size_t kMostPiece = std::size_t{64} << 10;
// What one sandbox may make us write in a second; its commands wait for the rest. More than people
// read, less than what makes a disk slow for its neighbours.
constexpr std::uint64_t kBytesPerSecond = std::uint64_t{8} << 20;
// What a message costs besides its bytes: a wake-up, a write, perhaps a new file.
constexpr std::uint64_t kMessageCost = 256;
constexpr Duration kTick = 1s;
// Folders for those that come, with a file each that is empty: making both on a disk takes longer
// than anything else that a sandbox needs. Of logs that nobody has opened: whoever has may still
// have the file, and would read in it what the next one writes.
constexpr std::string_view kSpare = ".spare-";
constexpr std::size_t kMostSpares = 256;
// Below everything that somebody waits for.
constexpr int kNiceness = 10;

}  // namespace

struct LogKeeper::Kept {
  std::mutex mutex;  // guards everything below
  std::string unit;
  std::uint64_t tag = 0;
  LogLimits limits;
  std::unique_ptr<LogWriter> writer;
  linux::Channel guest;     // none: gone, or to be tried again
  std::uint64_t spent = 0;  // of this second's allowance
  bool throttled = false;   // not watched until the next second
  bool try_again = false;   // at the next second
  bool complained = false;  // said once why it cannot be written
  bool was_opened = false;  // somebody has, or had, its files
};

LogKeeper::LogKeeper(int logs_fd, int sandboxes_fd)
    : logs_fd_(logs_fd), sandboxes_fd_(sandboxes_fd) {
  logs_.with([&](Logs& logs) {
    for (std::string& unit : linux::list_folder(logs_fd)) {
      if (unit.starts_with(kSpare))
        linux::remove_all_at(logs_fd, unit);
      else
        logs.folders.insert(std::move(unit));
    }
  });
}

LogKeeper::~LogKeeper() {
  try {
    logs_.with([&](const Logs& logs) {
      for (const std::string& spare : logs.spares) linux::remove_all_at(logs_fd_, spare);
    });
  } catch (const Error& error) {
    log::warning("spare folders of logs stay until the next start", {{"error", error.what()}});
  }
  if (!thread_.joinable()) return;
  thread_.request_stop();
  const linux::Fd wake(::eventfd(1, EFD_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake.get(), &event);
  thread_.join();
}

// With the lock of logs_ held.
void LogKeeper::start_thread() {
  if (thread_.joinable()) return;
  epoll_ = linux::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) throw_errno("make an epoll");
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

void LogKeeper::keep(const std::string& unit, const LogLimits& limits) {
  auto kept = std::make_shared<Kept>();
  const std::lock_guard lock(kept->mutex);
  const bool is_new = logs_.with([&](Logs& logs) {
    if (logs.kept.contains(unit)) return false;
    start_thread();
    kept->tag = logs.next_tag++;
    logs.kept.emplace(unit, kept);
    logs.by_tag.emplace(kept->tag, kept);
    logs.folders.insert(unit);
    return true;
  });
  if (!is_new) return;
  kept->unit = unit;
  kept->limits = limits;
  try {
    kept->writer = std::make_unique<LogWriter>(make_folder(*kept), limits);
    if (!connect(*kept)) fail(Code::unavailable, "the sandbox's guest is gone");
  } catch (...) {
    forget(unit);
    throw;
  }
}

// Or opens the one that is there, of an earlier life of ours: who has its files is not known.
linux::Fd LogKeeper::make_folder(Kept& kept) {
  const std::string& unit = kept.unit;
  const std::string spare = logs_.with([](Logs& logs) {
    if (logs.spares.empty()) return std::string();
    std::string last = std::move(logs.spares.back());
    logs.spares.pop_back();
    return last;
  });
  const bool has_spare = !spare.empty() && ::renameat2(logs_fd_, spare.c_str(), logs_fd_,
                                                       unit.c_str(), RENAME_NOREPLACE) == 0;
  if (!has_spare) {
    if (!spare.empty()) linux::remove_all_at(logs_fd_, spare);
    kept.was_opened = ::mkdirat(logs_fd_, unit.c_str(), 0700) != 0;
    if (kept.was_opened && errno != EEXIST) throw_errno("make a folder for a log");
  }
  return linux::open_at(logs_fd_, unit, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

// With its lock held. True: its folder is gone by that name.
bool LogKeeper::make_spare(const Kept& kept) {
  if (kept.was_opened || !kept.writer || !kept.writer->leave_empty()) return false;
  const std::string spare = logs_.with([](Logs& logs) {
    return logs.spares.size() < kMostSpares ? fmt::format("{}{}", kSpare, logs.next_spare++)
                                            : std::string();
  });
  if (spare.empty() || ::renameat(logs_fd_, kept.unit.c_str(), logs_fd_, spare.c_str()) != 0)
    return false;
  logs_.with([&](Logs& logs) { logs.spares.push_back(spare); });
  return true;
}

void LogKeeper::forget(const std::string& unit) {
  logs_.with([&](Logs& logs) {
    const auto taken = logs.kept.extract(unit);
    if (taken) logs.by_tag.erase(taken.mapped()->tag);
  });
}

// False when there is nobody.
bool LogKeeper::connect(Kept& kept) {
  kept.try_again = false;
  try {
    const linux::Fd folder = linux::open_at(sandboxes_fd_, kept.unit, O_PATH | O_DIRECTORY);
    kept.guest = linux::connect_at(folder.get(), kGuestSocket);
  } catch (const Error&) {
    return false;
  }
  const guest::LogRequest request{.follow = true, .keep = true, .from = kept.writer->position()};
  // The first message into an empty buffer.
  if (!kept.guest.try_send(encode(guest::Request(request)))) return false;
  arm(kept, /*first=*/true);
  return true;
}

// For one event: one message, and then others have their turn.
void LogKeeper::arm(Kept& kept, bool first) const {
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = kept.tag}};
  const int operation = first ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (::epoll_ctl(epoll_.get(), operation, kept.guest.fd(), &event) != 0)
    throw_errno("watch a log");
}

bool LogKeeper::has(const std::string& unit) const {
  return logs_.with([&](const Logs& logs) { return logs.folders.contains(unit); });
}

std::shared_ptr<LogKeeper::Kept> LogKeeper::find_kept(const std::string& unit) const {
  return logs_.with([&](const Logs& logs) -> std::shared_ptr<Kept> {
    const auto found = logs.kept.find(unit);
    return found == logs.kept.end() ? nullptr : found->second;
  });
}

std::vector<LogFile> LogKeeper::open(const std::string& unit) const {
  if (!has(unit)) return {};
  const auto kept = find_kept(unit);
  std::unique_lock<std::mutex> lock;
  if (kept) {
    lock = std::unique_lock(kept->mutex);
    kept->was_opened = true;
  }
  const linux::Fd folder = linux::open_at(logs_fd_, unit, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return open_log_files(folder.get());
}

void LogKeeper::remove(const std::string& unit) {
  if (!has(unit)) return;
  const auto kept = find_kept(unit);
  forget(unit);
  bool is_spare = false;
  if (kept) {
    const std::lock_guard lock(kept->mutex);
    kept->guest = linux::Channel();
    kept->try_again = false;
    is_spare = make_spare(*kept);
    kept->writer.reset();
  }
  if (!is_spare) linux::remove_all_at(logs_fd_, unit);
  logs_.with([&](Logs& logs) { logs.folders.erase(unit); });
}

std::vector<std::string> LogKeeper::list() const {
  return logs_.with([](const Logs& logs) {
    return std::vector<std::string>(logs.folders.begin(), logs.folders.end());
  });
}

std::shared_ptr<LogKeeper::Kept> LogKeeper::find(std::uint64_t tag) {
  return logs_.with([&](const Logs& logs) -> std::shared_ptr<Kept> {
    const auto found = logs.by_tag.find(tag);
    return found == logs.by_tag.end() ? nullptr : found->second;
  });
}

void LogKeeper::serve(const std::stop_token& stop) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness);
  Deadline next_tick = Deadline::after(kTick);
  while (!stop.stop_requested()) {
    std::array<epoll_event, 64> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                   waits_ ? next_tick.poll_milliseconds() : -1);
    for (int i = 0; i < count; ++i) {
      const auto kept = find(events[static_cast<std::size_t>(i)].data.u64);
      if (!kept) continue;
      const std::lock_guard lock(kept->mutex);
      if (kept->guest) step(*kept);
    }
    if (!next_tick.passed()) continue;
    tick();
    next_tick = Deadline::after(kTick);
  }
}

void LogKeeper::step(Kept& kept) {
  try {
    take_message(kept);
    if (!kept.guest) return;
    kept.throttled = kept.spent > kBytesPerSecond;
    if (kept.throttled)
      waits_ = true;
    else
      arm(kept, /*first=*/false);
  } catch (const Error& error) {
    kept.guest = linux::Channel();
    // A disk may have room again; a guest that talks nonsense will go on with it.
    kept.try_again = error.code() != Code::invalid;
    waits_ = waits_ || kept.try_again;
    if (!kept.complained) {
      log::warning("a sandbox's log is not written",
                   {{"unit", kept.unit}, {"error", error.what()}});
    }
    kept.complained = true;
  }
}

void LogKeeper::take_message(Kept& kept) {
  linux::Message message;
  switch (kept.guest.try_receive(message)) {
    case linux::Channel::Arrival::nothing_yet:
      return;
    case linux::Channel::Arrival::hung_up:
      // It ended; or it waited for us for too long.
      kept.guest = linux::Channel();
      kept.try_again = true;
      waits_ = true;
      return;
    case linux::Channel::Arrival::message:
      break;
  }
  guest::Reply reply = guest::parse_reply(message.bytes);
  auto* output = std::get_if<guest::Output>(&reply);
  if (output == nullptr || output->bytes.empty() || output->bytes.size() > kMostPiece)
    fail(Code::invalid, "the guest sent something that is no piece of a log");
  output->time = std::clamp(output->time, Time{}, Time(std::chrono::system_clock::now()));
  const std::uint64_t before = kept.writer->written();
  kept.writer->write(*output);
  kept.spent += kMessageCost + kept.writer->written() - before;
  const guest::LogRequest written{.follow = true, .keep = true, .from = kept.writer->position()};
  // A full buffer is the guest's own doing: it hears of the next one.
  kept.guest.try_send(encode(guest::Request(written)));
}

// A new second.
void LogKeeper::tick() {
  waits_ = false;
  const auto all = logs_.with([](const Logs& logs) { return logs.kept; });
  for (const auto& [unit, kept] : all) {
    const std::lock_guard lock(kept->mutex);
    kept->spent = 0;
    try {
      if (kept->throttled && kept->guest) arm(*kept, /*first=*/false);
      kept->throttled = false;
      if (kept->try_again && kept->writer) connect(*kept);
    } catch (const Error& error) {
      log::debug("a log cannot be read", {{"unit", unit}, {"error", error.what()}});
    }
  }
}

}  // namespace hearth::runtime
