// The conversion webhook of `hearth controller`: its server, and what makes a cluster trust it.
//
// It serves from the moment that it is made. A thread of its own looks again every minute: at the
// identity, which others may have renewed, and at the CRDs, which people apply anew.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "client/client.h"
#include "linux/fd.h"
#include "model/meta.h"
#include "pki/authority.h"
#include "webhook/server.h"

namespace hearth::webhook {

struct Options {
  model::Key service;  // that the CRDs name
  std::string cluster_domain = "cluster.local";
  // Whoever has these made has the CRDs trust them, too. Empty: the Secret's identity.
  std::string certificate_file = {};
  std::string key_file = {};
};

class Webhook {
 public:
  // `socket` listens already; `client` and `clock` must outlive it. Throws StatusError and Error
  // for what keeps it from serving.
  Webhook(client::Client& client, const Clock& clock, Options options, linux::Fd socket);

  // What the thread does: every failure is told once, and the next look may succeed.
  void look_again();

 private:
  void look();
  void show(const pki::Identity& identity);
  void tell_once(const std::string& message, const std::string& reason);

  client::Client& client_;
  const Clock& clock_;
  const Options options_;
  std::mutex mutex_;  // guards what follows
  Server server_;
  pki::Identity shown_;
  std::set<std::string> told_;
  std::jthread looking_;  // last: it uses the rest
};

}  // namespace hearth::webhook
