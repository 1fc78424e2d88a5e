// Server-side apply, after exchanges with a real kube-apiserver.
#include <gtest/gtest.h>

#include "model/status.h"
#include "patch/managed_fields.h"
#include "patch/owners_internal.h"
#include "patch/test_schemas_internal.h"

namespace hearth::patch {
namespace {

constexpr std::string_view kHead =
    R"({"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"ssa1")";

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

// A Sandbox: the rest of its metadata, then its other members.
Json sandbox(std::string_view metadata, std::string_view rest) {
  std::string text(kHead);
  if (!metadata.empty()) text += ',' + std::string(metadata);
  text += '}';
  if (!rest.empty()) text += ',' + std::string(rest);
  return json(text + '}');
}

Json with_image(std::string_view image, bool labelled = true) {
  const std::string field = image.empty() ? "" : R"(,"image":")" + std::string(image) + "\"";
  return sandbox(
      labelled ? R"("labels":{"k":"v"})" : "",
      R"("spec":{"podTemplate":{"spec":{"containers":[{"name":"main")" + field + "}]}}}");
}

Manager manager(std::string name, int second = 0, std::string subresource = "") {
  return {.name = std::move(name),
          .subresource = std::move(subresource),
          .api_version = "agents.x-k8s.io/v1beta1",
          .time = Time(std::chrono::seconds(1'700'000'000 + second))};
}

Json applied(const Json* live, const Json& configuration, const Manager& by, bool force = false) {
  return apply(live, configuration, test_sandbox(), by, force);
}

model::Status refusal(const Json* live, const Json& configuration, const Manager& by,
                      bool force = false) {
  try {
    ADD_FAILURE() << "was not refused: " << model::to_text(applied(live, configuration, by, force));
  } catch (const model::StatusError& error) {
    return error.status();
  }
  return {};
}

std::string part(const Json& object, model::Path path) {
  const Json* found = model::find(object, path);
  return found ? model::to_text(*found) : "none";
}

constexpr std::string_view kAllOfMain =
    R"({"f:metadata":{"f:labels":{"f:k":{}}},"f:spec":{"f:podTemplate":{"f:spec":)"
    R"({"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:image":{},"f:name":{}}}}}}})";

TEST(Apply, CreatesAndOwnsExactlyWhatItNames) {
  const Json object = applied(nullptr, with_image("x"), manager("m1"));

  EXPECT_EQ(owners(object), "m1 Apply " + std::string(kAllOfMain));
  EXPECT_EQ(part(object, {"spec"}),
            R"({"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}})");
}

TEST(Apply, TheSameAgainChangesNothing) {
  const Json object = applied(nullptr, with_image("x"), manager("m1"));
  EXPECT_TRUE(model::is_same(applied(&object, with_image("x"), manager("m1", 60)), object));
}

TEST(Apply, AnotherValueIsAConflict) {
  const Json object = applied(nullptr, with_image("x"), manager("m1"));
  const model::Status status = refusal(&object, with_image("y"), manager("m2", 1));

  EXPECT_EQ(model::to_text(to_json(status)),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
            R"("Apply failed with 1 conflict: conflict with \"m1\": )"
            R"(.spec.podTemplate.spec.containers[name=\"main\"].image","reason":"Conflict",)"
            R"("details":{"causes":[{"reason":"FieldManagerConflict","message":)"
            R"("conflict with \"m1\"","field":)"
            R"(".spec.podTemplate.spec.containers[name=\"main\"].image"}]},"code":409})");
}

TEST(Apply, SeveralConflictsAreListedByManager) {
  const Json one =
      applied(nullptr, sandbox(R"("labels":{"k":"v"})", R"("spec":{"tags":["t"]})"), manager("m1"));
  Json two = one;
  two.get_object()["spec"].get_object()["operatingMode"] = "Running";
  two.get_object()["spec"].get_object()["share"] = 1;
  record_update(&one, two, test_sandbox(), manager("ctl", 1));

  const model::Status status = refusal(
      &two,
      sandbox(R"("labels":{"k":"w"})", R"("spec":{"operatingMode":"Suspended","share":"50%"})"),
      manager("m2", 2));

  EXPECT_EQ(status.message,
            "Apply failed with 3 conflicts: conflicts with \"ctl\" using "
            "agents.x-k8s.io/v1beta1:\n- .spec.operatingMode\n- .spec.share\n"
            "conflicts with \"m1\":\n- .metadata.labels.k");
  EXPECT_EQ(status.causes.size(), 3U);
}

TEST(Apply, ForceTakesTheField) {
  const Json one = applied(nullptr, with_image("x"), manager("m1"));
  const Json two = applied(&one, with_image("y"), manager("m2", 1), /*force=*/true);

  EXPECT_EQ(owners(two),
            R"(m1 Apply {"f:metadata":{"f:labels":{"f:k":{}}},"f:spec":{"f:podTemplate":{"f:spec":)"
            R"({"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:name":{}}}}}}})"
            "\nm2 Apply " +
                std::string(kAllOfMain));
  EXPECT_NE(part(two, {"spec"}).find(R"("image":"y")"), std::string::npos);
}

TEST(Apply, EqualValuesAreShared) {
  const Json one = applied(nullptr, with_image("x"), manager("m1"));
  const Json two = applied(&one, with_image("x"), manager("m2", 1));
  EXPECT_EQ(owners(two),
            "m1 Apply " + std::string(kAllOfMain) + "\nm2 Apply " + std::string(kAllOfMain));

  // Who drops a shared field only drops its claim; nothing else changes, not even the time.
  const Json three = applied(&two, with_image("", /*labelled=*/false), manager("m1", 2));
  EXPECT_EQ(part(three, {"metadata", "labels"}), R"({"k":"v"})");
  EXPECT_NE(part(three, {"spec"}).find(R"("image":"x")"), std::string::npos);
  EXPECT_EQ(owners(three), R"(m1 Apply {"f:spec":{"f:podTemplate":{"f:spec":{"f:containers":)"
                           R"({"k:{\"name\":\"main\"}":{".":{},"f:name":{}}}}}}})"
                           "\nm2 Apply " +
                               std::string(kAllOfMain));
  EXPECT_EQ(model::text_at((*model::array_at(three, {"metadata", "managedFields"}))[0], {"time"}),
            "2023-11-14T22:13:20Z");
}

TEST(Apply, WhatIsDroppedAndNobodysGoes) {
  const Json one = applied(nullptr, with_image("x"), manager("m1"));
  const Json two = applied(&one, with_image("", /*labelled=*/false), manager("m1", 1));

  EXPECT_EQ(part(two, {"spec"}), R"({"podTemplate":{"spec":{"containers":[{"name":"main"}]}}})");
  EXPECT_EQ(part(two, {"metadata", "labels"}), "none");
  EXPECT_EQ(model::text_at(two, {"metadata", "name"}), "ssa1");
}

TEST(Apply, DroppedItemsOfListsAndMapsGo) {
  const Json one = applied(
      nullptr,
      sandbox(R"("labels":{"a":"1","b":"2"},"finalizers":["x","y"])",
              R"("spec":{"tags":["s","t"],"settings":{"k":"v","l":"w"},"podTemplate":{"spec":{)"
              R"("containers":[{"name":"main"},{"name":"side","image":"i"}]}}})"),
      manager("m1"));
  const Json two =
      applied(&one,
              sandbox(R"("labels":{"b":"2"},"finalizers":["y"])",
                      R"("spec":{"tags":["t"],"settings":{"l":"w"},"podTemplate":{"spec":{)"
                      R"("containers":[{"name":"main"}]}}})"),
              manager("m1", 1));

  EXPECT_EQ(part(two, {"spec"}), R"({"tags":["t"],"settings":{"l":"w"},"podTemplate":{"spec":)"
                                 R"({"containers":[{"name":"main"}]}}})");
  EXPECT_EQ(part(two, {"metadata", "labels"}), R"({"b":"2"})");
  EXPECT_EQ(part(two, {"metadata", "finalizers"}), R"(["y"])");
}

TEST(Apply, AListWithoutItsLastItemGoes) {
  const Json one =
      applied(nullptr, sandbox("", R"("spec":{"tags":["t"],"operatingMode":"a"})"), manager("m1"));
  const Json two = applied(&one, sandbox("", R"("spec":{"operatingMode":"a"})"), manager("m1", 1));
  EXPECT_EQ(part(two, {"spec"}), R"({"operatingMode":"a"})");
}

TEST(Apply, WhatOthersPutBesideItStays) {
  const Json one = applied(nullptr, sandbox("", R"("spec":{"settings":{"k":"v"}})"), manager("m1"));
  Json two = one;
  model::find(two, {"spec", "settings"})->get_object()["l"] = "w";
  record_update(&one, two, test_sandbox(), manager("ctl", 1));

  const Json three = applied(&two, sandbox("", ""), manager("m1", 2));

  EXPECT_EQ(part(three, {"spec"}), R"({"settings":{"l":"w"}})");
  EXPECT_EQ(owners(three), R"(ctl Update {"f:spec":{"f:settings":{"f:l":{}}}})");
}

TEST(Apply, AnItemTakesAlongWhatOthersPutIntoIt) {
  const Json one = applied(nullptr, with_image("x"), manager("m1"));
  Json two = one;
  Json& main = model::find(two, {"spec", "podTemplate", "spec", "containers"})->get_array()[0];
  main.get_object()["command"] = json(R"(["run"])");
  two.get_object()["spec"].get_object()["operatingMode"] = "Running";
  record_update(&one, two, test_sandbox(), manager("ctl", 1));

  const Json three = applied(&two, sandbox("", ""), manager("m1", 2));

  // They own a part of it, not the item.
  EXPECT_EQ(part(three, {"spec"}), R"({"operatingMode":"Running"})");
}

TEST(Apply, MergedListsFollowTheConfiguration) {
  const Json one = applied(nullptr, sandbox("", R"("spec":{"tags":["a","b","c"]})"), manager("m1"));
  const Json two =
      applied(&one, sandbox("", R"("spec":{"tags":["c","new","a"]})"), manager("m2", 1));
  EXPECT_EQ(part(two, {"spec", "tags"}), R"(["b","c","new","a"])");
}

TEST(Apply, AtomicPartsChangeHandsAsAWhole) {
  const auto selecting = [](std::string_view selector) {
    return sandbox(
        "", R"("spec":{"podTemplate":{"spec":{"nodeSelector":)" + std::string(selector) + "}}}");
  };
  const Json one = applied(nullptr, selecting(R"({"a":"1"})"), manager("m1"));

  EXPECT_EQ(refusal(&one, selecting(R"({"b":"2"})"), manager("m2", 1)).causes.at(0).field,
            ".spec.podTemplate.spec.nodeSelector");
  const Json two = applied(&one, selecting(R"({"b":"2"})"), manager("m2", 1), /*force=*/true);
  EXPECT_EQ(part(two, {"spec", "podTemplate", "spec", "nodeSelector"}), R"({"b":"2"})");
  EXPECT_EQ(owners(two),
            R"(m2 Apply {"f:spec":{"f:podTemplate":{"f:spec":{"f:nodeSelector":{}}}}})");
}

TEST(Apply, StatusHasAnEntryOfItsOwn) {
  const Json one = applied(nullptr, with_image("x"), manager("m1"));
  const Json two = applied(&one, sandbox("", R"("status":{"podIPs":["1.1.1.1"]})"),
                           manager("ctl", 1, "status"), /*force=*/true);
  EXPECT_EQ(owners(two), "m1 Apply " + std::string(kAllOfMain) +
                             "\nctl Apply/status {\"f:status\":{\"f:podIPs\":{}}}");
}

TEST(Apply, AnUpdateTakesTheFieldFromTheApplier) {
  const Json one = applied(nullptr, with_image("x"), manager("m1"));
  Json two = one;
  two.get_object()["metadata"].get_object()["labels"].get_object()["k"] = "other";
  record_update(&one, two, test_sandbox(), manager("edit", 1));

  EXPECT_EQ(refusal(&two, with_image("x"), manager("m1", 2)).message,
            "Apply failed with 1 conflict: conflict with \"edit\" using "
            "agents.x-k8s.io/v1beta1: .metadata.labels.k");
}

TEST(Apply, AnObjectWithoutOwnersBelongsToNobodyInParticular) {
  const Json live = sandbox(R"("labels":{"k":"v"})", R"("spec":{"operatingMode":"a"})");
  const Json two = applied(&live, sandbox(R"("labels":{"k":"v"})", ""), manager("m1", 1));
  EXPECT_EQ(owners(two),
            R"(m1 Apply {"f:metadata":{"f:labels":{"f:k":{}}}})"
            "\n"
            R"(before-first-apply Update {"f:metadata":{"f:labels":{".":{},"f:k":{}}},)"
            R"("f:spec":{".":{},"f:operatingMode":{}}})");
}

TEST(Apply, RefusesInTheWordsOfTheRealOne) {
  const model::Status unknown = refusal(nullptr, sandbox("", R"("spec":{"foo":1})"), manager("m1"));
  EXPECT_EQ(model::to_text(to_json(unknown)),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":)"
            R"("failed to create typed patch object (/ssa1; agents.x-k8s.io/v1beta1, )"
            R"(Kind=Sandbox): .spec.foo: field not declared in schema","code":500})");
  const model::Status twice =
      refusal(nullptr,
              sandbox("", R"("spec":{"podTemplate":{"spec":{"containers":[{"name":"main"},)"
                          R"({"name":"main"}]}}})"),
              manager("m1"));
  EXPECT_EQ(twice.message,
            "failed to create typed patch object (/ssa1; agents.x-k8s.io/v1beta1, Kind=Sandbox): "
            ".spec.podTemplate.spec.containers: duplicate entries for key [name=\"main\"]");
  const model::Status managed =
      refusal(nullptr, sandbox(R"("managedFields":[{"manager":"z"}])", ""), manager("m1"));
  EXPECT_EQ(managed.code, 400U);
  EXPECT_EQ(managed.message, "metadata.managedFields must be nil");
  const model::Status kind =
      refusal(nullptr, json(R"({"kind":"Sandbox","metadata":{"name":"ssa1"}})"), manager("m1"));
  EXPECT_EQ(kind.code, 400U);
  EXPECT_EQ(kind.message, "invalid object type: /, Kind=Sandbox");
}

TEST(Apply, TellsEveryWrongType) {
  const model::Status status = refusal(
      nullptr,
      sandbox("", R"("spec":{"operatingMode":1,"tags":"x","podTemplate":{"spec":{"containers":)"
                  R"([{"image":"i"}],"hostNetwork":"x","replicas":"y"}}})"),
      manager("m1"));
  EXPECT_EQ(status.code, 500U);
  EXPECT_EQ(status.message.substr(status.message.find("): ") + 3),
            "errors:\n"
            "  .spec.operatingMode: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.tags: expected list, got &{x}\n"
            "  .spec.podTemplate.spec.containers: element 0: associative list with keys has an "
            "element that omits all key fields [\"name\"] (and doesn't have default values for "
            "any key fields)\n"
            "  .spec.podTemplate.spec.hostNetwork: expected boolean, got &{x}\n"
            "  .spec.podTemplate.spec.replicas: expected numeric (int or float), got string");
}

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

TEST(Apply, KubectlMovesFromItsOwnSideToTheServers) {
  Json live = sandbox(R"("labels":{"k":"v"})", "");
  const std::string text = model::to_text(live) + "\n";
  live.get_object()["metadata"].get_object()["annotations"].emplace_object()[kLastApplied] = text;
  record_update(nullptr, live, test_sandbox(), manager("kubectl-client-side-apply"));

  // What the annotation names was kubectl's, so it may change it.
  const Json moved = applied(&live, sandbox(R"("labels":{"k":"w"})", ""), manager("kubectl", 1));
  EXPECT_EQ(part(moved, {"metadata", "labels"}), R"({"k":"w"})");
  EXPECT_NE(model::text_at(moved, {"metadata", "annotations", kLastApplied}).find(R"({"k":"w"})"),
            std::string::npos);

  // Others may not, nor may kubectl what somebody changed since.
  EXPECT_EQ(refusal(&live, sandbox(R"("labels":{"k":"w"})", ""), manager("m1", 1)).code, 409U);
  Json changed = live;
  changed.get_object()["metadata"].get_object()["labels"].get_object()["k"] = "x";
  record_update(&live, changed, test_sandbox(), manager("edit", 1));
  EXPECT_EQ(refusal(&changed, sandbox(R"("labels":{"k":"w"})", ""), manager("kubectl", 2)).code,
            409U);
}

TEST(Apply, ABuiltInKindGainsNothingItDoesNotName) {
  Manager by = manager("m1");
  by.api_version = "v1";
  const Json pod = apply(static_cast<const Json*>(nullptr),
                         json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})"),
                         test_pod(), by, /*force=*/false);
  EXPECT_EQ(model::to_text(pod), R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})");
}

}  // namespace
}  // namespace hearth::patch
