// The runtime as seen from every other process: one connection to hearth-runtime.
#pragma once

#include <mutex>
#include <string>

#include "linux/channel.h"
#include "runtime/protocol.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

class RuntimeClient final : public Runtime {
 public:
  // Throws Error(unavailable) when no runtime serves the state folder, forbidden when it is not
  // ours to use.
  explicit RuntimeClient(const std::string& state_dir);

  Created create(const SandboxSpec& spec) override;
  linux::Channel connect(const std::string& id) override;
  void destroy(const std::string& id) override;
  Sandbox get(const std::string& id) override;
  std::vector<Sandbox> list() override;

  Hello hello();

  // Ends the runtime, with all sandboxes or leaving them alive. Returns when it is over.
  void shut_down(bool destroy_all);

  // Readable when the runtime is gone.
  int fd() const { return channel_.fd(); }

 private:
  linux::Message ask(const Request& request);

  std::mutex mutex_;  // one conversation at a time on channel_
  linux::Channel channel_;
};

}  // namespace hearth::runtime
