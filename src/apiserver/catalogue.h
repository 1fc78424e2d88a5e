// Everything that is served at one moment: built-in resources and those of established CRDs.
//
// A snapshot that never changes; the server swaps it for another when a CRD comes or goes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/resource.h"

namespace hearth::apiserver {

class Catalogue {
 public:
  struct Version {
    std::string version;
    std::vector<ResourcePtr> resources;  // by plural
    bool from_crds = false;              // no built-in kind is in it
  };
  struct Group {
    std::string name;
    std::vector<Version> versions;  // the preferred one first
  };

  // `crds` are CustomResourceDefinition objects; those that are not established, whose names clash
  // with others or whose schema does not parse are left out (their conditions say so: see crds.h).
  // `previous` spares reading schemas again that did not change. `measures`: metrics.k8s.io is
  // served.
  explicit Catalogue(const std::vector<Json>& crds, const Catalogue* previous = nullptr,
                     bool measures = false);

  // Null for what is not served.
  ResourcePtr find(std::string_view group, std::string_view version, std::string_view plural) const;
  // By kind; the first of its group's versions if `version` is empty.
  ResourcePtr find_kind(std::string_view group, std::string_view version,
                        std::string_view kind) const;
  // The resource whose version is the one objects are kept in.
  ResourcePtr storage(std::string_view store_name) const;

  // Core first, then in the order of discovery.
  const std::vector<Group>& groups() const { return groups_; }
  const Group* find_group(std::string_view name) const;
  const Version* find_version(std::string_view group, std::string_view version) const;
  // CRDs that are established and yet not served, by metadata.name, and why.
  const std::map<std::string, std::string, std::less<>>& problems() const { return problems_; }
  // One of each store name, for namespaces and garbage that look at everything.
  const std::vector<ResourcePtr>& stored() const { return stored_; }

  // Changes whenever something that discovery or OpenAPI shows has changed.
  const std::string& digest() const { return digest_; }

 private:
  void add_builtin_kinds();
  void add_reviews();
  void add_crd(const Json& crd, const Catalogue* previous);
  void add(Resource resource);
  void sort_versions();
  void find_stored();
  void make_digest(const std::vector<Json>& crds);

  std::vector<Group> groups_;
  std::map<std::string, ResourcePtr, std::less<>> by_path_;  // "group/version/plural"
  std::vector<ResourcePtr> stored_;
  std::map<std::string, std::string, std::less<>> problems_;
  std::string digest_;
};

using CataloguePtr = std::shared_ptr<const Catalogue>;

}  // namespace hearth::apiserver
