// OpenAPI v3 of what is served: kubectl explain prints it, kubectl apply and create look into it.
//
// One for each catalogue. Documents are made when somebody asks, once each; their addresses carry
// a hash, so clients keep them until something changes. Any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/catalogue.h"
#include "base/guarded.h"

namespace hearth::apiserver {

class OpenApi {
 public:
  using Text = std::shared_ptr<const std::string>;

  // `digest`: the catalogue's. `object_meta`: the schema of metadata, which schemas of CRDs leave
  // out; it lives as long as this.
  OpenApi(std::vector<Catalogue::Group> groups, std::string digest,
          const schema::Schema& object_meta);

  // GET /openapi/v3.
  const std::string& index() const { return index_; }
  // GET /openapi/v3/PATH, where PATH is "api/v1" or "apis/G/V"; null for what is not served.
  Text document(std::string_view path) const;
  // The document's ETag, which is also the hash in its address; empty for what is not served.
  std::string hash(std::string_view path) const;

  // GET /openapi/v2, as protobuf: as much as older kubectls need to leave checks to the server.
  std::string old_document() const;

 private:
  struct Part {
    const Catalogue::Group* group = nullptr;
    const Catalogue::Version* version = nullptr;
  };

  std::vector<Catalogue::Group> groups_;
  std::string digest_;
  const schema::Schema& object_meta_;
  std::map<std::string, Part, std::less<>> parts_;  // by path
  std::string index_;
  mutable Guarded<std::map<std::string, Text, std::less<>>> documents_;
};

// One document, without a cache.
Json open_api_document(const Catalogue::Group& group, const Catalogue::Version& version,
                       const schema::Schema& object_meta);

}  // namespace hearth::apiserver
