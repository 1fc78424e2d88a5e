// The one listener of front doors: carries bytes between clients and the ports of sandboxes.
//
// A request that names a sandbox (headers, host, path, signature; see target.h) goes to it,
// everything else to the control plane, which is a function of this process. HTTP/1.0 and 1.1 with
// keep-alive, upgrades, streams both ways. Bodies pass through fixed buffers with the framing that
// they came with; only those for the control plane are kept whole.
//
// It has no state of its own: where sandboxes are comes from watch caches. Clients and sandboxes
// are both strangers: each can make it answer with an error or close a connection, and no more
// (limits.h). Threads: one for each loop, and a few that connect and wake. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gateway/key_owner.h"
#include "gateway/limits.h"
#include "http/http.h"
#include "model/json.h"
#include "model/meta.h"
#include "net/tls.h"

namespace hearth::client {
class WatchCache;
}
namespace hearth::metrics {
class Registry;
}
namespace hearth::pool {
class Reach;
}

namespace hearth::gateway {

class AccessLog;

struct Listen {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free, see Gateway::ports()
  // A socket that listens already, in place of both; the gateway owns it from now on.
  int listen_fd = -1;
  std::optional<net::TlsServerOptions> tls = {};
};

// Takes a request with its whole body. Does not block, and calls `answer` once: from any thread,
// perhaps before it returns. One that comes too late, even after the gateway, is dropped.
using Control =
    std::function<void(http::Request request, std::function<void(http::Response)> answer)>;

struct GatewayOptions {
  std::vector<Listen> listens = {Listen{}};
  unsigned threads = 1;
  // Answers requests that name no sandbox; null: they are told 404.
  Control control;

  // Who connects into sandboxes of this machine; null: their pods' addresses are used.
  pool::Reach* reach = nullptr;
  // The tokens of a sandbox that was handed out by a front door, by its id. Pure.
  std::function<std::string(const model::Key& sandbox)> envd_token;
  std::function<std::string(const model::Key& sandbox)> traffic_token;
  // Does not block.
  std::function<KeyOwner(std::string_view key)> key_owner;
  // Makes a sandbox that stands still run again; blocks. Throws Error: forbidden, conflict,
  // exhausted are told to the client as such.
  std::function<void(const model::Key& key)> wake;

  // What it returns is held while somebody waits for the first answer of a sandbox, a quarter of a
  // second at most: for those who give way to that. Null: nobody does. Does not block.
  std::function<std::shared_ptr<void>()> urgent;

  // For X-Sandbox-ID (sandbox-router). Empty: only clients on this machine are let in, unless
  // `router_open`.
  std::string router_token;
  bool router_open = false;

  Limits limits = {};
  metrics::Registry* registry = nullptr;  // null: nobody counts
  AccessLog* access_log = nullptr;        // null: none is kept
};

struct ActivityReport {
  Time last = {};        // of the last byte that passed; the epoch: none so far
  std::size_t open = 0;  // requests and streams under way
};

class Gateway {
 public:
  // Adds handlers to the cache of Sandboxes: before that is started. What is passed must outlive
  // the gateway, and the caches must be stopped before it goes. Throws Error(invalid) for
  // certificates that do not load.
  Gateway(client::WatchCache& sandboxes, const client::WatchCache& pods, GatewayOptions options);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();  // stop() without grace

  // Throws Error when it cannot listen.
  void start();
  // Accepts no more, closes idle connections, lets requests finish for `grace`, then cuts them.
  void stop(Duration grace = {});

  // Where it listens, in the order of the options.
  std::vector<std::uint16_t> ports() const;
  std::size_t connections() const;

  // A Sandbox as an API server has just answered a write with: in force for requests that come
  // after this returns, without waiting for the watch. What is older than known is ignored.
  void learn(const model::Json& sandbox);
  // The same for one that was deleted: it is not found from now on, at once, and its streams are
  // cut.
  void forget(const model::Json& last);

  // A client is about to hear of it, and will send something to that port: connects already, unless
  // there is more to do than that. Returns at once.
  void expect(const model::Key& key, std::uint16_t port);

  // Nothing for a sandbox that is not known.
  std::optional<ActivityReport> activity(const model::Key& key) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::gateway
