#include "tenants/default_templates.h"

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "client/kinds.h"
#include "model/meta.h"

namespace hearth::tenants {
namespace {

using apiserver::json;
using client::PatchKind;

class DefaultTemplatesTest : public testing::Test {
 protected:
  model::Json find_template(const std::string& name) {
    return client_.get(client::kSandboxTemplates, "default", name);
  }
  std::int64_t replicas(const std::string& name) {
    const auto pool = client_.find(client::kSandboxWarmPools, "default", name);
    return pool ? model::number_at(*pool, {"spec", "replicas"}).value_or(-1) : -1;
  }
  static std::string image_of(const model::Json& sandbox_template) {
    const auto& containers =
        *model::array_at(sandbox_template, {"spec", "podTemplate", "spec", "containers"});
    return std::string(model::text_at(containers.at(0), {"image"}));
  }

  apiserver::TestServer server_;
  client::Client& client_ = server_.client();
};

TEST_F(DefaultTemplatesTest, AreThereAfterTheFirstStart) {
  make_default_templates(client_, {});
  const auto base = find_template("base");
  EXPECT_EQ(model::label_of(base, "hearth.dev/public"), "true");
  EXPECT_EQ(image_of(base), "host");
  EXPECT_EQ(model::number_at(base, {"spec", "podTemplate", "spec", "securityContext", "runAsUser"}),
            1000);
  EXPECT_EQ(
      model::text_at(find_template("code-interpreter-v1"),
                     {"spec", "podTemplate", "metadata", "annotations", "hearth.dev/surfaces"}),
      "envd,code");
  EXPECT_EQ(
      model::text_at(base, {"spec", "podTemplate", "metadata", "annotations", "hearth.dev/sudo"}),
      "user");
  EXPECT_EQ(replicas("base"), 8);
  EXPECT_EQ(replicas("code-interpreter-v1"), 2);
  const auto pool = client_.get(client::kSandboxWarmPools, "default", "base");
  EXPECT_EQ(model::annotation_of(pool, "hearth.dev/sandbox-names"), "id");
}

TEST_F(DefaultTemplatesTest, AreWrittenOnce) {
  make_default_templates(client_, {});
  const auto before = find_template("base");
  make_default_templates(client_, {});
  EXPECT_EQ(model::resource_version_of(find_template("base")), model::resource_version_of(before));
}

TEST_F(DefaultTemplatesTest, FollowTheOptionsWhileNobodyChangedThem) {
  make_default_templates(client_, {});
  for (const char* image : {"python:3.12", "debian:12"}) {
    make_default_templates(client_, {.image = image, .warm = 4});
    EXPECT_EQ(image_of(find_template("base")), image);
    EXPECT_EQ(model::find(find_template("base"),
                          {"spec", "podTemplate", "spec", "securityContext", "runAsUser"}),
              nullptr);
    EXPECT_EQ(replicas("base"), 4);
  }
  make_default_templates(client_, {.warm = 0});
  EXPECT_EQ(replicas("base"), 0);
  EXPECT_EQ(replicas("code-interpreter-v1"), 0);
}

TEST_F(DefaultTemplatesTest, WhatPeopleChangedStays) {
  make_default_templates(client_, {});
  client_.patch(client::kSandboxWarmPools, "default", "base", PatchKind::merge,
                json(R"({"spec":{"replicas":3}})"));
  client_.patch(client::kSandboxTemplates, "default", "base", PatchKind::merge,
                json(R"({"spec":{"service":true}})"));
  make_default_templates(client_, {.image = "debian:12", .warm = 4});
  EXPECT_EQ(replicas("base"), 3);
  EXPECT_EQ(image_of(find_template("base")), "host");
  EXPECT_EQ(image_of(find_template("code-interpreter-v1")), "debian:12");
}

TEST_F(DefaultTemplatesTest, WhatIsNotOursStays) {
  client_.create(client::kSandboxTemplates, json(R"({
    "apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxTemplate",
    "metadata":{"name":"base","namespace":"default"},
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"c","image":"mine"}]}}}})"));
  make_default_templates(client_, {});
  EXPECT_EQ(image_of(find_template("base")), "mine");
}

TEST_F(DefaultTemplatesTest, NoPoolWhereNoneIsWanted) {
  make_default_templates(client_, {.warm = 0});
  EXPECT_EQ(replicas("base"), -1);
  make_default_templates(client_, {.warm = 2});
  EXPECT_EQ(replicas("base"), 2);
  EXPECT_EQ(replicas("code-interpreter-v1"), -1);
}

}  // namespace
}  // namespace hearth::tenants
