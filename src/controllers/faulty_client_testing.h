// A client that counts writes and fails on demand, for tests of what controllers do then.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "client/passing_client.h"

namespace hearth::controllers {

using model::Json;

// Passes calls on. A write can be kept from the server, or its answer from the caller.
class FaultyClient final : public client::PassingClient {
 public:
  using PassingClient::PassingClient;

  // "patch sandboxes", "patch sandboxclaims/status", "create sandboxes", "delete ..."; may throw.
  using Hook = std::function<void(const std::string& write)>;
  Hook before = [](const std::string&) {};
  Hook after = [](const std::string&) {};

  std::vector<std::string> writes() const {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  void forget_writes() {
    const std::lock_guard lock(mutex_);
    writes_.clear();
  }

  client::List list(const client::ResourceId& resource,
                    const client::ListOptions& options) override {
    ++lists;
    return PassingClient::list(resource, options);
  }
  client::Answer create(const client::ResourceId& resource, const Json& object,
                        const client::WriteOptions& options) override {
    return write("create " + resource.plural,
                 [&] { return PassingClient::create(resource, object, options); });
  }
  client::Answer update(const client::ResourceId& resource, const Json& object,
                        std::string_view subresource,
                        const client::WriteOptions& options) override {
    return write("update " + resource.plural,
                 [&] { return PassingClient::update(resource, object, subresource, options); });
  }
  client::Answer patch(const client::ResourceId& resource, std::string_view ns,
                       std::string_view name, client::PatchKind kind, const Json& patch,
                       const client::PatchOptions& options) override {
    const std::string sub = options.subresource.empty() ? "" : "/" + options.subresource;
    return write("patch " + resource.plural + sub,
                 [&] { return PassingClient::patch(resource, ns, name, kind, patch, options); });
  }
  client::Answer remove(const client::ResourceId& resource, std::string_view ns,
                        std::string_view name, const client::DeleteOptions& options) override {
    return write("delete " + resource.plural,
                 [&] { return PassingClient::remove(resource, ns, name, options); });
  }

  std::atomic<unsigned> lists = 0;

 private:
  Json write(const std::string& what, const std::function<Json()>& act) {
    before(what);
    Json result = act();
    {
      const std::lock_guard lock(mutex_);
      writes_.push_back(what);
    }
    after(what);
    return result;
  }

  mutable std::mutex mutex_;  // guards writes_
  std::vector<std::string> writes_;
};

}  // namespace hearth::controllers
