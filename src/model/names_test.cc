#include "model/names.h"

#include <set>

#include <gtest/gtest.h>

namespace hearth::model {
namespace {

std::vector<std::string> complaints(std::string_view metadata, MetaRules rules = {}) {
  const std::string text = "{\"metadata\":" + std::string(metadata) + "}";
  std::vector<std::string> texts;
  for (const FieldError& error : validate_object_meta(parse_json(text).value, rules))
    texts.push_back(error.field + ": " + error.detail);
  return texts;
}

TEST(NamesTest, KindsOfNames) {
  EXPECT_TRUE(check_dns_subdomain("a.b-c.1").empty());
  for (const char* bad : {"", "Bad_Name", "-a", "a-", "a..b", ".a", "a.", "a b"})
    EXPECT_FALSE(check_dns_subdomain(bad).empty()) << bad;
  EXPECT_EQ(check_dns_subdomain(std::string(254, 'a')),
            Problems{"must be no more than 253 characters"});
  EXPECT_TRUE(check_dns_label("1-a").empty());
  EXPECT_EQ(check_dns_label("a.b"), Problems{"must not contain dots"});
  EXPECT_EQ(check_dns_label(std::string(64, 'a')), Problems{"must be no more than 63 characters"});
  EXPECT_TRUE(check_dns1035_label("a-1").empty());
  EXPECT_FALSE(check_dns1035_label("1-a").empty());
  EXPECT_FALSE(check_dns1035_label("").empty());
}

TEST(NamesTest, QualifiedNamesAndLabelValues) {
  for (const char* good : {"a", "A_b.c", "example.com/Name", "k8s.io/0"})
    EXPECT_TRUE(check_qualified_name(good).empty()) << good;
  EXPECT_EQ(check_qualified_name("/a"), Problems{"prefix part must be non-empty"});
  for (const char* bad : {"", "a/b/c", "Ex.com/a", "a/", "-a", "a b"})
    EXPECT_FALSE(check_qualified_name(bad).empty()) << bad;
  EXPECT_TRUE(check_label_value("").empty());
  EXPECT_TRUE(check_label_value("My_value.1").empty());
  EXPECT_FALSE(check_label_value("a b").empty());
  EXPECT_FALSE(check_label_value(std::string(64, 'a')).empty());
}

TEST(NamesTest, NamesOfRoles) {
  EXPECT_TRUE(check_name("system:node", NameRule::path_segment).empty());
  EXPECT_EQ(check_name("a/b", NameRule::path_segment), Problems{"may not contain '/'"});
  EXPECT_EQ(check_name("..", NameRule::path_segment), Problems{"may not be '..'"});
}

TEST(NamesTest, GeneratedNamesAreCutAndDiffer) {
  const std::string name = generate_name(std::string(90, 'g') + "-");
  EXPECT_EQ(name.size(), 63U);
  EXPECT_TRUE(name.starts_with(std::string(58, 'g')));
  EXPECT_EQ(name.find_first_not_of("gbcdfhjklmnpqrstvwxz2456789"), std::string::npos);
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(generate_name("a-"));
  EXPECT_GT(names.size(), 95U);
  EXPECT_TRUE(check_name("a-", NameRule::subdomain, true).empty());
  EXPECT_TRUE(check_name(std::string(90, 'g') + "-", NameRule::subdomain, true).empty());
  EXPECT_FALSE(check_name(std::string(90, 'g') + "-", NameRule::label, true).empty());
  EXPECT_FALSE(check_name("A-", NameRule::subdomain, true).empty());
}

TEST(ObjectMetaTest, NamesAndNamespaces) {
  EXPECT_TRUE(complaints(R"({"name":"a","namespace":"default"})").empty());
  EXPECT_EQ(complaints(R"({"name":"Bad_Name","namespace":"default"})"),
            std::vector<std::string>{
                "metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must "
                "consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"});
  EXPECT_EQ(complaints("{}"), (std::vector<std::string>{
                                  "metadata.name: Required value: name or generateName is required",
                                  "metadata.namespace: Required value"}));
  EXPECT_EQ(complaints(R"({"name":"a","namespace":"x"})", {.namespaced = false}),
            std::vector<std::string>{"metadata.namespace: Forbidden: not allowed on this type"});
}

TEST(ObjectMetaTest, LabelsAndAnnotations) {
  const auto errors =
      complaints(R"({"name":"a","namespace":"b","labels":{"a b":"ok","c":"not ok"}})");
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_TRUE(errors[0].starts_with("metadata.labels: Invalid value: \"a b\": name part must"));
  EXPECT_TRUE(errors[1].starts_with("metadata.labels: Invalid value: \"not ok\": a valid label"));
  const auto annotated = [](std::size_t bytes) {
    return R"({"name":"a","namespace":"b","annotations":{"Upper.example/x":")" +
           std::string(bytes, 'x') + "\"}}";
  };
  EXPECT_TRUE(complaints(annotated(10)).empty());
  EXPECT_EQ(complaints(annotated(kMostAnnotationBytes)),
            std::vector<std::string>{
                "metadata.annotations: Too long: may not be more than 262144 bytes"});
}

TEST(ObjectMetaTest, OneController) {
  const std::string one =
      R"({"apiVersion":"v1","kind":"A","name":"x","uid":"1","controller":true})";
  const std::string two =
      R"({"apiVersion":"v1","kind":"A","name":"y","uid":"2","controller":true})";
  const auto owned = [](const std::string& owners) {
    return R"({"name":"a","namespace":"b","ownerReferences":[)" + owners + "]}";
  };
  EXPECT_TRUE(complaints(owned(one)).empty());
  std::string both = one;
  both += ',';
  both += two;
  EXPECT_EQ(complaints(owned(both)),
            std::vector<std::string>{"metadata.ownerReferences: Invalid value: [" + both +
                                     "]: Only one reference can have Controller set to true. Found "
                                     "\"true\" in references for A/x and A/y"});
  EXPECT_EQ(complaints(owned("{}")).size(), 4U);
  EXPECT_EQ(
      complaints(owned(R"({"apiVersion":"a/b/c","kind":"A","name":"x","uid":"1"})")),
      std::vector<std::string>{
          "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be "
          "empty"});
}

TEST(ObjectMetaTest, Finalizers) {
  const auto with = [](const std::string& finalizers) {
    return R"({"name":"a","namespace":"b","finalizers":)" + finalizers + "}";
  };
  EXPECT_TRUE(complaints(with(R"(["nodomain","x.io/y"])")).empty());
  EXPECT_EQ(
      complaints(with(R"(["nodomain","kubernetes","x.io/y"])"), {.is_built_in = true}),
      std::vector<std::string>{"metadata.finalizers: Invalid value: \"nodomain\": name is "
                               "neither a standard finalizer name nor is it fully qualified"});
  EXPECT_EQ(complaints(with(R"(["orphan","foregroundDeletion"])")).size(), 1U);
  EXPECT_EQ(complaints(with(R"(["a b"])")).size(), 1U);
  const Json object =
      parse_json(R"({"metadata":{"finalizers":["nodomain","x.io/y","orphan"]}})").value;
  EXPECT_EQ(finalizer_warnings(object),
            std::vector<std::string>{
                "metadata.finalizers: \"nodomain\": prefer a domain-qualified finalizer name to "
                "avoid accidental conflicts with other finalizer writers"});
  const Json more = parse_json(R"({"metadata":{"finalizers":["orphan","y.io/g"]}})").value;
  const auto errors = validate_new_finalizers(more, object);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].detail,
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            "finalizers []string{\"y.io/g\"}");
  EXPECT_TRUE(validate_new_finalizers(Json(), object).empty());
}

}  // namespace
}  // namespace hearth::model
