#include "apiserver/usage_metrics.h"

#include <gtest/gtest.h>

#include "apiserver/discovery.h"
#include "apiserver/server_testing.h"
#include "apiserver/table.h"
#include "base/time_text.h"
#include "client/kinds.h"

namespace hearth::apiserver {
namespace {

using namespace std::chrono_literals;

const client::ResourceId kPodMetrics{"metrics.k8s.io", "v1beta1", "pods"};
const client::ResourceId kNodeMetrics{"metrics.k8s.io", "v1beta1", "nodes", false};

remote::UsageReport report() {
  remote::UsageReport made{.at = *parse_rfc3339("2026-11-15T10:00:00Z"), .node = "here"};
  made.all = {.cpu_nanocores = 1'500'000'000, .memory_bytes = 1 << 20, .window = 10s};
  made.sandboxes["one"] = {.cpu_nanocores = 250'000'000, .memory_bytes = 2048, .window = 12s};
  made.sandboxes["two"] = {.cpu_nanocores = 1, .memory_bytes = 4096, .window = 1500ms};
  return made;
}

constexpr std::string_view kStatus = R"({"phase":"Running","containerStatuses":[
    {"name":"a","containerID":"hearth://one","image":"x","imageID":"","ready":true,
     "restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}},
    {"name":"b","containerID":"hearth://two","image":"x","imageID":"","ready":true,
     "restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}},
    {"name":"c","containerID":"hearth://one","image":"x","imageID":"","ready":false,
     "restartCount":0,"state":{"terminated":{"exitCode":0}}}]})";

Json pod(std::string_view name, std::string_view label) {
  return json(fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}",
      "namespace":"default","labels":{{"app":"{}"}}}},
      "spec":{{"containers":[{{"name":"a","image":"x"}}]}}}})",
                          name, label));
}

TEST(UsageMetrics, OfAPodAreThoseOfItsContainersThatRun) {
  Json measured = pod("p", "web");
  EXPECT_EQ(pod_metrics(measured, report()), std::nullopt);
  measured.as_object()["status"] = json(kStatus);
  EXPECT_EQ(model::to_text(*pod_metrics(measured, report())),
            R"({"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":)"
            R"({"name":"p","namespace":"default","creationTimestamp":"2026-11-15T10:00:00Z",)"
            R"("labels":{"app":"web"}},"timestamp":"2026-11-15T10:00:00Z","window":"12.000s",)"
            R"("containers":[{"name":"a","usage":{"cpu":"250000000n","memory":"2Ki"}},)"
            R"({"name":"b","usage":{"cpu":"1n","memory":"4Ki"}}]})");
}

// As an engine has it: some pods run, and somebody measures.
class MetricsServer : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    ServerOptions options;
    options.state_dir = folder_;
    options.measure = report;
    server_.emplace(std::move(options));
    for (const auto& [name, label] : {std::pair("p", "web"), std::pair("q", "other")}) {
      api().create(client::kPods, pod(name, label));
      api().patch(client::kPods, "default", name, client::PatchKind::merge,
                  model::JsonObject{{"status", json(kStatus)}}, {.subresource = "status"});
    }
    api().create(client::kPods, pod("idle", "web"));
    api().create(client::kNodes,
                 json(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"here"}})"));
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  client::Client& api() { return server_->client(); }
  std::vector<std::string> names(const client::ResourceId& what, const client::ListOptions& how) {
    std::vector<std::string> found;
    for (const auto& item : api().list(what, how).items)
      found.emplace_back(model::text_at(item, {"metadata", "name"}));
    return found;
  }

  const std::string folder_ = std::filesystem::temp_directory_path() / ("metrics-" + random_hex(6));
  std::optional<Server> server_;
};

TEST_F(MetricsServer, TellsOfThoseThatRun) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(kPodMetrics, {}), (Names{"p", "q"}));
  EXPECT_EQ(names(kPodMetrics, {.label_selector = "app=web"}), Names{"p"});
  EXPECT_EQ(names(kNodeMetrics, {}), Names{"here"});
  EXPECT_EQ(model::text_at(api().get(kNodeMetrics, "", "here"), {"usage", "cpu"}), "1500000000n");
}

TEST_F(MetricsServer, SaysWhatIsNotThere) {
  const auto refusal = [&](const client::ResourceId& what, std::string_view ns,
                           std::string_view name) -> std::string {
    try {
      api().get(what, ns, name);
    } catch (const model::StatusError& error) {
      return error.status().message;
    }
    return "";
  };
  EXPECT_EQ(refusal(kPodMetrics, "default", "idle"),
            R"(podmetrics.metrics.k8s.io "default/idle" not found)");
  EXPECT_EQ(refusal(kNodeMetrics, "", "there"), R"(nodemetrics.metrics.k8s.io "there" not found)");
  EXPECT_THROW(api().remove(kPodMetrics, "default", "p", {}), model::StatusError);
}

TEST(UsageMetrics, AreNotThereWhereNobodyMeasures) {
  EXPECT_EQ(Catalogue({}).find_group(kMetricsGroup), nullptr);
  const Catalogue catalogue({}, nullptr, /*measures=*/true);
  const Catalogue::Group* group = catalogue.find_group(kMetricsGroup);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(model::to_text(api_resource_list(*group, group->versions.front()).at("resources")),
            R"([{"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics",)"
            R"("verbs":["get","list"]},{"name":"pods","singularName":"","namespaced":true,)"
            R"("kind":"PodMetrics","verbs":["get","list"]}])");
  EXPECT_EQ(catalogue.storage("pods.metrics.k8s.io"), nullptr);
}

TEST(UsageMetrics, HaveColumns) {
  Json measured = pod("p", "web");
  measured.as_object()["status"] = json(kStatus);
  const std::vector<Resource> resources = metrics_resources();
  const Json table =
      TablePrinter(resources[1]).print(*pod_metrics(measured, report()), TableOptions());
  EXPECT_EQ(model::to_text(table.at("rows").at(0).at("cells")), R"(["p","251m","6Ki","12.000s"])");
}

}  // namespace
}  // namespace hearth::apiserver
