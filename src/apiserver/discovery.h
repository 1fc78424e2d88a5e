// What is served, told to clients: legacy discovery (a document for each group-version) and the
// aggregated one (everything at once), and the list of paths at "/".
//
// Pure functions of a catalogue's groups.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/catalogue.h"
#include "apiserver/negotiation.h"

namespace hearth::apiserver {

using Groups = std::vector<Catalogue::Group>;

// What may be done with a resource's objects: "create", "list", ...
std::vector<std::string> verbs_of(const Resource& resource);

// A path below an object. Its kind may be of another group: pods/eviction is policy/v1 Eviction.
struct Subresource {
  std::string name;
  std::string group, version;  // empty: the resource's own
  std::string kind;
  std::vector<std::string> verbs;
};
std::vector<Subresource> subresources_of(const Resource& resource);

// GET /api. `address`: "HOST:PORT" as the client sees us.
Json api_versions(std::string_view address);
// GET /apis.
Json api_group_list(const Groups& groups);
// GET /apis/G.
Json api_group(const Catalogue::Group& group);
// GET /api/v1, /apis/G/V.
Json api_resource_list(const Catalogue::Group& group, const Catalogue::Version& version);

// GET /api (`is_core`) and /apis, aggregated. `form` is not legacy.
Json aggregated_discovery(const Groups& groups, bool is_core, DiscoveryForm form);
// Its Content-Type, which clients look at to know what they got.
std::string_view aggregated_content_type(DiscoveryForm form);
// A quoted ETag of an answer's text.
std::string etag_of(std::string_view text);

// GET /.
Json root_paths(const Groups& groups);

}  // namespace hearth::apiserver
