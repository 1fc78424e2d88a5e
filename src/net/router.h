// Which handler answers a request, and how its failures look.
//
// Patterns: "/sandboxes/{id}/files/{rest...}". `{name}` is one segment that is not empty;
// `{name...}` is the rest of the path, slashes included, perhaps empty, and stands last. A literal
// segment wins over a parameter, a parameter over a rest; a node without the wanted method does not
// hide one that has it. The path is compared segment by segment after decoding each once: "%2F"
// stays inside its segment. "//" and a trailing slash are segments like any other, so "/a/" is not
// "/a". A path with a bad escape, a NUL, "." or ".." (in any spelling) is a 400 and never resolved.
//
// Fill it, then give it to a Server: looking up is const and thread-safe, changing is not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "net/words.h"

namespace hearth::net {

class Stream;
class Workers;

// Gets the whole body. Runs on the connection's thread, which serves other connections too: may
// compute, must not block. (RouteOptions::workers is for those that do.)
using UnaryHandler = std::function<Response(const Request&)>;

// Reads the body and writes the response itself. A coroutine that must not be a capturing lambda
// (its captures die before it does): bind a member function, std::bind_front(&Api::logs, this).
// Ends early by an exception when the connection is cut.
using StreamHandler = std::function<boost::asio::awaitable<void>(Request, Stream&)>;

// Looks at the head of a request before its body is read; throws Error to refuse it.
using Guard = std::function<void(Request&)>;

// The dialect of a surface. For a request that could not be parsed the Request is mostly empty.
using ErrorRenderer = std::function<Response(const Problem&, const Request&)>;

struct RouteOptions {
  // More is a 413. Unset: Limits::body_bytes of the server for unary handlers, no limit for
  // streams.
  std::optional<std::uint64_t> max_body_bytes;
  // Where to run a unary handler that blocks. Must outlive the server.
  Workers* workers = nullptr;
  // Whose work a request is, so that they take turns there; empty: nobody's.
  std::function<std::string(const Request&)> whose = {};

  std::string owner_of(const Request& request) const { return whose ? whose(request) : ""; }
};

class Router {
 public:
  Router();

  // `method` may be "*": any that has no route of its own. A unary GET answers HEAD as well.
  // Throws Error(internal) for a pattern that is malformed or taken.
  void add(std::string method, std::string_view pattern, UnaryHandler handler,
           RouteOptions options = {});
  void add_stream(std::string method, std::string_view pattern, StreamHandler handler,
                  RouteOptions options = {});

  // Requests whose host satisfies `matches` go to `handler` before any path is looked at, and
  // without guard: for a gateway, which passes on paths that it has no opinion about.
  void add_host(std::function<bool(std::string_view host)> matches, StreamHandler handler);

  // Every route of `other` below `prefix` ("" or "/api"); they keep their guard and their renderer,
  // which also renders the 404s below a prefix.
  void mount(const std::string& prefix, const Router& other);

  void set_guard(Guard guard) { surface_->guard = std::move(guard); }
  void set_error_renderer(ErrorRenderer renderer) { surface_->renderer = std::move(renderer); }

  struct Surface {
    Guard guard;
    ErrorRenderer renderer;
  };
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> names;  // of the parameters, in order
    UnaryHandler unary;              // exactly one of the two is set
    StreamHandler stream;
    RouteOptions options;
    std::shared_ptr<const Surface> surface;
  };
  // Either a route or a problem (400, 404, 405); always a surface.
  struct Match {
    const Route* route = nullptr;
    const Surface* surface = nullptr;
    std::optional<Problem> problem;
    std::string allow;  // of a 405
  };

  // Needs request.method, .path and .host; fills request.parameters.
  Match find(Request& request) const;
  const Surface& surface() const { return *surface_; }

 private:
  struct Node {
    std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
    std::unique_ptr<Node> parameter;
    std::unique_ptr<Node> rest;
    std::map<std::string, std::shared_ptr<const Route>, std::less<>> methods;
  };
  struct Search;
  struct HostRoute {
    std::function<bool(std::string_view host)> matches;
    Route route;
  };

  void insert(Route route);
  const Surface& surface_for(std::string_view path) const;
  static void visit(const Node& node, std::size_t depth, Search& search);
  static void consider(const Node& node, Search& search);

  std::shared_ptr<Surface> surface_;
  std::unique_ptr<Node> root_;
  std::vector<std::shared_ptr<const Route>> routes_;
  std::vector<std::shared_ptr<const HostRoute>> hosts_;
  std::vector<std::pair<std::string, std::shared_ptr<const Surface>>> mounts_;
};

}  // namespace hearth::net
