#include "node/fit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hearth::node {
namespace {

using model::Json;

Json json(const std::string& text) {
  return model::parse_json(text).value;
}

Json node() {
  return json(R"({"metadata":{"name":"here","labels":{"os":"linux","cores":"8"}},
      "status":{"allocatable":{"cpu":"2","memory":"4Gi","pods":"3"}}})");
}

Json asking(const std::string& cpu, const std::string& memory) {
  return json(fmt::format(
      R"({{"spec":{{"containers":[{{"resources":{{"requests":{{"cpu":"{}","memory":"{}"}}}}}}]}}}})",
      cpu, memory));
}

TEST(Fit, InitContainersCountWhereTheyAreLarger) {
  const Json pod = json(R"({"spec":{
      "initContainers":[{"resources":{"requests":{"cpu":"1","memory":"1Mi"}}},
        {"restartPolicy":"Always","resources":{"requests":{"cpu":"100m"}}},
        {"resources":{"requests":{"cpu":"950m"}}}],
      "containers":[{"resources":{"requests":{"cpu":"200m","memory":"2Mi"}}},
        {"resources":{"requests":{"cpu":0.5,"memory":100}}}]}})");
  const Resources resources = requests_of(pod);
  EXPECT_EQ(resources.cpu_millis, 1050) << "the last init container beside the sidecar";
  EXPECT_EQ(resources.memory_bytes, (2 << 20) + 100);
  EXPECT_EQ(resources.pods, 1);
}

TEST(Fit, WhatIsThereIsGivenOnce) {
  EXPECT_EQ(why_not(asking("2", "4Gi"), node(), {}), "");
  EXPECT_EQ(why_not(asking("2", "1Gi"), node(), {.cpu_millis = 1}), "Insufficient cpu");
  EXPECT_EQ(why_not(asking("3", "5Gi"), node(), {}), "Insufficient cpu, 1 Insufficient memory");
  EXPECT_EQ(why_not(asking("0", "0"), node(), {.cpu_millis = 9000}), "");
  EXPECT_EQ(why_not(asking("0", "0"), node(), {.pods = 3}), "Too many pods");
  EXPECT_EQ(why_not(asking("no quantity", "{}"), node(), {}), "");
}

TEST(Fit, ALimitIsAskedForUnlessTheRequestSaysLess) {
  const Json pod = json(R"({"spec":{"containers":[
      {"resources":{"limits":{"cpu":"1","memory":"1Mi"}}},
      {"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"100m"}}}]}})");
  EXPECT_EQ(requests_of(pod).cpu_millis, 1100);
  EXPECT_EQ(requests_of(pod).memory_bytes, 1 << 20);
}

TEST(Fit, LimitsOfSandboxesReserveNothing) {
  Json pod = model::parse_json(R"({"metadata":{"ownerReferences":[{"kind":"Sandbox","name":"a",
      "apiVersion":"agents.x-k8s.io/v1beta1","uid":"u","controller":true}]},"spec":{"containers":[
      {"resources":{"limits":{"cpu":"1","memory":"1Mi"}}},
      {"resources":{"limits":{"cpu":"1000m","memory":"1Mi"},
                    "requests":{"cpu":"1","memory":"512Ki"}}}]}})")
                 .value;
  EXPECT_EQ(requests_of(pod).cpu_millis, 0);
  EXPECT_EQ(requests_of(pod).memory_bytes, 512 << 10);
  pod.at("metadata").as_object().erase("ownerReferences");
  EXPECT_EQ(requests_of(pod).cpu_millis, 2000);
}

TEST(Fit, ATaintIsForThoseWhoTolerateIt) {
  Json closed = node();
  model::make_object_at(closed, {"spec"})["taints"] = json(
      R"([{"key":"soft","effect":"PreferNoSchedule"},{"key":"gpu","value":"a100","effect":"NoSchedule"}])");
  const auto with = [&](const std::string& tolerations) {
    return why_not(json(R"({"spec":{"tolerations":[)" + tolerations + "]}}"), closed, {});
  };
  const std::string refused = "node(s) had untolerated taint {gpu: a100}";
  EXPECT_EQ(with(""), refused);
  EXPECT_EQ(with(R"({"key":"gpu","value":"h100"})"), refused);
  EXPECT_EQ(with(R"({"key":"gpu","operator":"Exists","effect":"NoExecute"})"), refused);
  EXPECT_EQ(with(R"({"value":"a100"})"), refused) << "only Exists is for all keys";
  EXPECT_EQ(with(R"({"key":"gpu","value":"a100","effect":"NoSchedule"})"), "");
  EXPECT_EQ(with(R"({"key":"gpu","operator":"Exists"})"), "");
  EXPECT_EQ(with(R"({"operator":"Exists"})"), "");
}

TEST(Fit, WhereMemoryIsShortTheyComeWhoAskedForSome) {
  Json tight = node();
  model::make_object_at(tight, {"spec"})["taints"] =
      json(R"([{"key":"node.kubernetes.io/memory-pressure","effect":"NoSchedule"}])");
  EXPECT_EQ(why_not(json(R"({"spec":{"containers":[{"name":"c"}]}})"), tight, {}),
            "node(s) had untolerated taint {node.kubernetes.io/memory-pressure: }");
  EXPECT_EQ(why_not(asking("1m", "1Mi"), tight, {}), "");
}

TEST(Fit, SomeWaitForAnothersWord) {
  EXPECT_FALSE(is_left_to_others(json(R"({"spec":{"schedulerName":"default-scheduler"}})")));
  EXPECT_FALSE(is_left_to_others(json(R"({"spec":{"schedulingGates":[]}})")));
  EXPECT_TRUE(is_left_to_others(json(R"({"spec":{"schedulerName":"mine"}})")));
  EXPECT_TRUE(is_left_to_others(json(R"({"spec":{"schedulingGates":[{"name":"g"}]}})")));
}

TEST(Fit, SelectorsAndAffinity) {
  const auto fits = [](const std::string& spec) {
    return why_not(json(R"({"spec":)" + spec + "}"), node(), {}).empty();
  };
  EXPECT_TRUE(fits(R"({"nodeSelector":{"os":"linux"}})"));
  EXPECT_FALSE(fits(R"({"nodeSelector":{"os":"plan9"}})"));
  EXPECT_FALSE(fits(R"({"nodeSelector":{"gpu":""}})"));
  const auto with_terms = [&](const std::string& terms) {
    return fits(R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
                R"({"nodeSelectorTerms":)" +
                terms + "}}}}");
  };
  const auto with = [&](const std::string& key, const std::string& op, const std::string& values) {
    return with_terms(
        fmt::format(R"([{{"matchExpressions":[{{"key":"{}","operator":"{}","values":{}}}]}}])", key,
                    op, values));
  };
  EXPECT_TRUE(with("os", "In", R"(["x","linux"])"));
  EXPECT_FALSE(with("os", "NotIn", R"(["linux"])"));
  EXPECT_TRUE(with("gpu", "NotIn", R"(["yes"])"));
  EXPECT_TRUE(with("os", "Exists", "[]"));
  EXPECT_TRUE(with("gpu", "DoesNotExist", "[]"));
  EXPECT_TRUE(with("cores", "Gt", R"(["7"])"));
  EXPECT_FALSE(with("cores", "Lt", R"(["8"])"));
  EXPECT_FALSE(with("os", "Gt", R"(["7"])"));
  EXPECT_FALSE(with("os", "Sings", R"(["7"])"));
  EXPECT_FALSE(with_terms("[{}]")) << "a term that says nothing selects nothing";
  EXPECT_TRUE(with_terms(
      R"([{},{"matchFields":[{"key":"metadata.name","operator":"In","values":["here"]}]}])"));
}

TEST(Fit, ACordonedNodeTakesNobody) {
  Json closed = node();
  model::make_object_at(closed, {"spec"})["unschedulable"] = true;
  EXPECT_EQ(why_not(asking("0", "0"), closed, {}), "node(s) were unschedulable");
}

}  // namespace
}  // namespace hearth::node
