// A client in front of another: passes every call on. Whoever wants some of them to be different
// derives from it. As thread-safe as the other.
#pragma once

#include "client/client.h"

namespace hearth::client {

class PassingClient : public Client {
 public:
  // `inner` must outlive it.
  explicit PassingClient(Client& inner) : inner_(inner) {}

  Answer get(const ResourceId& resource, std::string_view ns, std::string_view name) override;
  List list(const ResourceId& resource, const ListOptions& options) override;
  Answer create(const ResourceId& resource, const Json& object,
                const WriteOptions& options) override;
  Answer update(const ResourceId& resource, const Json& object, std::string_view subresource,
                const WriteOptions& options) override;
  Answer patch(const ResourceId& resource, std::string_view ns, std::string_view name,
               PatchKind kind, const Json& patch, const PatchOptions& options) override;
  Answer remove(const ResourceId& resource, std::string_view ns, std::string_view name,
                const DeleteOptions& options) override;
  Answer post(const ResourceId& resource, std::string_view ns, std::string_view name,
              std::string_view subresource, const Json& body) override;
  WatchEnd watch(const ResourceId& resource, const WatchOptions& options,
                 const std::function<void(Event event)>& handler,
                 const std::stop_token& stop) override;

 protected:
  // Asked for once in each call: the place to wait, or to throw, before it is passed on.
  virtual Client& turn() { return inner_; }

 private:
  Client& inner_;
};

}  // namespace hearth::client
