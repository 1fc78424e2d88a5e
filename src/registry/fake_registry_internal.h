// A registry for tests that misbehaves in one way at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/error.h"
#include "net/server.h"
#include "net/stream.h"
#include "registry/reference.h"
#include "registry/testing_internal.h"

namespace hearth::registry {

// A registry with one image "app:1". Everything public is for the test to set before it starts.
class FakeRegistry {
 public:
  FakeRegistry() {
    net::Router router;
    router.add_stream("GET", "/v2/app/{kind}/{name}", std::bind_front(&FakeRegistry::serve, this));
    router.add("GET", "/token", [this](const net::Request& r) { return token(r); });
    router.add("POST", "/token", [this](const net::Request& r) { return token(r); });
    server_.emplace(net::ServerOptions{}, std::move(router));
    server_->start();
    put_image({std::string(300'000, 'x'), "second layer", "second layer"});
  }

  void put_image(const std::vector<std::string>& layers) {
    const std::string config = make_config(layers);
    manifests["1"] = make_manifest(config, layers);
    blobs[sha256_of(config)] = config;
    for (const std::string& layer : layers) blobs[sha256_of(layer)] = layer;
  }
  std::string host() const { return fmt::format("127.0.0.1:{}", server_->port()); }
  Reference reference(const std::string& version = ":1") const {
    return parse_reference(host() + "/app" + version);
  }
  void stop() { server_->stop(); }

  std::vector<net::Request> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  std::size_t count(const std::string& part) {
    const auto all = seen();
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](const net::Request& r) { return r.target.find(part) != std::string::npos; }));
  }

  std::map<std::string, std::string> manifests;
  std::map<std::string, std::string> blobs;
  std::string content_type = "application/vnd.oci.image.manifest.v1+json";
  std::string wants;              // the Authorization field that is right; empty: any
  std::string challenge;          // else this
  unsigned token_status = 200;    //
  std::string redirect_blobs;     // to there, and the digest
  std::size_t cut_after = 0;      // of a blob's bytes, until cuts is used up
  int cuts = 0;                   //
  bool knows_ranges = true;       //
  int refusals = 0;               // so many requests are answered
  unsigned refusal_status = 429;  // with this

 private:
  net::Response token(const net::Request& request) {
    const std::lock_guard lock(mutex_);
    seen_.push_back(request);
    return net::json_response(token_status, R"({"token":"t0ken","expires_in":300})");
  }

  std::optional<net::Response> refuse(const net::Request& request) {
    const std::lock_guard lock(mutex_);
    seen_.push_back(request);
    if (refusals > 0) {
      --refusals;
      return net::Response{.status = refusal_status, .headers = {{"Retry-After", "0"}}};
    }
    if (!wants.empty() && request.headers.value("Authorization") != wants) {
      net::Response response =
          net::json_response(401, R"({"errors":[{"code":"UNAUTHORIZED","message":"SECRET"}]})");
      response.headers.add("WWW-Authenticate", challenge);
      return response;
    }
    if (request.parameter("kind") == "blobs" && !redirect_blobs.empty()) {
      return net::Response{.status = 307,
                           .headers = {{"Location", redirect_blobs + request.parameter("name")}}};
    }
    const auto& things = request.parameter("kind") == "blobs" ? blobs : manifests;
    if (!things.contains(request.parameter("name"))) {
      return net::json_response(404, R"({"errors":[{"code":"MANIFEST_UNKNOWN"}]})");
    }
    return std::nullopt;
  }

  boost::asio::awaitable<void> serve(net::Request request, net::Stream& stream) {
    auto refusal = refuse(request);
    if (refusal) {
      co_await stream.respond(*std::move(refusal));
      co_return;
    }
    const bool is_blob = request.parameter("kind") == "blobs";
    std::string body = (is_blob ? blobs : manifests).at(request.parameter("name"));
    net::Response head{
        .headers = {{"Content-Type", is_blob ? "application/octet-stream" : content_type}}};
    if (const std::string* range = request.headers.find("Range"); range && knows_ranges) {
      const std::size_t begin = std::stoul(range->substr(6));
      head.status = 206;
      head.headers.add("Content-Range",
                       fmt::format("bytes {}-{}/{}", begin, body.size() - 1, body.size()));
      body.erase(0, begin);
    }
    head.headers.add("Content-Length", std::to_string(body.size()));
    co_await stream.write_head(std::move(head));
    bool is_cut = false;
    {
      const std::lock_guard lock(mutex_);
      is_cut = is_blob && cuts > 0 && body.size() > cut_after;
      if (is_cut) --cuts;
    }
    co_await stream.write(is_cut ? std::string_view(body).substr(0, cut_after)
                                 : std::string_view(body));
    if (is_cut) fail(Code::unavailable, "cut");
  }

  std::mutex mutex_;  // guards what follows, and the counters above while it runs
  std::vector<net::Request> seen_;
  std::optional<net::Server> server_;
};

}  // namespace hearth::registry
