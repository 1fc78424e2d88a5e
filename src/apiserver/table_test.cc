#include "apiserver/table.h"

#include <chrono>

#include <gtest/gtest.h>

#include "apiserver/views_testing.h"
#include "base/time_text.h"

namespace hearth::apiserver {
namespace {

const Time kNow = *parse_rfc3339("2026-11-15T10:00:00Z");

Json parsed(std::string_view text) {
  return model::parse_json(text).value;
}

Resource built_in(std::string group, std::string kind) {
  Resource resource;
  resource.group = std::move(group);
  resource.version = "v1";
  resource.kind = std::move(kind);
  resource.built_in = true;
  return resource;
}

// The cells of one object; every definition has one.
std::string cells(const Resource& resource, std::string_view object) {
  const Json table = TablePrinter(resource).print(parsed(object), {.now = kNow});
  const Json& row = (*model::array_at(table, {"rows"}))[0];
  const auto& cells = *model::array_at(row, {"cells"});
  EXPECT_EQ(cells.size(), model::array_at(table, {"columnDefinitions"})->size());
  return model::to_text(cells);
}

std::string pod(std::string_view rest) {
  return R"({"metadata":{"name":"p","creationTimestamp":"2026-11-15T09:58:54Z"},)" +
         std::string(rest) + "}";
}

Resource with_columns() {
  Resource resource = sandboxes();
  resource.columns = {
      {.name = "Ready",
       .type = "string",
       .json_path = ".status.conditions[?(@.type=='Ready')].status"},
      {.name = "Replicas", .type = "integer", .json_path = ".spec.replicas"},
      {.name = "Ratio", .type = "number", .priority = 1, .json_path = ".spec.ratio"},
      {.name = "On", .type = "boolean", .json_path = ".spec.on"},
      {.name = "Age", .type = "date", .json_path = ".metadata.creationTimestamp"},
      {.name = "Broken", .type = "string", .json_path = ".a..b"},
  };
  return resource;
}

TEST(TableTest, CustomColumns) {
  const Resource resource = with_columns();
  EXPECT_EQ(cells(resource, R"({"metadata":{"name":"x","creationTimestamp":"2026-11-13T07:00:00Z"},
      "spec":{"replicas":2,"ratio":0.5,"on":true},
      "status":{"conditions":[{"type":"Ready","status":"True"}]}})"),
            R"(["x","True",2,0.5,true,"2d3h",null])");
  EXPECT_EQ(cells(resource, R"({"metadata":{"name":"x"},"spec":{"replicas":"two","on":"yes"}})"),
            R"(["x",null,null,null,null,null,null])");
}

TEST(TableTest, ColumnsOfKindsThatDeclareNone) {
  EXPECT_EQ(
      cells(sandboxes(), R"({"metadata":{"name":"x","creationTimestamp":"2026-11-15T09:46:00Z"}})"),
      R"(["x","14m"])");
  EXPECT_EQ(cells(built_in("rbac.authorization.k8s.io", "Role"),
                  R"({"metadata":{"name":"r","creationTimestamp":"2026-11-15T09:46:00Z"}})"),
            R"(["r","2026-11-15T09:46:00Z"])");
}

TEST(TableTest, Definitions) {
  const Resource resource = with_columns();
  const Json table = TablePrinter(resource).print(
      parsed(R"({"metadata":{"resourceVersion":"7","continue":"c"},"items":[]})"), {.now = kNow});
  EXPECT_EQ(model::text_at(table, {"kind"}), "Table");
  EXPECT_EQ(model::text_at(table, {"apiVersion"}), "meta.k8s.io/v1");
  EXPECT_EQ(model::to_text(*model::find(table, {"metadata"})),
            R"({"resourceVersion":"7","continue":"c"})");
  const auto& definitions = *model::array_at(table, {"columnDefinitions"});
  EXPECT_EQ(
      model::to_text(definitions[0]),
      R"({"name":"Name","type":"string","format":"name","description":"Name of the object","priority":0})");
  EXPECT_EQ(
      model::to_text(definitions[3]),
      R"({"name":"Ratio","type":"number","format":"","description":"Custom resource definition column (in JSONPath format): .spec.ratio","priority":1})");
  EXPECT_EQ(model::array_at(table, {"rows"})->size(), 0U);
}

TEST(TableTest, WhatComesWithARow) {
  const Resource resource = sandboxes();
  const Json object = parsed(R"({"kind":"Sandbox","metadata":{"name":"x"},"spec":{"a":1}})");
  const auto row_object = [&](TableOptions options) {
    const Json table = TablePrinter(resource).print(object, options);
    return model::to_text(*model::find((*model::array_at(table, {"rows"}))[0], {"object"}));
  };
  EXPECT_EQ(row_object({.object = RowObject::none}), "null");
  EXPECT_EQ(
      row_object({}),
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x"}})");
  EXPECT_EQ(
      row_object({.meta_version = "v1beta1"}),
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":{"name":"x"}})");
  EXPECT_EQ(
      row_object({.object = RowObject::object}),
      R"({"kind":"Sandbox","metadata":{"name":"x"},"spec":{"a":1},"apiVersion":"agents.x-k8s.io/v1beta1"})");
  const Json later = TablePrinter(resource).print(object, {.has_columns = false});
  EXPECT_TRUE(model::find(later, {"columnDefinitions"})->is_null());
  EXPECT_EQ(parse_row_object(""), RowObject::metadata);
  EXPECT_EQ(parse_row_object("None"), RowObject::none);
  EXPECT_THROW(parse_row_object("All"), model::StatusError);
}

TEST(TableTest, PartialMetadata) {
  const Json object = parsed(R"({"metadata":{"name":"x","uid":"1"},"spec":{}})");
  EXPECT_EQ(
      model::to_text(to_partial_metadata(object, "v1")),
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x","uid":"1"}})");
  const Json list =
      parsed(R"({"metadata":{"resourceVersion":"262"},"items":[{"metadata":{"name":"x"}}]})");
  EXPECT_EQ(
      model::to_text(to_partial_metadata(list, "v1")),
      R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"262"},"items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"x"}}]})");
}

TEST(TableTest, APodThatRuns) {
  EXPECT_EQ(
      cells(pods(), pod(R"("spec":{"nodeName":"n","containers":[{},{}]},"status":{"phase":"Running",
      "podIPs":[{"ip":"10.0.0.1"}],"containerStatuses":[
      {"name":"a","ready":true,"restartCount":2,"state":{"running":{}},
       "lastState":{"terminated":{"finishedAt":"2026-11-15T09:59:00Z"}}},
      {"name":"b","ready":false,"restartCount":0,"state":{"running":{}}}]})")),
      R"x(["p","1/2","Running","2 (60s ago)","66s","10.0.0.1","n","<none>","<none>"])x");
  EXPECT_EQ(cells(pods(), pod(R"("spec":{"containers":[{}]},"status":{"phase":"Pending"})")),
            R"(["p","0/1","Pending","0","66s","<none>","<none>","<none>","<none>"])");
}

std::string state(std::string_view rest) {
  const std::string text = cells(pods(), pod(rest));
  const Json parsed_cells = parsed(text);
  return std::string(parsed_cells.get_array()[2].get_string().c_str());
}

TEST(TableTest, StatesOfAPod) {
  const auto containers = [](std::string_view phase, std::string_view statuses) {
    return R"("status":{"phase":")" + std::string(phase) + R"(","containerStatuses":[)" +
           std::string(statuses) + "]}";
  };
  EXPECT_EQ(state(containers("Pending", R"({"state":{"waiting":{"reason":"ImagePullBackOff"}}})")),
            "ImagePullBackOff");
  EXPECT_EQ(state(containers("Failed", R"({"state":{"terminated":{"exitCode":3}}})")),
            "ExitCode:3");
  EXPECT_EQ(state(containers("Failed", R"({"state":{"terminated":{"exitCode":137,"signal":9}}})")),
            "Signal:9");
  EXPECT_EQ(state(containers("Succeeded",
                             R"({"state":{"terminated":{"exitCode":0,"reason":"Completed"}}})")),
            "Completed");
  // One is done, one goes on.
  EXPECT_EQ(state(containers("Running",
                             R"({"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},
                                {"ready":true,"state":{"running":{}}})")),
            "NotReady");
  EXPECT_EQ(
      state(R"("spec":{"initContainers":[{"name":"i"},{"name":"j"}]},"status":{"phase":"Pending",
      "initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},
      {"name":"j","state":{"running":{}}}]})"),
      "Init:1/2");
  EXPECT_EQ(state(R"("status":{"phase":"Pending","initContainerStatuses":[
      {"name":"i","state":{"terminated":{"exitCode":1,"reason":"Error"}}}]})"),
            "Init:Error");
  EXPECT_EQ(state(R"("status":{"phase":"Failed","reason":"Evicted"})"), "Evicted");
  EXPECT_EQ(state(R"("status":{"phase":"Pending","conditions":[{"type":"PodScheduled",
      "reason":"SchedulingGated"}]})"),
            "SchedulingGated");
  const Json gone = parsed(R"({"metadata":{"name":"p","deletionTimestamp":"2026-11-15T09:59:00Z"},
      "status":{"phase":"Running"}})");
  const Json table = TablePrinter(pods()).print(gone, {.now = kNow});
  EXPECT_NE(model::to_text(table).find("Terminating"), std::string::npos);
}

TEST(TableTest, Services) {
  EXPECT_EQ(
      cells(built_in("", "Service"), pod(R"("spec":{"type":"NodePort","clusterIPs":["10.0.0.2"],
      "ports":[{"port":80,"nodePort":30080,"protocol":"TCP"},{"port":53,"protocol":"UDP"}],
      "selector":{"b":"2","a":"1"}})")),
      R"(["p","NodePort","10.0.0.2","<none>","80:30080/TCP,53/UDP","66s","a=1,b=2"])");
  EXPECT_EQ(cells(built_in("", "Service"),
                  pod(R"("spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{}})")),
            R"(["p","LoadBalancer","<none>","<pending>","<none>","66s","<none>"])");
}

TEST(TableTest, Volumes) {
  EXPECT_EQ(cells(built_in("", "PersistentVolumeClaim"),
                  pod(R"("spec":{"volumeName":"v","storageClassName":"s","volumeMode":"Filesystem"},
      "status":{"phase":"Bound","accessModes":["ReadWriteMany","ReadWriteOnce"],
      "capacity":{"storage":"1024Mi"}})")),
            R"(["p","Bound","v","1Gi","RWO,RWX","s","<unset>","66s","Filesystem"])");
  EXPECT_EQ(cells(built_in("", "PersistentVolume"),
                  pod(R"("spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOncePod"],
      "persistentVolumeReclaimPolicy":"Delete","claimRef":{"namespace":"n","name":"c"}},
      "status":{"phase":"Bound"})")),
            R"(["p","1Gi","RWOP","Delete","Bound","n/c","","<unset>","","66s","<unset>"])");
}

TEST(TableTest, EventsInBothSpellings) {
  EXPECT_EQ(cells(built_in("", "Event"), pod(R"("involvedObject":{"kind":"Pod","name":"x"},
      "type":"Normal","reason":"Started","message":" it runs\n","count":3,"source":{"component":"k"},
      "firstTimestamp":"2026-11-15T09:00:00Z","lastTimestamp":"2026-11-15T09:59:00Z")")),
            R"(["60s","Normal","Started","pod/x","","k","it runs","60m",3,"p"])");
  EXPECT_EQ(cells(built_in("events.k8s.io", "Event"), pod(R"("regarding":{"kind":"Pod","name":"x"},
      "type":"Normal","reason":"Started","note":"it runs","reportingController":"c",
      "reportingInstance":"i","eventTime":"2026-11-15T09:59:00.000000Z")")),
            R"(["60s","Normal","Started","pod/x","","c, i","it runs","60s",1,"p"])");
}

TEST(TableTest, TheOtherKinds) {
  EXPECT_EQ(cells(built_in("", "Namespace"), pod(R"("status":{"phase":"Active"})")),
            R"(["p","Active","66s"])");
  EXPECT_EQ(cells(built_in("", "Secret"), pod(R"("type":"Opaque","data":{"a":"","b":""})")),
            R"(["p","Opaque",2,"66s"])");
  EXPECT_EQ(cells(built_in("", "ConfigMap"), pod(R"("data":{"a":""},"binaryData":{"b":""})")),
            R"(["p",2,"66s"])");
  EXPECT_EQ(cells(built_in("", "ServiceAccount"), pod(R"("x":1)")), R"(["p","66s"])");
  EXPECT_EQ(
      cells(built_in("coordination.k8s.io", "Lease"), pod(R"("spec":{"holderIdentity":"h"})")),
      R"(["p","h","66s"])");
  EXPECT_EQ(cells(built_in("networking.k8s.io", "NetworkPolicy"),
                  pod(R"("spec":{"podSelector":{"matchLabels":{"a":"b"}}})")),
            R"(["p","a=b","66s"])");
  EXPECT_EQ(
      cells(built_in("rbac.authorization.k8s.io", "RoleBinding"),
            pod(R"("roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},
      {"kind":"Group","name":"g"},{"kind":"ServiceAccount","namespace":"n","name":"s"}])")),
      R"(["p","Role/r","66s","u","g","n/s"])");
  EXPECT_EQ(cells(built_in("discovery.k8s.io", "EndpointSlice"),
                  pod(R"("addressType":"IPv4","ports":[{"port":80},{"name":"any"},{},{"port":9}],
                      "endpoints":[{"addresses":["1.1.1.1","1.1.1.2"]},{"addresses":["1.1.1.3"]},
                      {"addresses":["1.1.1.4","1.1.1.5"]}])")),
            R"(["p","IPv4","80,any,* + 1 more...","1.1.1.1,1.1.1.2,1.1.1.3 + 2 more...","66s"])");
  EXPECT_EQ(cells(built_in("discovery.k8s.io", "EndpointSlice"), pod(R"("addressType":"IPv4")")),
            R"(["p","IPv4","<unset>","<unset>","66s"])");
  EXPECT_EQ(cells(built_in("storage.k8s.io", "StorageClass"), pod(R"("provisioner":"x")")),
            R"(["p","x","Delete","Immediate",false,"66s"])");
  EXPECT_EQ(
      cells(built_in("", "Node"),
            R"({"metadata":{"name":"n","labels":{"node-role.kubernetes.io/worker":""}},
      "spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}],
      "addresses":[{"type":"InternalIP","address":"10.0.0.3"}],
      "nodeInfo":{"kubeletVersion":"v1","kernelVersion":"6.1","architecture":"amd64"}}})"),
      R"x(["n","Ready,SchedulingDisabled","worker","<unknown>","v1","10.0.0.3","<none>","<unknown>","6.1 (amd64)","<unknown>"])x");
}

TEST(TableTest, NonsenseIsNoCrash) {
  for (const char* kind : {"Pod", "Service", "PersistentVolumeClaim", "PersistentVolume",
                           "Namespace", "Event", "Secret", "ConfigMap", "ServiceAccount", "Node"})
    for (
        const char* object :
        {"null", "[]", R"({"metadata":3,"spec":[],"status":"x","data":1})",
         R"({"spec":{"containers":"x","ports":[1],"accessModes":[{}]},"status":{"conditions":[1],"containerStatuses":[2],"initContainerStatuses":["x"]}})"})
      cells(built_in("", kind), object);
}

}  // namespace
}  // namespace hearth::apiserver
