// What the API server's remote subresources ask of this machine's sandboxes.
#pragma once

#include <string>

#include "remote/backend.h"

namespace hearth::node {

// A container is a sandbox. Connects to hearth-runtime for each call: a runtime that was restarted
// meanwhile is as good as the one before.
class RuntimeBackend final : public remote::Backend {
 public:
  RuntimeBackend(std::string state_dir, net::Workers& workers)
      : state_dir_(std::move(state_dir)), workers_(workers) {}

  net::Workers* workers() override { return &workers_; }
  remote::Command start(const remote::Container& container, const std::vector<std::string>& command,
                        const remote::Streams& streams) override;
  remote::Command attach(const remote::Container& container,
                         const remote::Streams& streams) override;
  linux::Fd connect(const remote::Container& container, std::uint16_t port) override;
  std::unique_ptr<remote::LogFeed> open_log(const remote::Container& container,
                                            const remote::LogOptions& options) override;

 private:
  std::string state_dir_;
  net::Workers& workers_;
};

}  // namespace hearth::node
