#include <gtest/gtest.h>

#include "apiserver/kinds_strategies_internal.h"
#include "apiserver/server_testing.h"
#include "client/kinds.h"

namespace hearth::apiserver {
namespace {

Json pod_with(std::string_view ephemeral) {
  Json pod = json(fmt::format(R"({{"metadata":{{"name":"p","namespace":"default"}},"spec":{{
      "containers":[{{"name":"main","image":"x"}}],
      "volumes":[{{"name":"v","emptyDir":{{}}}}],"ephemeralContainers":[{}]}}}})",
                              ephemeral));
  pod_strategy().fill_in(pod);
  return pod;
}

using Sentences = std::vector<std::string>;

Sentences refusals(std::string_view old, std::string_view next) {
  const Json before = pod_with(old);
  Sentences said;
  for (const model::FieldError& error :
       pod_strategy().validate(pod_with(next), &before, "ephemeralcontainers"))
    said.push_back(fmt::format("{}: {}", error.field, error.detail));
  return said;
}

constexpr std::string_view kOne = R"({"name":"one","image":"x"})";

TEST(EphemeralContainers, MayBeAddedAndNothingElse) {
  EXPECT_EQ(refusals("", kOne), Sentences{});
  EXPECT_EQ(refusals(kOne, R"({"name":"one","image":"x"},{"name":"two","image":"x","stdin":true,
      "targetContainerName":"main"})"),
            Sentences{});
  EXPECT_EQ(refusals(kOne, ""),
            Sentences{"spec.ephemeralContainers: Forbidden: existing ephemeral containers \"one\" "
                      "may not be removed\n"});
  EXPECT_EQ(refusals(kOne, R"({"name":"one","image":"y"})"),
            Sentences{"spec.ephemeralContainers: Forbidden: existing ephemeral containers \"one\" "
                      "may not be changed\n"});
}

TEST(EphemeralContainers, ServeNobody) {
  constexpr std::string_view kNot = ": Forbidden: cannot be set for an Ephemeral Container";
  const std::string at = "spec.ephemeralContainers[0].";
  const Sentences said = refusals("", R"({"name":"one","image":"x","ports":[{"containerPort":80}],
      "livenessProbe":{"exec":{"command":["a"]}},"resources":{"limits":{"cpu":"1"}},
      "volumeMounts":[{"name":"v","mountPath":"/v","subPath":"a"}],"targetContainerName":"who"})");
  for (const char* field : {"ports", "livenessProbe", "resources", "volumeMounts[0].subPath"})
    EXPECT_EQ(std::ranges::count(said, fmt::format("{}{}{}", at, field, kNot)), 1) << field;
  EXPECT_EQ(std::ranges::count(said, at + R"(targetContainerName: Not found: "who")"), 1);
  EXPECT_EQ(said.size(), 5U);
  EXPECT_EQ(refusals("", R"({"name":"main","image":"x"})"),
            Sentences{R"(spec.ephemeralContainers[0].name: Duplicate value: "main")"});
}

TEST(EphemeralContainers, HaveADoorOfTheirOwn) {
  TestServer server;
  server.client().create(client::kPods, json(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"p","namespace":"default"},
      "spec":{"containers":[{"name":"main","image":"x"}]}})"));
  const Json patch = json(R"({"metadata":{"labels":{"a":"b"}},"spec":{"hostname":"other",
      "ephemeralContainers":[{"name":"one","image":"x"}]}})");
  EXPECT_THROW(
      server.client().patch(client::kPods, "default", "p", client::PatchKind::strategic, patch, {}),
      model::StatusError);

  const Json pod =
      server.client().patch(client::kPods, "default", "p", client::PatchKind::strategic, patch,
                            {.subresource = "ephemeralcontainers"});

  EXPECT_EQ(model::array_at(pod, {"spec", "ephemeralContainers"})->size(), 1U);
  EXPECT_EQ(model::text_at(pod, {"spec", "hostname"}), "");
  EXPECT_EQ(model::find(pod, {"metadata", "labels"}), nullptr);
  const Json second = server.client().patch(
      client::kPods, "default", "p", client::PatchKind::strategic,
      json(R"({"spec":{"ephemeralContainers":[{"name":"two","image":"x"}]}})"),
      {.subresource = "ephemeralcontainers"});
  EXPECT_EQ(model::array_at(second, {"spec", "ephemeralContainers"})->size(), 2U);
}

}  // namespace
}  // namespace hearth::apiserver
