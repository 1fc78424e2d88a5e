// A real server, caches that follow it, and short words for objects: what tests of templates and
// pools start from.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/clock.h"
#include "client/kinds.h"
#include "client/watch_cache.h"
#include "model/meta.h"

namespace hearth::controllers {

using apiserver::eventually;
using apiserver::json;
using model::Json;

// Until the cache shows the server's version of an object, or that there is none.
inline void follow(client::Client& client, const client::ResourceId& resource,
                   const client::WatchCache& cache, std::string_view name) {
  ASSERT_TRUE(eventually([&] {
    const auto there = client.find(resource, "default", name);
    const auto here = cache.find("default", name);
    if (!there || !here) return !there && !here;
    return model::resource_version_of(*there) == model::resource_version_of(*here);
  })) << name;
}

inline Json template_named(std::string_view name, std::string_view image = "python:3.12") {
  Json made = json(R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxTemplate",
    "metadata":{"namespace":"default"},
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main"}]}}}})");
  made.at_pointer("/metadata").as_object()["name"] = name;
  made.at_pointer("/spec/podTemplate/spec/containers/0").as_object()["image"] = image;
  return made;
}

}  // namespace hearth::controllers
