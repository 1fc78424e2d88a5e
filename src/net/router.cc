#include "net/router.h"

#include <set>
#include <utility>

#include "net/words.h"

namespace hearth::net {
namespace {

std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> segments;
  path.remove_prefix(1);
  while (true) {
    const auto slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool is_below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) &&
         (path.size() == prefix.size() || path[prefix.size()] == '/' || prefix.empty());
}

}  // namespace

// One walk over the tree. Every node is visited at most once, so that a path cannot make it
// expensive.
struct Router::Search {
  const std::string& method;
  std::vector<std::string> segments;  // decoded
  std::vector<std::size_t> captured;  // depths of the parameters on the way to here
  bool rest_captured = false;

  const Route* found = nullptr;
  std::vector<std::size_t> found_captured;
  bool found_rest = false;
  std::set<std::string, std::less<>> allow;  // methods of nodes that lack the one asked for

  std::vector<std::pair<std::string, std::string>> parameters() const;
};

std::vector<std::pair<std::string, std::string>> Router::Search::parameters() const {
  std::vector<std::pair<std::string, std::string>> values;
  for (std::size_t i = 0; i < found_captured.size(); ++i) {
    const std::size_t depth = found_captured[i];
    std::string value = segments[depth];
    const bool is_rest = found_rest && i + 1 == found_captured.size();
    for (std::size_t next = depth + 1; is_rest && next < segments.size(); ++next) {
      value += '/' + segments[next];
    }
    values.emplace_back(found->names[i], std::move(value));
  }
  return values;
}

Router::Router() : surface_(std::make_shared<Surface>()), root_(std::make_unique<Node>()) {
  surface_->renderer = [](const Problem& problem, const Request&) {
    return render_json_problem(problem);
  };
}

void Router::add(std::string method, std::string_view pattern, UnaryHandler handler,
                 RouteOptions options) {
  Route route{
      .method = std::move(method), .pattern = std::string(pattern), .options = std::move(options)};
  route.unary = std::move(handler);
  route.surface = surface_;
  insert(std::move(route));
}

void Router::add_stream(std::string method, std::string_view pattern, StreamHandler handler,
                        RouteOptions options) {
  Route route{
      .method = std::move(method), .pattern = std::string(pattern), .options = std::move(options)};
  route.stream = std::move(handler);
  route.surface = surface_;
  insert(std::move(route));
}

void Router::add_host(std::function<bool(std::string_view host)> matches, StreamHandler handler) {
  auto host = std::make_shared<HostRoute>();
  host->matches = std::move(matches);
  host->route.stream = std::move(handler);
  host->route.surface = surface_;
  hosts_.push_back(std::move(host));
}

void Router::mount(const std::string& prefix, const Router& other) {
  for (const auto& route : other.routes_) {
    Route moved = *route;
    moved.pattern = prefix + moved.pattern;
    moved.names.clear();
    insert(std::move(moved));
  }
  hosts_.insert(hosts_.end(), other.hosts_.begin(), other.hosts_.end());
  for (const auto& [below, surface] : other.mounts_) mounts_.emplace_back(prefix + below, surface);
  if (!prefix.empty()) mounts_.emplace_back(prefix, other.surface_);
}

void Router::insert(Route route) {
  if (!route.pattern.starts_with('/')) fail(Code::internal, "bad pattern '{}'", route.pattern);
  Node* node = root_.get();
  bool ended = false;
  for (const std::string_view segment : split_path(route.pattern)) {
    if (ended) fail(Code::internal, "a rest parameter stands last: '{}'", route.pattern);
    const bool is_parameter = segment.starts_with('{') && segment.ends_with('}');
    std::unique_ptr<Node>* next = nullptr;
    if (is_parameter && segment.ends_with("...}")) {
      ended = true;
      route.names.emplace_back(segment.substr(1, segment.size() - 5));
      next = &node->rest;
    } else if (is_parameter) {
      route.names.emplace_back(segment.substr(1, segment.size() - 2));
      next = &node->parameter;
    } else {
      next = &node->literals[std::string(segment)];
    }
    if (is_parameter && route.names.back().empty()) {
      fail(Code::internal, "a parameter needs a name: '{}'", route.pattern);
    }
    if (!*next) *next = std::make_unique<Node>();
    node = next->get();
  }
  auto shared = std::make_shared<const Route>(std::move(route));
  if (!node->methods.emplace(shared->method, shared).second) {
    fail(Code::internal, "two routes for {} '{}'", shared->method, shared->pattern);
  }
  routes_.push_back(std::move(shared));
}

void Router::consider(const Node& node, Search& search) {
  if (node.methods.empty()) return;
  auto found = node.methods.find(search.method);
  if (found == node.methods.end() && search.method == "HEAD") {
    found = node.methods.find("GET");
    if (found != node.methods.end() && !found->second->unary) found = node.methods.end();
  }
  if (found == node.methods.end()) found = node.methods.find("*");
  if (found != node.methods.end()) {
    search.found = found->second.get();
    search.found_captured = search.captured;
    search.found_rest = search.rest_captured;
    return;
  }
  for (const auto& [method, route] : node.methods) {
    search.allow.insert(method);
    if (method == "GET" && route->unary) search.allow.insert("HEAD");
  }
}

void Router::visit(const Node& node, std::size_t depth, Search& search) {
  if (depth == search.segments.size()) {
    consider(node, search);
    return;
  }
  const std::string& segment = search.segments[depth];
  if (const auto literal = node.literals.find(segment); literal != node.literals.end()) {
    visit(*literal->second, depth + 1, search);
  }
  if (search.found == nullptr && node.parameter && !segment.empty()) {
    search.captured.push_back(depth);
    visit(*node.parameter, depth + 1, search);
    search.captured.pop_back();
  }
  if (search.found == nullptr && node.rest) {
    search.captured.push_back(depth);
    search.rest_captured = true;
    consider(*node.rest, search);
    search.rest_captured = false;
    search.captured.pop_back();
  }
}

const Router::Surface& Router::surface_for(std::string_view path) const {
  const std::pair<std::string, std::shared_ptr<const Surface>>* best = nullptr;
  for (const auto& mount : mounts_) {
    const bool better = best == nullptr || mount.first.size() > best->first.size();
    if (better && is_below(path, mount.first)) best = &mount;
  }
  return best != nullptr ? *best->second : *surface_;
}

Router::Match Router::find(Request& request) const {
  for (const auto& host : hosts_) {
    if (host->matches(request.host)) return {&host->route, host->route.surface.get(), {}, {}};
  }
  Match match{.surface = &surface_for(request.path)};
  if (!request.path.starts_with('/')) {
    match.problem = Problem{404, Code::not_found, "nothing is served here"};
    return match;
  }
  Search search{.method = request.method};
  for (const std::string_view segment : split_path(request.path)) {
    auto decoded = decode_path_segment(segment);
    if (!decoded) {
      match.problem = Problem{400, Code::invalid, "path has a bad escape or a dot segment"};
      return match;
    }
    search.segments.push_back(*std::move(decoded));
  }
  visit(*root_, 0, search);
  if (search.found == nullptr) {
    match.allow = fmt::format("{}", fmt::join(search.allow, ", "));
    match.problem =
        match.allow.empty()
            ? Problem{404, Code::not_found, fmt::format("no such path: '{}'", request.path)}
            : Problem{405, Code::invalid,
                      fmt::format("{} takes only {}", request.path, match.allow)};
    return match;
  }
  match.route = search.found;
  match.surface = search.found->surface.get();
  request.parameters = search.parameters();
  return match;
}

}  // namespace hearth::net
