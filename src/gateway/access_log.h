// Who asked what of the gateway: a line of JSON for each request, when it is over
// (docs/gateway.md).
//
// Threads collect lines and hand them over in lots; one thread writes them. A disk that is slow or
// full costs lines, which are counted, and never a request. A file that was renamed or removed is
// made anew for the next lot. Credentials never go in: paths come without their queries, keys as
// their ids.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "linux/fd.h"

namespace hearth::metrics {
class Counter;
class Registry;
}  // namespace hearth::metrics

namespace hearth::gateway {

// One request. Borrows its texts.
struct AccessRecord {
  Time began = {};
  Duration took = {};
  std::string_view route;  // api, e2b, router, signature, health
  std::string_view ns;     // of the sandbox, or of the team that asks the API
  std::string_view sandbox;
  std::uint16_t port = 0;  // 0: none
  std::string_view method;
  std::string_view path;  // without its query; what is longer than kMostPathBytes is cut
  unsigned status = 0;
  std::uint64_t bytes_in = 0;  // of bodies and upgraded connections, as they were passed on
  std::uint64_t bytes_out = 0;
  std::string_view key;  // the id of the API key that was shown
  std::string_view peer;
  bool is_cut = false;  // it ended before its answer did
};

inline constexpr std::size_t kMostPathBytes = 512;
// So that a pipe takes any line at once or not at all (PIPE_BUF).
inline constexpr std::size_t kMostLineBytes = 4096;

// Adds the line to `lines`, with its newline.
void render_access(const AccessRecord& record, std::string& lines);

struct AccessFile {
  std::string path;  // "-": standard output
  linux::Fd fd;
};

// To append to. Throws Error when it cannot be opened.
AccessFile open_access_file(const std::string& path);

struct AccessLogOptions {
  AccessFile file;
  metrics::Registry* registry = nullptr;     // null: nobody counts
  std::size_t most_waiting_bytes = 8 << 20;  // what comes when so much waits is dropped
  // For what waits when it ends.
  Duration end_patience = std::chrono::seconds(1);
};

class AccessLog {
 public:
  explicit AccessLog(AccessLogOptions options);
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;
  ~AccessLog();

  // Whole lines. From any thread; waits for nobody.
  void take(std::string lines);

 private:
  void run();
  void write(std::string_view lines);
  // How many bytes were written; less than all of them: it failed, or its time is over.
  std::size_t write_piece(std::string_view piece);
  bool wait_writable() const;
  void follow_path();
  void drop(std::string_view lines);
  // Once for each spell.
  void complain(bool& has_complained, const char* what);

  AccessLogOptions options_;
  bool is_regular_ = false;
  bool is_torn_ = false;  // the last line in the file has no end
  bool has_failed_to_open_ = false;
  bool has_failed_to_write_ = false;
  metrics::Counter* written_ = nullptr;
  metrics::Counter* dropped_ = nullptr;
  std::mutex mutex_;  // guards waiting_
  std::condition_variable news_;
  std::string waiting_;
  // When it gives up, by the steady clock in nanoseconds; 0: it is not ending. Set under mutex_.
  std::atomic<std::int64_t> end_ = 0;
  std::thread writer_;
};

// Lines of one thread on their way to the log.
class AccessLines {
 public:
  explicit AccessLines(AccessLog& log) : log_(log) {}
  AccessLines(const AccessLines&) = delete;
  AccessLines& operator=(const AccessLines&) = delete;
  ~AccessLines() { hand_over(); }

  void add(const AccessRecord& record);
  // To be called now and then.
  void hand_over();

 private:
  AccessLog& log_;
  std::string lines_;
};

}  // namespace hearth::gateway
