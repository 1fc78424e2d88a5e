// The servers of the page `kube`: a real `hearth apiserver` and a real etcd, each on a folder of
// its own on the same disk, both of which sync a write before they answer it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/etcd_client.h"
#include "bench/process.h"
#include "bench/surface_client.h"

namespace hearth::bench {

// A request to the API with what ours needs.
std::string kube_request(std::string_view method, std::string_view target,
                         std::string_view body = {});

class ApiServer {
 public:
  // Throws Error: not_found when it is not built.
  explicit ApiServer(std::string folder);

  // Returns when a request has been answered.
  void start();
  // As kill -9 does.
  void kill() { child_.reset(); }
  pid_t pid() const { return child_->pid(); }
  SurfaceClient connect() const;

 private:
  std::string program_;
  std::string folder_;
  std::optional<Child> child_;
  std::uint16_t port_ = 0;
};

class Etcd {
 public:
  // Throws Error: not_found when it is not installed.
  explicit Etcd(std::string folder);

  // Returns when a request has been answered.
  void start();
  void kill() { child_.reset(); }
  pid_t pid() const { return child_->pid(); }
  EtcdClient connect() const { return EtcdClient(port_); }

 private:
  std::string program_;
  std::string folder_;
  std::optional<Child> child_;
  std::uint16_t port_ = 0;
};

}  // namespace hearth::bench
