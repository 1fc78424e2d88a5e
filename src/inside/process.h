// One command of the table in processes.h.
#pragma once

#include <poll.h>

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "guest/awake.h"
#include "inside/processes.h"
#include "linux/fd.h"

namespace hearth::inside {

// As poll(2). Where there is nothing yet, what the listener holds back goes out before the wait.
void poll_and_flush(std::span<pollfd> waits, int milliseconds, const Listener& listener);

class Process {
 public:
  // Starts it. Throws Error.
  Process(guest::Connection connection, StartOrder order);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() = default;

  std::uint32_t pid() const { return pid_; }
  const CommandConfig& config() const { return config_; }
  const std::optional<std::string>& tag() const { return tag_; }
  bool has_terminal() const { return has_terminal_; }

  // Nothing while it runs, or its output is not over.
  std::optional<ProcessEnd> end() const;
  // It has ended, or was killed and is no more: whether or not a slow listener has heard of it.
  bool is_gone() const;

  // From now on; nothing that was written before.
  Heard listen(const Listener& listener);

  // Throws Error(internal) for input that it does not have (any more). Blocks while the command
  // does not read; gives up when the other end of the socket `peer_fd` is gone.
  void write(Stream stream, std::string_view bytes, int peer_fd);
  // Throws Error(conflict) for a terminal, whose input has no end.
  void close_input();

  // Throws Error(invalid) for what has no terminal.
  void resize(std::uint16_t rows, std::uint16_t columns);

  // To the command alone, not to its children. From then on its end does not wait for them to let
  // go of its output. SIGKILL: returns when it is gone.
  void send_signal(int signal);

  // For who reads its output: what to wait for, how long at most (in milliseconds; -1: for ever),
  // and what to do then.
  static constexpr std::size_t kWaits = 4;
  std::size_t add_waits(std::span<pollfd> waits) const;
  int patience() const;
  enum class Pumped { nothing, output, over };
  // `own` gets what is read without a detour.
  Pumped pump(std::span<const pollfd> waits, const Listener* own);

  guest::AwakeClock::Moment ended_at() const;
  // When it is over, to be used for another; nothing if it broke.
  std::optional<guest::Connection> take_connection();

 private:
  struct Chunk {
    Stream stream;
    std::string bytes;
  };
  struct Seat {  // of a listener
    linux::Fd bell;
    bool waits = false;  // the published chunk waits to be taken
  };

  void ring() const;
  void start(const StartOrder& order);
  bool read_stream(Stream stream, linux::Fd& fd, const Listener* own);
  bool read_all_there_is(const Listener* own);
  void publish(Stream stream, std::string_view bytes);
  void read_exit();
  bool is_over(const Listener* own);
  bool is_open() const { return output_ || error_ || terminal_; }
  void finish();
  std::shared_ptr<linux::Fd> input() const;
  std::shared_ptr<const Chunk> take_chunk(Seat& seat);
  void leave(std::list<Seat>::iterator seat);
  bool may_read() const;
  bool is_hurried() const;
  bool is_exit_told() const;

  guest::Connection connection_;
  CommandConfig config_;
  std::optional<std::string> tag_;
  bool has_terminal_ = false;
  std::uint32_t pid_ = 0;

  // Of the thread that reads.
  linux::Fd output_;
  linux::Fd error_;
  linux::Fd terminal_;
  std::optional<ProcessEnd> exit_;
  // The server keeps it until the command has exited; then it is about who holds its output.
  guest::AwakeDeadline deadline_;
  Deadline terminal_patience_ = Deadline::never();
  int last_reads_ = 0;  // that may follow, when it has exited
  std::size_t buffer_size_ = 0;
  std::unique_ptr<char[]> buffer_;  // not filled before it is read into: most of it never is
  linux::Fd bell_;                  // rung for it

  bool connection_broke_ = false;

  std::mutex input_mutex_;  // one writer at a time

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable exited_;
  std::shared_ptr<linux::Fd> input_;  // none: closed, or there never was one
  bool has_exited_ = false;
  bool hurried_ = false;  // by a signal
  bool killed_ = false;   // and gone
  std::optional<ProcessEnd> end_;
  guest::AwakeClock::Moment ended_at_;
  std::list<Seat> seats_;
  std::shared_ptr<const Chunk> chunk_;  // the last that was published
  std::size_t waited_for_ = 0;          // seats that have not taken it
};

}  // namespace hearth::inside
