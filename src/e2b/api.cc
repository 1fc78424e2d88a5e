#include "e2b/api.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "e2b/answers.h"
#include "e2b/birth.h"
#include "e2b/idempotency.h"
#include "e2b/keeper.h"
#include "e2b/kept_images.h"
#include "e2b/pause.h"
#include "e2b/routes.h"
#include "e2b/sampler.h"
#include "e2b/team_pools.h"
#include "e2b/template_reference.h"
#include "net/local_server.h"
#include "net/workers.h"

namespace hearth::e2b {
namespace {

// What may wait for a worker: bursts of creates, of one team half of it. More would wait longer
// than its clients do.
constexpr std::size_t kMostWaiting = 8192;

// On a cluster every call of the API is a wait.
unsigned at_once(const Parts& parts) {
  return parts.reach ? std::max(4U, 2 * std::thread::hardware_concurrency()) : 0;
}

}  // namespace

struct Api::State {
  State(const Parts& parts, Options options)
      : core(parts, std::move(options)),
        keeper(core),
        team_pools(core),
        images(core),
        sampler(core),
        workers(core.options.workers, kMostWaiting, at_once(parts)),
        server(router()) {
    index_templates(core.templates);
    index_pools(core.pools);
    index_idempotency_keys(core.sandboxes);
    keeper.add_to(parts.manager);
    team_pools.add_to(parts.manager);
    core.listen();
  }

  net::Router router() {
    net::Router made;
    made.set_error_renderer([](const http::Problem& problem, const http::Request&) {
      return answer_problem(problem.status, problem.message);
    });
    Routes routes(made, core, workers);
    routes.add_open(
        "GET", "/health", [](const http::Request&) { return answer_nothing(); },
        Routes::Runs::at_once);
    add_create_routes(routes, core, images, team_pools);
    add_list_routes(routes, core);
    add_life_routes(routes, core);
    add_pause_routes(routes, core);
    add_fork_routes(routes, core, images);
    add_snapshot_routes(routes, core, images);
    add_metrics_routes(routes, core, sampler);
    add_log_routes(routes, core);
    add_network_routes(routes, core);
    add_template_routes(routes, core);
    add_team_routes(routes, core);
    add_unoffered_routes(routes);
    return made;
  }

  Core core;
  Keeper keeper;
  TeamPools team_pools;
  KeptImages images;
  Sampler sampler;
  net::Workers workers;
  net::LocalServer server;
};

Api::Api(const Parts& parts, Options options)
    : state_(std::make_unique<State>(parts, std::move(options))) {}

Api::~Api() {
  stop();
}

void Api::start() {
  state_->images.sweep();
  state_->sampler.start();
}

void Api::ask(http::Request request, std::function<void(http::Response)> answer) {
  state_->server.ask(std::move(request), std::move(answer));
}

void Api::stop() {
  state_->core.sandbox_waits.stop();
  state_->core.pod_waits.stop();
  state_->core.template_waits.stop();
  state_->server.stop();
  state_->sampler.stop();
  state_->images.stop();
}

void Api::sweep_images() {
  state_->images.sweep();
}

void Api::sample() {
  state_->sampler.sample();
}

void Api::wake(const model::Key& key) {
  e2b::wake(state_->core, key);
}

net::Router Api::router() {
  return state_->router();
}

}  // namespace hearth::e2b
