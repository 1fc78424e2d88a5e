// Those who are measured on the page `kube`, and what they keep.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench/kube_servers.h"
#include "client/client.h"
#include "store/store.h"

namespace hearth::bench {

// A ConfigMap with 1 KiB of data, and where it is.
std::string config_map(std::string_view ns, std::string_view name, std::string_view extra);
std::string target_of(std::string_view ns, std::string_view name = {});
// New for everybody, always.
std::string new_name();

// What one does once, on a connection of its own.
struct Actor {
  std::function<void()> create;  // something new
  std::function<void()> update;  // the same again and again
  std::function<void()> get;     // that
};

// Whatever they are made from must outlive them; `value` is what stands for a ConfigMap.
Actor hearth_actor(const ApiServer& server);
Actor local_actor(client::Client& client);
Actor store_actor(store::Store& store, const std::string& value);
Actor etcd_actor(const Etcd& etcd, const std::string& value);

// How many writes a second they get through together, each on a thread of its own. Throws Error.
double write_rate(const std::vector<Actor>& actors, Duration time);

}  // namespace hearth::bench
