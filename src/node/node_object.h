// This machine as the API sees it: its Node, and the Lease that says it is alive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "image/image.h"
#include "model/json.h"
#include "node/pressure.h"

namespace hearth::node {

using model::Json;

// What does not change while we run.
struct NodeFacts {
  std::string name;
  std::string hostname;
  std::string address;
  std::string architecture;  // as images say it: amd64
  std::string kernel;
  std::string os_image;
  std::string boot_id;
  std::string machine_id;
  std::string version;          // of the API that we speak: "v1.36.0+hearth"
  std::string runtime_version;  // "hearth://0.1.0"
  std::uint32_t cpus = 1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint32_t pods = 16384;  // as many as there are network slots (network/network.h)
};

// Of this machine. Disks are those that `state_dir` is on.
NodeFacts read_node_facts(const std::string& state_dir);

// Pure. Conditions keep their transition times where they are as in `before` (the Node, or null).
Json node_status(const NodeFacts& facts, const NodePressure& pressure,
                 const std::vector<image::Image>& images, const Json& before, Time now);

struct NodeReporterOptions {
  NodeFacts facts;
  // Asked every `look_period`; what it says is told at once. None: nothing is ever short.
  std::function<NodePressure()> pressure;
  Duration look_period = std::chrono::seconds(2);
  // Whether what is short becomes a taint. Not where a cluster's controllers do that.
  bool taints = false;
  Duration lease_life = std::chrono::seconds(40);
  Duration lease_period = std::chrono::seconds(10);
  // At most this long without a word, even if nothing changed.
  Duration status_period = std::chrono::minutes(5);
  std::function<std::vector<image::Image>()> images;  // or none
};

// Makes the Node when it is not there, and keeps it and its Lease up to date, on a thread of its
// own from start() on.
class NodeReporter {
 public:
  // Both must outlive it.
  NodeReporter(client::Client& client, const Clock& clock, NodeReporterOptions options);
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;
  ~NodeReporter() { stop(); }

  // Registers on the calling thread, so that pods can be bound as soon as it returns; throws Error.
  void start();
  // Idempotent.
  void stop();

  // What the thread does now and then.
  void renew_lease();
  void report();

 private:
  void run(const std::stop_token& stop);
  Json ensure_node();
  void keep_taints(const Json& node);

  client::Client& client_;
  const Clock& clock_;
  const NodeReporterOptions options_;
  Time reported_;
  Time renewed_;
  NodePressure pressure_;
  Json last_status_;
  std::jthread thread_;
};

}  // namespace hearth::node
