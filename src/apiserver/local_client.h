// The API without HTTP: the client of controllers and front doors in the same process.
//
// Asks the same Front as everybody else, so that no rule is missed but those that its caller
// vouches for (client::PatchOptions::is_checked); what it saves is sockets, TLS, the RBAC of an
// admin, and text: objects go in and come out as trees (tree.h).
#pragma once

#include "access/user.h"
#include "apiserver/front.h"
#include "client/client.h"

namespace hearth::apiserver {

class LocalClient final : public client::Client {
 public:
  // `front` must outlive it. Everything is done as `user`.
  LocalClient(Front& front, access::User user) : front_(front), user_(std::move(user)) {}

  client::Answer get(const client::ResourceId& resource, std::string_view ns,
                     std::string_view name) override;
  client::List list(const client::ResourceId& resource,
                    const client::ListOptions& options) override;
  client::Answer create(const client::ResourceId& resource, const Json& object,
                        const client::WriteOptions& options) override;
  client::Answer update(const client::ResourceId& resource, const Json& object,
                        std::string_view subresource, const client::WriteOptions& options) override;
  client::Answer patch(const client::ResourceId& resource, std::string_view ns,
                       std::string_view name, client::PatchKind kind, const Json& patch,
                       const client::PatchOptions& options) override;
  client::Answer remove(const client::ResourceId& resource, std::string_view ns,
                        std::string_view name, const client::DeleteOptions& options) override;
  client::Answer post(const client::ResourceId& resource, std::string_view ns,
                      std::string_view name, std::string_view subresource,
                      const Json& body) override;
  client::WatchEnd watch(const client::ResourceId& resource, const client::WatchOptions& options,
                         const std::function<void(client::Event event)>& handler,
                         const std::stop_token& stop) override;

 private:
  client::Answer ask(std::string method, std::string path, std::string query,
                     const Json* body = nullptr,
                     std::string_view content_type = "application/json");

  Front& front_;
  const access::User user_;
};

}  // namespace hearth::apiserver
