// The embedded Kubernetes API: everything behind one port.
//
//   clients ──HTTP──▶ Front ──▶ Objects ──▶ Store ──▶ disk
//                      │          ▲           │
//   in-process ────────┘     Housekeeper ◀────┘ (history)
//
// start() returns when connections are accepted; stop() when nothing of it runs any more. Threads:
// a few for I/O, which also answer what needs no waiting; workers, for writes; the housekeeper.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/welcome.h"
#include "remote/backend.h"
#include "remote/usage.h"

namespace hearth::apiserver {

struct ServerOptions {
  std::string state_dir;  // kept: the store, the authority, the admin's token and kubeconfig
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free
  // A socket that listens already, owned from now on; `address` is then where clients find it.
  int listen_fd = -1;
  std::string admin_token;         // empty: the kept one, made if there is none
  std::vector<std::string> names;  // others that clients may call this machine
  // Where pods run; null: nowhere. Must outlive the server.
  remote::Backend* backend = nullptr;
  remote::MeasureUsage measure = {};  // none: there is no metrics.k8s.io
  unsigned io_threads = 2;
  unsigned workers = 16;
};

class Server {
 public:
  // Opens the store; throws Error for one that is damaged or in use.
  explicit Server(ServerOptions options);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  void start();
  void stop();

  std::uint16_t port() const;
  // "https://127.0.0.1:PORT"
  std::string url() const;
  // Where the admin's kubeconfig was written, by start().
  const std::string& kubeconfig_path() const;
  // As the admin, without HTTP. Must not outlive the server.
  client::Client& client();
  // Who is asked about new objects of a kind (client/welcome.h); empty: nobody any more, from the
  // moment this returns.
  void welcome(const client::ResourceId& kind, client::Welcomer welcomer);
  // Whoever watches is told now of what could wait (client::PatchOptions).
  void hurry_news();
  // A consistent copy of all objects in a new file.
  void backup(const std::string& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::apiserver
