// Resources made by hand, for tests of what the server shows of itself. Not for anything else.
#pragma once

#include <memory>
#include <vector>

#include "apiserver/catalogue.h"

namespace hearth::apiserver {

inline schema::SchemaPtr make_schema(schema::Schema schema) {
  return std::make_shared<const schema::Schema>(std::move(schema));
}

inline Resource pods() {
  Resource pods;
  pods.version = "v1";
  pods.kind = "Pod";
  pods.list_kind = "PodList";
  pods.plural = "pods";
  pods.singular = "pod";
  pods.short_names = {"po"};
  pods.categories = {"all"};
  pods.built_in = true;
  pods.has_status = true;
  pods.subresources = {"log", "exec", "eviction"};
  return pods;
}

inline Resource sandboxes() {
  Resource sandboxes;
  sandboxes.group = "agents.x-k8s.io";
  sandboxes.version = "v1beta1";
  sandboxes.kind = "Sandbox";
  sandboxes.list_kind = "SandboxList";
  sandboxes.plural = "sandboxes";
  sandboxes.singular = "sandbox";
  sandboxes.short_names = {"sandbox"};
  sandboxes.has_status = true;
  return sandboxes;
}

inline ResourcePtr shared(Resource resource) {
  return std::make_shared<const Resource>(std::move(resource));
}

inline std::vector<Catalogue::Group> sample_groups() {
  Resource namespaces;
  namespaces.version = "v1";
  namespaces.kind = "Namespace";
  namespaces.plural = "namespaces";
  namespaces.singular = "namespace";
  namespaces.namespaced = false;
  namespaces.built_in = true;
  namespaces.subresources = {"finalize"};
  Resource reviews;
  reviews.group = "authorization.k8s.io";
  reviews.version = "v1";
  reviews.kind = "SelfSubjectAccessReview";
  reviews.plural = "selfsubjectaccessreviews";
  reviews.namespaced = false;
  reviews.built_in = true;
  reviews.create_only = true;
  Resource pools = sandboxes();
  pools.kind = "Pool";
  pools.plural = "pools";
  pools.singular = "pool";
  pools.short_names = {};
  pools.scale = ScalePaths{".spec.replicas", ".status.replicas", ""};
  Resource old = sandboxes();
  old.version = "v1alpha1";
  return {
      {"", {{"v1", {shared(std::move(namespaces)), shared(pods())}, false}}},
      {"authorization.k8s.io", {{"v1", {shared(std::move(reviews))}, false}}},
      {"agents.x-k8s.io",
       {{"v1beta1", {shared(std::move(pools)), shared(sandboxes())}, true},
        {"v1alpha1", {shared(std::move(old))}, true}}},
  };
}

}  // namespace hearth::apiserver
