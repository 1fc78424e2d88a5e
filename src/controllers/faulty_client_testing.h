// A client that counts writes and fails on demand, for tests of what controllers do then.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"

namespace hearth::controllers {

using model::Json;

// Passes calls on. A write can be kept from the server, or its answer from the caller.
class FaultyClient final : public client::Client {
 public:
  explicit FaultyClient(client::Client& client) : client_(client) {}

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

  client::Answer get(const client::ResourceId& resource, std::string_view ns,
                     std::string_view name) override {
    return client_.get(resource, ns, name);
  }
  client::List list(const client::ResourceId& resource,
                    const client::ListOptions& options) override {
    ++lists;
    return client_.list(resource, options);
  }
  client::Answer create(const client::ResourceId& resource, const Json& object,
                        const client::WriteOptions& options) override {
    return write("create " + resource.plural,
                 [&] { return client_.create(resource, object, options); });
  }
  client::Answer update(const client::ResourceId& resource, const Json& object,
                        std::string_view subresource,
                        const client::WriteOptions& options) override {
    return write("update " + resource.plural,
                 [&] { return client_.update(resource, object, subresource, options); });
  }
  client::Answer patch(const client::ResourceId& resource, std::string_view ns,
                       std::string_view name, client::PatchKind kind, const Json& patch,
                       const client::PatchOptions& options) override {
    const std::string sub = options.subresource.empty() ? "" : "/" + options.subresource;
    return write("patch " + resource.plural + sub,
                 [&] { return client_.patch(resource, ns, name, kind, patch, options); });
  }
  client::Answer remove(const client::ResourceId& resource, std::string_view ns,
                        std::string_view name, const client::DeleteOptions& options) override {
    return write("delete " + resource.plural,
                 [&] { return client_.remove(resource, ns, name, options); });
  }
  client::Answer post(const client::ResourceId& resource, std::string_view ns,
                      std::string_view name, std::string_view subresource,
                      const Json& body) override {
    return client_.post(resource, ns, name, subresource, body);
  }
  client::WatchEnd watch(const client::ResourceId& resource, const client::WatchOptions& options,
                         const std::function<void(client::Event event)>& handler,
                         const std::stop_token& stop) override {
    return client_.watch(resource, options, handler, stop);
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

  client::Client& client_;
  mutable std::mutex mutex_;  // guards writes_
  std::vector<std::string> writes_;
};

}  // namespace hearth::controllers
