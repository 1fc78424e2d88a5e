// The table of routes. A file with handlers adds its own with one function:
//
//   void add_life_routes(Routes& routes, Core& core) {
//     routes.add("DELETE", "/sandboxes/{id}", [&core](const Call& call) { return kill(core, call);
//     });
//   }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "e2b/body.h"
#include "e2b/core.h"
#include "http/http.h"
#include "net/router.h"

namespace hearth::e2b {

class KeptImages;
class TeamPools;
class Sampler;

// A request of somebody we know.
struct Call {
  const http::Request& request;
  const tenants::KeyHolder& holder;

  Body body() const { return Body::parse(request.body); }
  // Decoded; empty where there is none. Throws Error(invalid) for a query that does not decode.
  std::optional<std::string> query(std::string_view name) const;
  // A number in the query. Throws Error(invalid).
  std::optional<std::int64_t> query_number(std::string_view name, std::int64_t least,
                                           std::int64_t most) const;
  // Where the sandbox is that the path's {id} names, if it is there. Throws Refusal(400).
  model::Key key() const;
  // The holder's sandbox that the path's {id} names; Refusal 400, 404.
  Object sandbox(const Core& core) const;
  // The same; null where the other has a 404.
  Object find_sandbox(const Core& core) const;
};

using Handler = std::function<http::Response(const Call& call)>;
using OpenHandler = std::function<http::Response(const http::Request& request)>;

class Routes {
 public:
  enum class Runs {
    on_worker,  // may block; knows what has been announced
    unread,     // may block; does not look at sandboxes that there are
    at_once,    // on the connection's thread: must not
  };

  // `core` and `workers` must outlive the router.
  Routes(net::Router& router, Core& core, net::Workers& workers);

  // With an X-API-Key that is valid; 401 otherwise. Whatever a handler throws becomes an answer.
  void add(const std::string& method, const std::string& pattern, Handler handler,
           Runs runs = Runs::on_worker);
  // For anybody, or for who proves himself otherwise.
  void add_open(const std::string& method, const std::string& pattern, OpenHandler handler,
                Runs runs = Runs::on_worker);
  // 501 with advice, for who has a key.
  void add_unoffered(const std::string& method, const std::string& pattern, std::string what,
                     std::string advice);

 private:
  net::Router& router_;
  Core& core_;
  net::Workers& workers_;
};

// One for each file of handlers.
void add_create_routes(Routes& routes, Core& core, KeptImages& images, TeamPools& team_pools);
void add_list_routes(Routes& routes, Core& core);
void add_life_routes(Routes& routes, Core& core);
void add_pause_routes(Routes& routes, Core& core);
void add_fork_routes(Routes& routes, Core& core, KeptImages& images);
void add_snapshot_routes(Routes& routes, Core& core, KeptImages& images);
void add_metrics_routes(Routes& routes, Core& core, const Sampler& sampler);
void add_log_routes(Routes& routes, Core& core);
void add_network_routes(Routes& routes, Core& core);
void add_template_routes(Routes& routes, Core& core);
void add_team_routes(Routes& routes, Core& core);
void add_unoffered_routes(Routes& routes);

}  // namespace hearth::e2b
