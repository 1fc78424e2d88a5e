// hearth-runtime's front: answers requests on its socket with a LinuxRuntime behind it.
//
// A thread a connection, a bounded number of them: calls block in the kernel, and there are few
// clients. Only root and the engine's own user are served, whatever the socket's mode says.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "linux/channel.h"
#include "linux/fd.h"
#include "runtime/linux_runtime.h"
#include "runtime/protocol.h"

namespace hearth::runtime {

class Daemon {
 public:
  // Both must outlive it. `listen_fd` is a listening socket, borrowed.
  Daemon(LinuxRuntime& runtime, int listen_fd, uid_t owner);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() = default;

  // Serves until a client asks for the end, or stop() is called. When it returns no request is
  // being served any more.
  void run();

  // From any thread or signal handler.
  void stop() noexcept;

  // How many there are now.
  int connections() const { return connections_; }

 private:
  // What belongs to a connection, and ends with it.
  struct Session;

  std::optional<linux::Channel> accept();
  static void refuse(linux::Channel& channel);
  void serve(linux::Channel channel);
  void answer(Session& session, linux::Message message);
  Reply handle(const Request& request, Session& session, std::vector<linux::Fd> fds);
  Reply handle_sandbox(const Request& request, Session& session);
  Reply handle_image(const Request& request, Session& session, std::vector<linux::Fd> fds);
  Hello hello() const;

  LinuxRuntime& runtime_;
  int listen_fd_;
  uid_t owner_;
  linux::Fd stop_;   // eventfd, readable when it is over
  linux::Fd spare_;  // for a moment of want
  std::atomic<int> connections_ = 0;
};

}  // namespace hearth::runtime
