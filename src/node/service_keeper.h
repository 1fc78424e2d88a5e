// Keeps the addresses of Services leading to the pods of this node, their EndpointSlices written,
// and their names answered, as Services and pods come and go. A thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/watch_cache.h"
#include "node/service_map.h"
#include "runtime/client.h"

namespace hearth::node {

struct ServiceKeeperOptions {
  std::string state_dir;  // of the runtime
  std::string domain = "cluster.local";
  // Who answers names, on this port of the gateway; 0: nobody.
  std::uint16_t name_server = 0;
  std::function<void(Names names)> on_names = {};
};

class ServiceKeeper {
 public:
  // All must outlive it. The caches are not started yet; whoever made them starts them.
  ServiceKeeper(client::Client& client, client::WatchCache& pods, client::WatchCache& services,
                ServiceKeeperOptions options);
  ServiceKeeper(const ServiceKeeper&) = delete;
  ServiceKeeper& operator=(const ServiceKeeper&) = delete;
  ~ServiceKeeper() { stop(); }

  // Before start().
  void answer_names(std::uint16_t port, std::function<void(Names names)> on_names);
  void start();
  // Idempotent.
  void stop();

 private:
  void note();
  void run(const std::stop_token& stop);
  void tell_runtime(std::vector<network::Service> rules);
  bool is_runtime_gone() const;
  void write_slices(std::span<const client::Object> services, const PodIndex& pods);
  void write_slice(const Json& wanted);

  client::Client& client_;
  client::WatchCache& pods_;
  client::WatchCache& services_;
  ServiceKeeperOptions options_;
  client::WatchCache slices_;

  // The worker's.
  std::unique_ptr<runtime::RuntimeClient> runtime_;
  std::vector<network::Service> told_;

  std::mutex mutex_;
  std::condition_variable_any news_;
  bool has_changed_ = true;
  std::jthread thread_;
};

}  // namespace hearth::node
