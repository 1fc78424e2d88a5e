// The dialect: requests in, answers out, in the words of kube-apiserver.
//
// Everything but streams (watches, and into pods), which server.h serves with what front prepares.
// Knows no socket: the in-process client asks the same way as HTTP does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "access/user.h"
#include "apiserver/catalogue.h"
#include "apiserver/feed.h"
#include "apiserver/gate.h"
#include "apiserver/negotiation.h"
#include "apiserver/objects.h"
#include "apiserver/open_api.h"
#include "apiserver/path.h"
#include "apiserver/query.h"
#include "apiserver/table.h"
#include "client/client.h"
#include "http/http.h"
#include "remote/usage.h"

namespace hearth::apiserver {

// A request that has been understood and allowed.
struct Call {
  const http::Request& request;
  access::User user;
  Query query;
  CataloguePtr catalogue;
  std::optional<ResourcePath> path;
  ResourcePtr resource;  // null: the path is none of a resource
  bool is_watch = false;
  // What the client may have besides plain JSON.
  bool is_pretty = false;
  // What a caller in this process sends in place of a body of text. Borrowed.
  const Json* body = nullptr;
};

// An answer, or the object that it would show.
using Reply = std::variant<http::Response, Written>;

class Front {
 public:
  struct Parts {
    store::Store& store;
    Objects& objects;
    Gate& gate;
    const Clock& clock;
    std::function<CataloguePtr()> catalogue;
    std::function<std::shared_ptr<const OpenApi>()> open_api;  // of that catalogue
    // Called after a CustomResourceDefinition was written.
    std::function<void()> definitions_changed;
    std::string address;                // HOST:PORT, for clients that ask
    remote::MeasureUsage measure = {};  // where the catalogue has metrics.k8s.io
  };
  explicit Front(Parts parts) : parts_(std::move(parts)) {}

  // Who asks, what for, and whether he may. Throws StatusError.
  Call understand(const http::Request& request) const;
  // The same for a caller in this process, who is known.
  Call understand_as(const http::Request& request, access::User user) const;

  // A whole answer. May block: writes wait for the disk. Never throws.
  http::Response answer(const Call& call) noexcept;
  // The same before it is rendered, for callers in this process. Throws StatusError, Error.
  Reply reply(const Call& call);
  // A merge patch of a caller in this process, of an object and of words that were checked: only
  // whether he may is asked. Throws StatusError, Error.
  JsonPtr patch_checked(const access::User& user, const client::ResourceId& id, std::string_view ns,
                        std::string_view name, const Json& patch, bool news_can_wait);
  // Any failure in the dialect.
  static http::Response refuse(const std::exception& failure, bool is_pretty);
  // Whether answer() may wait for the disk or for another writer.
  bool may_block(const Call& call) const;

  // A watch, ready to be pulled from, and when it ends by itself.
  struct Watching {
    std::unique_ptr<Feed> feed;
    Duration timeout;
    bool bookmarks = false;
    http::Response head;
  };
  // Throws StatusError for options that make no sense.
  Watching open_watch(const Call& call, std::function<void()> wake);

  // HOST:PORT, as clients reach us.
  void set_address(std::string address) { parts_.address = std::move(address); }

  // The pod that a stream goes into. Throws 404.
  Json pod_of(const Call& call) const;

 private:
  http::Response plain(const Call& call);
  std::optional<http::Response> discover(const Call& call) const;
  std::optional<http::Response> open_api(const Call& call) const;
  TableOptions table_options(const Call& call, const Wanted& form) const;
  // `listed`: takes the objects that the answer shows, if not null.
  http::Response list(const Call& call, std::vector<store::ObjectPtr>* listed = nullptr);
  Written get(const Call& call);
  WriteOptions write_options(const Call& call, std::string_view kind) const;
  Written post(const Call& call);
  Written put(const Call& call);
  Written patch(const Call& call);
  http::Response remove(const Call& call);
  http::Response remove_collection(const Call& call);
  http::Response measure(const Call& call) const;  // front_measures.cc
  http::Response scale(const Call& call);
  http::Response evict(const Call& call);
  http::Response bind(const Call& call);
  http::Response issue_token(const Call& call);
  http::Response review(const Call& call);
  http::Response render_object(const Call& call, unsigned status, const std::string& text) const;
  http::Response render_written(const Call& call, const Written& written) const;
  Selection selection_of(const Call& call) const;
  Place place_of(const Call& call) const;
  void after_write(const Resource& resource);

  Parts parts_;
};

}  // namespace hearth::apiserver
