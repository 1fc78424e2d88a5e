// One cell in one kernel, from its first byte to its end: everything the kernel says and writes
// becomes events, in order, and no faster than the client reads.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "interpreter/event_stream.h"
#include "interpreter/kernel.h"

namespace hearth::interpreter {

class CellRun {
 public:
  // All must outlive the run. `bell_fd` becomes readable when the run is to stop.
  CellRun(Kernel& kernel, EventStream& stream, int bell_fd, std::uint32_t count)
      : kernel_(kernel), stream_(stream), bell_fd_(bell_fd), count_(count) {}

  enum class Outcome {
    done,         // the kernel takes the next cell
    kernel_lost,  // it ended, or does not react
    stopped,      // by the bell
  };
  // When the client leaves, the cell is interrupted and what it still says dropped.
  Outcome run(std::string message);

 private:
  struct Ready {
    bool control = false;
    bool outputs = false;
    bool bell = false;
    bool nothing = false;
  };

  bool is_over() const { return ended_ || lost_; }
  void spin();
  void step();
  Ready wait();
  int wait_milliseconds() const;
  void send();
  void read_control();
  void handle(const Frame& frame);
  void read_outputs(int most_reads);
  bool read_output(OutputPipe& pipe);
  void flush_tails();
  void report_end();
  void keep_time(bool was_quiet);
  void consider_interrupt();
  void settle();

  Kernel& kernel_;
  EventStream& stream_;
  const int bell_fd_;
  const std::uint32_t count_;
  std::string to_send_;
  bool ended_ = false;
  bool lost_ = false;
  bool rung_ = false;
  std::chrono::steady_clock::time_point unsent_since_;
  // Once the client has left:
  bool interrupting_ = false;
  Deadline next_signal_ = Deadline::never();
  Deadline give_up_ = Deadline::never();
};

}  // namespace hearth::interpreter
