#include "net/local_server.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "net/accept_internal.h"
#include "net/refusal_internal.h"
#include "net/workers.h"

namespace hearth::net {
namespace {

// Somebody's question, until it is answered.
struct Question {
  Request request;
  LocalServer::Answer answer;
  Router::Match match;
};

void refuse(const Question& question, const Problem& problem) {
  Response response = render_problem(*question.match.surface, problem, question.request);
  if (!question.match.allow.empty()) response.headers.set("Allow", question.match.allow);
  question.answer(std::move(response));
}

void run_handler(const Question& question) {
  std::optional<Response> response;
  try {
    response = question.match.route->unary(question.request);
  } catch (...) {
    refuse(question, problem_from_current_exception(question.request));
    return;
  }
  question.answer(*std::move(response));
}

}  // namespace

struct LocalServer::State {
  explicit State(Router given) : router(std::move(given)) {}

  // Nothing: it may run.
  std::optional<Problem> look_at(Question& question) const;
  void begin(const std::shared_ptr<Question>& question);
  bool enter();
  void leave();

  const Router router;
  std::mutex mutex;  // guards what follows
  std::condition_variable left;
  std::size_t running = 0;
  bool is_stopped = false;
};

std::optional<Problem> LocalServer::State::look_at(Question& question) const {
  Request& request = question.request;
  if (auto problem = accept_target(request)) return problem;
  question.match = router.find(request);
  if (question.match.problem) return question.match.problem;
  const Router::Route& route = *question.match.route;
  if (!route.unary) return Problem{501, Code::invalid, "this path needs a connection of its own"};
  const bool is_host_route = route.pattern.empty();
  try {
    if (!is_host_route && question.match.surface->guard) question.match.surface->guard(request);
  } catch (...) {
    return problem_from_current_exception(request);
  }
  const auto limit = route.options.max_body_bytes.value_or(Limits().body_bytes);
  if (request.body.size() > limit) return too_long(limit);
  return std::nullopt;
}

void LocalServer::State::begin(const std::shared_ptr<Question>& question) {
  Workers* workers = question->match.route->options.workers;
  if (workers == nullptr) {
    run_handler(*question);
    leave();
    return;
  }
  const std::string whose = question->match.route->options.owner_of(question->request);
  const bool is_begun = workers->start(
      [this, question] {
        run_handler(*question);
        leave();
      },
      whose);
  if (is_begun) return;
  refuse(*question, {503, Code::unavailable, "every worker is busy"});
  leave();
}

bool LocalServer::State::enter() {
  const std::lock_guard lock(mutex);
  if (!is_stopped) ++running;
  return !is_stopped;
}

// Told with the lock held: whoever waits for it destroys us.
void LocalServer::State::leave() {
  const std::lock_guard lock(mutex);
  if (--running == 0) left.notify_all();
}

LocalServer::LocalServer(Router router) : state_(std::make_unique<State>(std::move(router))) {}

LocalServer::~LocalServer() {
  stop();
}

void LocalServer::ask(Request request, Answer answer) {
  const auto question = std::make_shared<Question>(
      Question{.request = std::move(request), .answer = std::move(answer), .match = {}});
  question->match.surface = &state_->router.surface();
  if (!state_->enter()) {
    refuse(*question, {503, Code::unavailable, "the server is going down"});
  } else if (const auto problem = state_->look_at(*question)) {
    refuse(*question, *problem);
    state_->leave();
  } else {
    state_->begin(question);
  }
}

void LocalServer::stop() {
  std::unique_lock lock(state_->mutex);
  state_->is_stopped = true;
  state_->left.wait(lock, [&] { return state_->running == 0; });
}

}  // namespace hearth::net
