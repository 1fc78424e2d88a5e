#include "schema/schema.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hearth::schema {
namespace {

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

// A schema whose spec is the given one.
SchemaPtr schema_of_spec(std::string_view spec) {
  return parse_schema(json(R"({"type":"object","properties":{"spec":)" + std::string(spec) + "}}"));
}

std::string problem_of(std::string_view schema) {
  try {
    parse_schema(json(schema));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return "none";
}

// "FIELD: DETAIL" of everything that is wrong with a spec.
std::vector<std::string> errors_of(const SchemaPtr& schema, std::string_view spec) {
  std::vector<std::string> texts;
  for (const auto& error :
       validate(json(R"({"spec":)" + std::string(spec) + "}"), *schema, nullptr))
    texts.push_back(error.field + ": " + error.detail);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ParseSchemaTest, SaysWhereSchemasAreNotStructural) {
  EXPECT_EQ(problem_of(R"({"type":"string"})"),
            "openAPIV3Schema: type must be 'object' at the root");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{}}})"),
            "openAPIV3Schema.properties[a]: type is required");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{"type":"thing"}}})"),
            "openAPIV3Schema.properties[a]: type 'thing' is not supported");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{"type":"object",
                "properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}}})"),
            "openAPIV3Schema.properties[a]: additionalProperties is not allowed beside properties");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{"$ref":"#/x"}}})"),
            "openAPIV3Schema.properties[a]: '$ref' is not supported");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{"type":"array"}}})"),
            "openAPIV3Schema.properties[a]: items is required for an array");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{"type":"string","pattern":"("}}})"),
            "openAPIV3Schema.properties[a]: pattern '(' is not a regular expression: missing ): (");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{"type":"array",
                "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
                "items":{"type":"object","properties":{"n":{"type":"string"}}}}}})"),
            "openAPIV3Schema.properties[a]: key 'n' must be required or have a default");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":{"a":{"type":"integer","default":"x"}}})"),
            "openAPIV3Schema.properties[a]: default does not fit: "
            "Invalid value: \"string\":  in body must be of type integer: \"string\"");
  EXPECT_EQ(problem_of(R"({"type":"object","minProperties":-1})"),
            "openAPIV3Schema: minProperties must be a number that is not negative");
  EXPECT_EQ(problem_of(R"({"type":"object","properties":[]})"),
            "openAPIV3Schema: properties must be an object");
  EXPECT_EQ(problem_of("[]"), "openAPIV3Schema: must be an object");
  EXPECT_EQ(problem_of(R"({"type":"object","x-kubernetes-validations":[{"rule":"url(self) "}]})"),
            "openAPIV3Schema: x-kubernetes-validations[0].rule: "
            "function 'url' is not supported at character 9 of 'url(self) '");
  EXPECT_EQ(problem_of(R"({"type":"object","x-kubernetes-something-new":1})"), "none");
}

TEST(ParseSchemaTest, EveryObjectHasMetadata) {
  const SchemaPtr schema = parse_schema(json(R"({"type":"object","properties":{"metadata":
      {"type":"object","properties":{"name":{"type":"string","maxLength":3}}}}})"));
  Json object = json(R"({"apiVersion":"g/v1","kind":"K","metadata":
      {"name":"four","labels":{"a":"b"},"what":1,"creationTimestamp":null},"spec":1})");
  std::vector<std::string> unknown;
  prune(object, *schema, &unknown);
  EXPECT_EQ(unknown, (Texts{"metadata.what", "spec"}));
  apply_defaults(object, *schema);
  EXPECT_EQ(model::to_text(object),
            R"({"apiVersion":"g/v1","kind":"K","metadata":{"name":"four","labels":{"a":"b"}}})");
  const auto errors = validate(object, *schema, nullptr);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].field, "metadata.name");
  EXPECT_EQ(errors[0].problem, model::FieldProblem::too_long);
}

TEST(DefaultsTest, FillsWhatIsMissingOrNull) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","properties":{
      "a":{"type":"string","default":"x"},
      "n":{"type":"string","nullable":true,"default":"y"},
      "o":{"type":"object","properties":{"p":{"type":"integer","default":3}}},
      "l":{"type":"array","items":{"type":"object","properties":{"q":{"type":"boolean","default":false}}}},
      "m":{"type":"object","additionalProperties":{"type":"object","properties":{"r":{"type":"string","default":""}}}},
      "z":{"type":"string"}}})");
  Json object =
      json(R"({"spec":{"a":null,"n":null,"o":{},"l":[{},{"q":true}],"m":{"k":{}},"z":null}})");
  apply_defaults(object, *schema);
  EXPECT_TRUE(model::is_same(
      object, json(R"({"spec":{"a":"x","n":null,"o":{"p":3},"l":[{"q":false},{"q":true}],
                    "m":{"k":{"r":""}}}})")))
      << model::to_text(object);
  object = json(R"({"spec":{"o":null}})");
  apply_defaults(object, *schema);
  EXPECT_EQ(model::to_text(object), R"({"spec":{"a":"x","n":"y"}})");
}

TEST(PruneTest, NamesWhatItRemoves) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","properties":{
      "l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
      "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
              "properties":{"known":{"type":"object","properties":{"a":{"type":"string"}}}}},
      "map":{"type":"object","additionalProperties":{"type":"string"}},
      "pod":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}})");
  Json object = json(R"({"spec":{"z":1,"l":[{"a":"1"},{"b":2,"a":"2"}],
      "free":{"x":{"y":1},"known":{"a":"","b":1}},"map":{"any":"thing"},
      "pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","bad":1},"spec":{"x":1}}}})");
  std::vector<std::string> unknown;
  prune(object, *schema, &unknown);
  EXPECT_EQ(unknown, (Texts{"spec.free.known.b", "spec.l[1].b", "spec.pod.metadata.bad",
                            "spec.pod.spec.x", "spec.z"}));
  EXPECT_EQ(
      model::to_text(object),
      R"({"spec":{"l":[{"a":"1"},{"a":"2"}],"free":{"x":{"y":1},"known":{"a":""}},)"
      R"("map":{"any":"thing"},"pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},)"
      R"("spec":{}}}})");
}

TEST(PruneTest, StopsNamingAfterAHundred) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object"})");
  model::JsonObject spec;
  for (int i = 0; i < 100'000; ++i) spec.emplace("k" + std::to_string(i), i);
  Json object = model::JsonObject{{"spec", std::move(spec)}};
  std::vector<std::string> unknown;
  prune(object, *schema, &unknown);
  EXPECT_EQ(unknown.size(), 100U);
  EXPECT_EQ(model::to_text(object), R"({"spec":{}})");
}

// The rest may be whatever it is: it was looked at when it was written.
TEST(TouchedTest, OnlyWhatAPatchNamesIsLookedAt) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","required":["a"],"properties":{
      "a":{"type":"string"},"b":{"type":"object","properties":{"c":{"type":"string","default":"x"},
      "d":{"type":"integer"}}},"e":{"type":"object","default":{},"properties":{"f":
      {"type":"integer","default":1}}},"set":{"type":"array","x-kubernetes-list-type":"set",
      "items":{"type":"string"}}}})");
  const Json patch = json(R"({"spec":{"b":{"d":"wrong","odd":1},"e":null}})");
  const model::Touched touched(patch);
  Json object = json(R"({"spec":{"odd":1,"a":2,"b":{"d":"wrong","odd":1},"set":["x","x"]}})");

  std::vector<std::string> unknown;
  prune(object, *schema, &unknown, touched);
  EXPECT_EQ(unknown, Texts{"spec.b.odd"});
  apply_defaults(object, *schema, touched);
  EXPECT_TRUE(model::is_same(object, json(R"({"spec":{"odd":1,"a":2,"b":{"d":"wrong","c":"x"},
      "set":["x","x"],"e":{"f":1}}})")))
      << model::to_text(object);
  const auto errors = validate(object, *schema, nullptr, touched);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].field, "spec.b.d");
  EXPECT_EQ(validate(object, *schema, nullptr).size(), 3U);

  // What must be there is missed wherever the patch has been.
  object.at("spec").as_object().erase("a");
  EXPECT_EQ(validate(object, *schema, nullptr, touched).size(), 2U);
}

TEST(ValidateTest, Types) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","properties":{
      "s":{"type":"string"},"i":{"type":"integer","format":"int32"},"n":{"type":"number"},
      "b":{"type":"boolean"},"a":{"type":"array","items":{"type":"string"}},
      "o":{"type":"object"},"t":{"type":"string","format":"date-time"},
      "x":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}})");
  EXPECT_EQ(errors_of(schema, R"({"s":"","i":3.0,"n":1,"b":false,"a":[""],"o":{},
                                "t":"9999-12-31T23:59:59.5+01:00","x":1})"),
            Texts{});
  EXPECT_EQ(
      errors_of(schema, R"({"s":1})"),
      Texts{
          R"(spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer")"});
  EXPECT_EQ(
      errors_of(schema, R"({"i":"1"})"),
      Texts{
          R"(spec.i: Invalid value: "string": spec.i in body must be of type integer: "string")"});
  EXPECT_EQ(
      errors_of(schema, R"({"i":1.5})"),
      (Texts{
          R"(spec.i: Invalid value: "float64": spec.i in body must be of type int32: "float64")",
          R"(<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i)"}));
  EXPECT_EQ(errors_of(schema, R"({"i":true})"),
            Texts{R"(spec.i: Invalid value: "": spec.i in body must be of type int32: "")"});
  EXPECT_EQ(
      errors_of(schema, R"({"i":3000000000})"),
      Texts{
          R"(<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i)"});
  EXPECT_EQ(
      errors_of(schema, R"({"a":["x",null]})"),
      Texts{
          R"(spec.a[1]: Invalid value: "null": spec.a[1] in body must be of type string: "null")"});
  EXPECT_EQ(
      errors_of(schema, R"({"t":"yesterday"})"),
      Texts{
          R"(spec.t: Invalid value: "yesterday": spec.t in body must be of type date-time: "yesterday")"});
  EXPECT_EQ(
      errors_of(schema, R"({"t":5})"),
      Texts{
          R"(spec.t: Invalid value: "int64": spec.t in body must be of type date-time: "int64")"});
  EXPECT_EQ(
      errors_of(schema, R"({"x":true})"),
      (Texts{
          R"(spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean")",
          R"(<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf))",
          R"(spec.x: Invalid value: "boolean": spec.x in body must be of type integer: "boolean")"}));
}

TEST(ValidateTest, Limits) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","maxProperties":3,"properties":{
      "s":{"type":"string","minLength":2,"maxLength":3,"pattern":"^[a-zä]+$"},
      "i":{"type":"integer","minimum":1,"maximum":9,"multipleOf":2},
      "e":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":1.5,"exclusiveMaximum":true},
      "a":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true,"items":{"type":"integer"}},
      "w":{"type":"string","enum":["A","B"]},"m":{"type":"object","minProperties":1}}})");
  EXPECT_EQ(errors_of(schema, R"({"s":"äää","i":2,"e":1})"), Texts{});
  EXPECT_EQ(errors_of(schema, R"({"s":"aaaa"})"),
            Texts{"spec.s: Too long: may not be more than 3 bytes"});
  EXPECT_EQ(errors_of(schema, R"({"s":"ä"})"),
            Texts{R"(spec.s: Invalid value: "ä": spec.s in body should be at least 2 chars long)"});
  EXPECT_EQ(errors_of(schema, R"({"s":"AB"})"),
            Texts{R"(spec.s: Invalid value: "AB": spec.s in body should match '^[a-zä]+$')"});
  EXPECT_EQ(
      errors_of(schema, R"({"i":-4})"),
      Texts{"spec.i: Invalid value: -4: spec.i in body should be greater than or equal to 1"});
  EXPECT_EQ(errors_of(schema, R"({"i":11})"),
            (Texts{"spec.i: Invalid value: 11: spec.i in body should be a multiple of 2",
                   "spec.i: Invalid value: 11: spec.i in body should be less than or equal to 9"}));
  EXPECT_EQ(errors_of(schema, R"({"e":0})"),
            Texts{"spec.e: Invalid value: 0: spec.e in body should be greater than 0"});
  EXPECT_EQ(errors_of(schema, R"({"e":1.5})"),
            Texts{"spec.e: Invalid value: 1.5: spec.e in body should be less than 1.5"});
  EXPECT_EQ(errors_of(schema, R"({"a":[]})"),
            Texts{"spec.a: Invalid value: 0: spec.a in body should have at least 1 items"});
  EXPECT_EQ(errors_of(schema, R"({"a":[1,1,2]})"),
            (Texts{"spec.a: Too many: 3: must have at most 2 items",
                   R"(spec.a: Invalid value: "": spec.a in body shouldn't contain duplicates)"}));
  EXPECT_EQ(errors_of(schema, R"({"w":"C"})"),
            Texts{R"(spec.w: Unsupported value: "C": supported values: "A", "B")"});
  EXPECT_EQ(errors_of(schema, R"({"m":{}})"),
            Texts{"spec.m: Invalid value: 0: spec.m in body should have at least 1 properties"});
  EXPECT_EQ(errors_of(schema, R"({"1":1,"2":1,"3":1,"4":1})"),
            Texts{"spec: Too many: 4: must have at most 3 items"});
}

TEST(ValidateTest, Formats) {
  const auto problems = [](std::string_view format, std::string_view text) {
    const SchemaPtr schema = schema_of_spec(R"({"type":"object","properties":{"f":{"type":"string",
        "format":")" + std::string(format) + "\"}}}");
    return errors_of(schema, R"({"f":")" + std::string(text) + "\"}").size();
  };
  const std::pair<std::string_view, std::pair<std::string_view, std::string_view>> kCases[] = {
      {"date-time", {"2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z"}},
      {"date", {"2024-02-29", "2024-2-29"}},
      {"byte", {"AP8Q", "!"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000", "123e4567"}},
      {"ipv4", {"10.0.0.1", "10.0.0.256"}},
      {"ipv6", {"::1", "1::2::3"}},
      {"cidr", {"10.0.0.0/8", "10.0.0.0/33"}},
      {"hostname", {"a.b-c", "-a"}},
      {"mac", {"01:23:45:67:89:ab", "01:23"}},
      {"duration", {"1h5m", "1 hour"}},
      {"email", {"a@b.c", "a"}},
      {"uri", {"https://a/b", "a b"}},
  };
  for (const auto& [format, texts] : kCases) {
    EXPECT_EQ(problems(format, texts.first), 0U) << format;
    EXPECT_EQ(problems(format, texts.second), 1U) << format;
  }
  EXPECT_EQ(problems("made-up", "anything"), 0U);
}

TEST(ValidateTest, PartsOfSchemas) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","properties":{
      "one":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
             "oneOf":[{"required":["a"]},{"required":["b"]}]},
      "all":{"type":"integer","allOf":[{"minimum":1},{"maximum":5}]},
      "not":{"type":"string","not":{"enum":["bad"]}}}})");
  EXPECT_EQ(errors_of(schema, R"({"one":{"a":""},"all":3,"not":"good"})"), Texts{});
  EXPECT_EQ(
      errors_of(schema, R"({"one":{}})"),
      (Texts{
          R"(<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid)",
          "spec.one.a: Required value"}));
  EXPECT_EQ(
      errors_of(schema, R"({"one":{"a":"","b":""}})"),
      Texts{
          R"(<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives)"});
  EXPECT_EQ(
      errors_of(schema, R"({"all":7})"),
      (Texts{"spec.all: Invalid value: 7: spec.all in body should be less than or equal to 5",
             R"(<nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf))"}));
  EXPECT_EQ(errors_of(schema, R"({"not":"bad"})"),
            Texts{R"(<nil>: Invalid value: "": "spec.not" must not validate the schema (not))"});
}

TEST(ValidateTest, ListsWhoseElementsMustDiffer) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","properties":{
      "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
      "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n","p"],
             "items":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},
                      "p":{"type":"string","default":"TCP"}}}}}})");
  EXPECT_EQ(errors_of(schema, R"({"set":["a","b","a","a"]})"),
            Texts{R"(spec.set[2]: Duplicate value: "a")"});
  EXPECT_EQ(errors_of(schema, R"({"map":[{"n":1,"p":"TCP"},{"n":1,"p":"UDP"},{"n":1,"p":"TCP"}]})"),
            Texts{R"(spec.map[2]: Duplicate value: {"n":1,"p":"TCP"})"});
}

TEST(ValidateTest, StopsAfterAHundredErrors) {
  const SchemaPtr schema =
      schema_of_spec(R"({"type":"object","additionalProperties":{"type":"string"}})");
  model::JsonObject spec;
  for (int i = 0; i < 100'000; ++i) spec.emplace("k" + std::to_string(i), i);
  const Json object = model::JsonObject{{"spec", std::move(spec)}};
  EXPECT_EQ(validate(object, *schema, nullptr).size(), 100U);
}

TEST(ValidateTest, WhatHasNotChangedIsNotLookedAtAgain) {
  const auto schema = schema_of_spec(R"({"type":"object","properties":{
      "size":{"type":"integer","maximum":5},"name":{"type":"string"},
      "parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],
        "items":{"type":"object","required":["id"],"properties":{
          "id":{"type":"string"},"size":{"type":"integer","maximum":5}}}}}})");
  const auto fields = [&](std::string_view now, std::string_view before) {
    Texts found;
    const Json old = json(R"({"spec":)" + std::string(before) + "}");
    for (const auto& error : validate(json(R"({"spec":)" + std::string(now) + "}"), *schema, &old))
      found.push_back(error.field);
    return found;
  };
  EXPECT_EQ(fields(R"({"size":9,"name":"b"})", R"({"size":9,"name":"a"})"), Texts{});
  EXPECT_EQ(fields(R"({"size":8,"name":"b"})", R"({"size":9,"name":"a"})"), Texts{"spec.size"});
  EXPECT_EQ(fields(R"({"size":9})", R"({"name":"a"})"), Texts{"spec.size"});
  EXPECT_EQ(fields(R"({"parts":[{"id":"new","size":9},{"id":"a","size":9}]})",
                   R"({"parts":[{"id":"a","size":9}]})"),
            Texts{"spec.parts[0].size"});
}

TEST(ValidateTest, TellsOfMembersByTheirNames) {
  const auto schema = schema_of_spec(R"({"type":"object","properties":{
      "a":{"type":"integer"},"b":{"type":"object","properties":{
        "y":{"type":"integer"},"x":{"type":"integer"}}},"c":{"type":"integer"}}})");
  Texts fields;
  for (const auto& error :
       validate(json(R"({"spec":{"c":"1","b":{"y":"1","x":"1"},"a":"1"}})"), *schema, nullptr))
    fields.push_back(error.field);
  EXPECT_EQ(fields, (Texts{"spec.a", "spec.b.x", "spec.b.y", "spec.c"}));
}

TEST(ValidateTest, RulesCompareWithWhatWasThere) {
  const SchemaPtr schema = schema_of_spec(R"({"type":"object","properties":{
      "size":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf","message":"may only grow"}]},
      "list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
        "items":{"type":"object","required":["n"],"properties":{"n":{"type":"string"},"v":{"type":"integer"}},
        "x-kubernetes-validations":[{"rule":"self.v == oldSelf.v","reason":"FieldValueForbidden","message":"is fixed","fieldPath":".v"}]}}},
      "x-kubernetes-validations":[{"rule":"!has(self.size) || self.size < 10"}]})");
  const auto check = [&](std::string_view now, std::string_view before) {
    Texts texts;
    const Json old = before.empty() ? Json() : json(R"({"spec":)" + std::string(before) + "}");
    for (const auto& error : validate(json(R"({"spec":)" + std::string(now) + "}"), *schema,
                                      before.empty() ? nullptr : &old))
      texts.push_back(error.field + ": " + error.detail);
    return texts;
  };
  EXPECT_EQ(check(R"({"size":3})", ""), Texts{});
  EXPECT_EQ(check(R"({"size":3})", R"({"size":4})"),
            Texts{"spec.size: Invalid value: 3: may only grow"});
  EXPECT_EQ(check(R"({"size":12})", ""),
            Texts{"spec: Invalid value: failed rule: !has(self.size) || self.size < 10"});
  EXPECT_EQ(check(R"({"list":[{"n":"b","v":2},{"n":"a","v":1}]})",
                  R"({"list":[{"n":"a","v":1},{"n":"b","v":3}]})"),
            Texts{"spec.list[0].v: Forbidden: is fixed"});
  EXPECT_EQ(
      check(R"({"list":[{"n":"a"}]})", R"({"list":[{"n":"a","v":1}]})"),
      Texts{R"(spec.list[0]: Invalid value: "object": no such key: v evaluating rule: is fixed)"});
  EXPECT_EQ(
      check(R"({"size":"x"})", ""),
      (Texts{
          R"(spec.size: Invalid value: "string": spec.size in body must be of type integer: "string")",
          "<nil>: Invalid value: null: some validation rules were not checked because the "
          "object was invalid; correct the existing errors to complete validation"}));
}

}  // namespace
}  // namespace hearth::schema
