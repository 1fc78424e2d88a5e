// Reads a sandbox's log for one who wants to see it: what is on disk comes first, then what the
// guest still has in its memory. Whoever follows a flood too slowly finds on disk what the guest
// has forgotten meanwhile.
//
// Blocking; one thread, which another one may stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/guarded.h"
#include "guest/protocol.h"
#include "runtime/client.h"
#include "runtime/log_printer.h"

namespace hearth::runtime {

class LogReader {
 public:
  // Told where so many bytes are missing.
  using Lost = std::function<void(std::uint64_t bytes)>;

  // `printer` must outlive the reader.
  LogReader(const std::string& state_dir, std::string id, LogPrinter& printer, Lost lost);

  // All that there is; and with `follow` what comes, for as long as the sandbox lives. A sandbox
  // that is gone or does not answer has what is on disk. Throws Error(not_found) when there is no
  // such sandbox, and what the printer throws.
  void read(bool follow);

  // From any thread: read() returns soon.
  void stop();

 private:
  void read_disk();
  void read_guest(bool follow);
  void show(const guest::Output& piece);

  std::string id_;
  LogPrinter& printer_;
  Lost lost_;
  RuntimeClient runtime_;
  std::uint64_t position_ = 0;
  bool begun_ = false;   // before the first piece nothing can be missing
  bool looked_ = false;  // on disk, for what was missing
  std::atomic<bool> stopped_ = false;
  Guarded<int> guest_fd_{-1};  // of the connection that is waited for
};

}  // namespace hearth::runtime
