// Copies of all objects for whoever may GET /hearth/backup.
//
// A copy is made in the state folder, and loses its name before the first byte is sent: a client
// that goes away leaves nothing behind, however it goes. Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "linux/fd.h"
#include "net/workers.h"
#include "store/store.h"

namespace hearth::net {
class Stream;
}

namespace hearth::apiserver {

inline constexpr std::string_view kBackupPath = "/hearth/backup";

class Backups {
 public:
  // Removes what an earlier life, killed while it copied, left in `folder`. The store must outlive
  // it.
  Backups(store::Store& store, std::string folder);

  // A file without a name. Blocks. Throws StatusError 429 while another copy is made, and what
  // Store::backup() throws.
  linux::Fd copy();
  // A whole answer; reads the file on `workers`.
  static boost::asio::awaitable<void> send(linux::Fd file, net::Stream& stream,
                                           net::Workers& workers);

 private:
  store::Store& store_;
  const std::string path_;
  std::mutex mutex_;  // held while path_ is in use
};

}  // namespace hearth::apiserver
