// The parts that need no server: bodies, references, filters, cursors, states.
#include <functional>

#include <gtest/gtest.h>

#include "apiserver/server_testing.h"
#include "base/time_text.h"
#include "e2b/answers.h"
#include "e2b/core.h"
#include "e2b/create_request.h"
#include "e2b/list_query.h"
#include "e2b/state.h"
#include "e2b/template_reference.h"

namespace hearth::e2b {
namespace {

using apiserver::json;

// "400: why", or nothing.
std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (...) {
    const http::Response response = answer_current_exception({});
    return std::to_string(response.status) + ": " +
           std::string(model::text_at(json(response.body), {"message"}));
  }
  return {};
}

CreateRequest create(std::string_view body, Generation generation = Generation::v2) {
  return parse_create(Body::parse(body), generation);
}
std::string create_refusal(std::string_view body, Generation generation = Generation::v2) {
  return refusal_of([&] { create(body, generation); });
}

TEST(E2bBody, ReadsFieldsByTheirTypes) {
  const Body body = Body::parse(
      R"({"t":"x","n":3,"f":3.0,"b":true,"l":["a","b"],"m":{"k":"v"},"o":{"x":1},"none":null})");
  EXPECT_EQ(body.text("t"), "x");
  EXPECT_EQ(body.number("n"), 3);
  EXPECT_EQ(body.number("f"), 3);
  EXPECT_EQ(body.flag("b"), true);
  EXPECT_EQ(body.list("l"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(body.texts("m"), (Texts{{"k", "v"}}));
  EXPECT_EQ(body.object("o")->number("x"), 1);
  EXPECT_FALSE(body.has("none"));
  EXPECT_FALSE(body.text("none"));
  EXPECT_TRUE(body.texts("missing").empty());
}

TEST(E2bBody, NamesTheFieldThatIsWrong) {
  const Body body = Body::parse(R"({"t":1,"n":"x","b":0,"l":[1],"m":{"k":1},"o":{"x":"y"}})");
  EXPECT_EQ(refusal_of([&] { body.text("t"); }), "400: the field 't' is not a string");
  EXPECT_EQ(refusal_of([&] { body.number("n"); }), "400: the field 'n' is not an integer");
  EXPECT_EQ(refusal_of([&] { body.flag("b"); }), "400: the field 'b' is not a boolean");
  EXPECT_EQ(refusal_of([&] { body.list("l"); }), "400: the field 'l' is not a list of strings");
  EXPECT_EQ(refusal_of([&] { body.texts("m"); }), "400: the field 'm' is not an object of strings");
  EXPECT_EQ(refusal_of([&] { body.object("o")->number("x"); }),
            "400: the field 'o.x' is not an integer");
  EXPECT_EQ(refusal_of([&] { body.number("t", 2, 5); }),
            "400: the field 't' is 1, which is not from 2 to 5");
  EXPECT_EQ(refusal_of([&] { body.get_text("missing"); }), "400: the field 'missing' is required");
}

TEST(E2bBody, IsAnObjectOrNothing) {
  EXPECT_FALSE(Body::parse("").has("x"));
  EXPECT_FALSE(Body::parse(" \n").has("x"));
  EXPECT_FALSE(Body::parse("null").has("x"));
  EXPECT_EQ(refusal_of([] { Body::parse("[]"); }), "400: the body is no JSON object");
  EXPECT_NE(refusal_of([] { Body::parse("{"); }), "");
}

TEST(E2bCreate, DefaultsDifferByGeneration) {
  const CreateRequest first = create(R"({"templateID":"base"})", Generation::v1);
  EXPECT_EQ(first.timeout_seconds, 15);
  EXPECT_FALSE(first.is_secure);
  const CreateRequest second = create(R"({"templateID":"base","secure":false})");
  EXPECT_EQ(second.timeout_seconds, 300);
  EXPECT_TRUE(second.is_secure);
  EXPECT_FALSE(second.pauses);
  EXPECT_FALSE(second.wakes);
  EXPECT_TRUE(second.network.egress.is_open());
}

TEST(E2bCreate, ReadsEverything) {
  const CreateRequest request = create(R"({"templateID":"t","timeout":60,"autoPause":true,
      "autoResume":{"enabled":true},"allow_internet_access":false,"metadata":{"a":"b"},
      "envVars":{"X":"1"},"mcp":{"whatever":{}},"unknown":[1],"iam":null,"volumeMounts":[],
      "network":{"allowOut":["1.2.3.4","10.9.8.7/8"],"denyOut":["0.0.0.0/0"],
        "allowPublicTraffic":false,"maskRequestHost":"localhost:${PORT}","httpsPorts":[8443]}})");
  EXPECT_EQ(request.timeout_seconds, 60);
  EXPECT_TRUE(request.pauses && request.pauses_memory && request.wakes);
  EXPECT_EQ(request.metadata, (Texts{{"a", "b"}}));
  EXPECT_EQ(request.environment, (Texts{{"X", "1"}}));
  const pool::Egress egress = request.network.egress.egress();
  EXPECT_EQ(egress.allow, (std::vector<std::string>{"1.2.3.4", "10.0.0.0/8"}));
  EXPECT_EQ(egress.deny, (std::vector<std::string>{"0.0.0.0/0"}));
  EXPECT_FALSE(request.network.is_public());
  EXPECT_EQ(request.network.mask_host, "localhost:${PORT}");
  EXPECT_EQ(request.network.https_ports, (std::vector<std::int64_t>{8443}));
}

TEST(E2bCreate, RefusesWhatMakesNoSense) {
  EXPECT_EQ(create_refusal("{}"), "400: the field 'templateID' is required");
  EXPECT_EQ(create_refusal(R"({"templateID":"a\u0000b"})"),
            "400: the field 'templateID' has a zero byte");
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","timeout":0})").starts_with("400: the field 't"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","timeout":-1})").starts_with("400"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","timeout":99999999999})").starts_with("400"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","autoPauseMemory":false})").starts_with("400"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","autoPause":true,"autoPauseMemory":false,
      "autoResume":{"enabled":true}})")
                  .starts_with("400"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","metadata":{"a":1}})").starts_with("400"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","envVars":{"A=B":"1"}})").starts_with("400"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","envVars":{"":"1"}})").starts_with("400"));
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","envVars":{"A":"\u0000"}})").starts_with("400"));
  EXPECT_TRUE(
      create_refusal(R"({"templateID":"t","metadata":{"a":")" + std::string(70'000, 'x') + "\"}}")
          .starts_with("400"));
  EXPECT_TRUE(
      create_refusal(R"({"templateID":"t","network":{"allowPublicTraffic":false}})", Generation::v1)
          .starts_with("400"));
  EXPECT_EQ(
      create_refusal(R"({"templateID":"t","network":{"denyOut":["example.com"]}})"),
      "400: 'example.com' in the field 'denyOut' is no IPv4 address or CIDR; names of hosts can "
      "only be allowed");
  for (const char* bad : {"1.2.3", "1.2.3.4/33", "1.2.3.4/", "::/0", "1.2.3.4/8/8", ""})
    EXPECT_TRUE(
        create_refusal(R"({"templateID":"t","network":{"denyOut":[")" + std::string(bad) + "\"]}}")
            .starts_with("400"))
        << bad;
  EXPECT_TRUE(
      create_refusal(R"({"templateID":"t","network":{"httpsPorts":[0]}})").starts_with("400"));
  EXPECT_EQ(create_refusal(R"({"templateID":"t","network":{"httpsPorts":[443,49983]}})"),
            "400: 49983 in the field 'network.httpsPorts' is envd's, which has no TLS");
  EXPECT_TRUE(create_refusal(R"({"templateID":"t","network":{"maskRequestHost":"a b"}})")
                  .starts_with("400"));
}

TEST(E2bCreate, HostsAreAllowedByNameWhereNothingElseIs) {
  const auto egress = [](const std::string& text) {
    return create(R"({"templateID":"t",)" + text + "}").network.egress.egress();
  };
  const std::vector<std::string> names = {"api.example.com", "*.pypi.org", "1.2.3.4"};
  const std::string lists = R"("network":{"allowOut":["API.example.com","*.pypi.org","1.2.3.4"])";
  EXPECT_EQ(egress(lists + R"(,"denyOut":["0.0.0.0/0"]})").allow, names);
  EXPECT_EQ(egress(lists + R"(},"allow_internet_access":false)").allow, names);

  for (const char* open : {R"("network":{"allowOut":["a.example"]})",
                           R"("network":{"allowOut":["a.example"],"denyOut":["10.0.0.0/8"]})",
                           R"("network":{"allowOut":["a.example"]},"allow_internet_access":true)"})
    EXPECT_EQ(create_refusal(R"({"templateID":"t",)" + std::string(open) + "}"),
              "400: the field 'allowOut' names the host 'a.example': that needs '0.0.0.0/0' in "
              "'denyOut' as well");
  for (const char* bad : {"https://a.example", "a.example:443", "a..b", "*.*.b", "1.2.3", "::1",
                          "a b", "b\u00fc.example", "-a.b", ""})
    EXPECT_TRUE(
        create_refusal(R"({"templateID":"t","network":{"denyOut":["0.0.0.0/0"],"allowOut":[")" +
                       std::string(bad) + "\"]}}")
            .starts_with("400: '"))
        << bad;
}

TEST(E2bCreate, SaysWhatIsNotOffered) {
  for (const char* field :
       {R"("iam":{"tokens":{"a":{"audience":"x","tokenType":"JWT-SVID"}}})",
        R"("volumeMounts":[{"name":"v","path":"/v"}])",
        R"("network":{"egressProxy":{"address":"a:1"}})", R"("network":{"rules":{"a.com":[]}})",
        R"("network":{"dnsServers":["1.1.1.1"]})"})
    EXPECT_TRUE(
        create_refusal(R"({"templateID":"t",)" + std::string(field) + "}").starts_with("501: "))
        << field;
}

TEST(E2bTemplates, ReferencesHaveATeamAnAliasAndATag) {
  const TemplateReference plain = parse_template_reference("Base");
  EXPECT_EQ(plain.ns, "");
  EXPECT_EQ(plain.full_name(), "base:default");
  const TemplateReference full = parse_template_reference("team/my_alias-1:v1.2");
  EXPECT_EQ(full.ns, "team");
  EXPECT_EQ(full.full_name(), "my_alias-1:v1.2");
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a:"), std::string(":a"),
        std::string("a/b/c"), std::string("a b"), std::string("a:b:c"), std::string(600, 'a')})
    EXPECT_TRUE(refusal_of([&] { parse_template_reference(bad); }).starts_with("400")) << bad;
}

TEST(E2bTemplates, HaveNames) {
  const Json made = json(R"({"metadata":{"name":"snap-1","annotations":
      {"hearth.dev/template-names":"mine:v1,other"}}})");
  EXPECT_EQ(template_names(made),
            (std::vector<std::string>{"snap-1:default", "mine:v1", "other:default"}));
}

TEST(E2bList, CursorsSurviveTheirTrip) {
  const Cursor cursor{*parse_rfc3339("2026-01-02T03:04:05.123456Z"), "i0a", Order::oldest_first};
  EXPECT_EQ(parse_cursor(render_cursor(cursor)), cursor);
  const Cursor newest{cursor.started, "i0a", Order::newest_first};
  EXPECT_EQ(parse_cursor(render_cursor(newest)), newest);
  for (const char* bad : {"!", "aGVsbG8", "MjAyNi0wMS0wMlQwMzowNDowNVpfXw", "X19pMGE"})
    EXPECT_TRUE(refusal_of([&] { parse_cursor(bad); }).starts_with("400")) << bad;
}

TEST(E2bList, MetadataIsUnescapedTwiceMore) {
  EXPECT_EQ(parse_metadata_filter("a%3Db%26c%3Dd"), (Texts{{"a", "b"}, {"c", "d"}}));
  // "my key" = "a&b=c", each escaped, then the whole.
  EXPECT_EQ(parse_metadata_filter("my%2520key%3Da%2526b%253Dc"), (Texts{{"my key", "a&b=c"}}));
  EXPECT_TRUE(parse_metadata_filter("").empty());
  EXPECT_EQ(parse_metadata_filter("a="), (Texts{{"a", ""}}));
  for (const char* bad : {"a", "%", "a%3D%25zz", "%2525=%252"})
    EXPECT_TRUE(refusal_of([&] { parse_metadata_filter(bad); }).starts_with("400")) << bad;
}

TEST(E2bList, QueriesAreRead) {
  const ListQuery usual = parse_list_query("");
  EXPECT_TRUE(usual.wants_running && usual.wants_paused);
  EXPECT_EQ(usual.limit, 100U);
  const ListQuery query = parse_list_query(
      "state=paused&order=asc&limit=7&startedAfter=2026-01-02T03%3A04%3A05Z&template=base");
  EXPECT_FALSE(query.wants_running);
  EXPECT_TRUE(query.wants_paused);
  EXPECT_EQ(query.order, Order::oldest_first);
  EXPECT_EQ(query.limit, 7U);
  EXPECT_EQ(query.started_after, parse_rfc3339("2026-01-02T03:04:05Z"));
  EXPECT_EQ(query.template_reference, "base");
  const ListQuery both = parse_list_query("state=running&state=paused");
  EXPECT_TRUE(both.wants_running && both.wants_paused);
  for (const char* bad : {"state=gone", "order=up", "limit=0", "limit=101", "limit=x",
                          "startedAfter=now", "nextToken=!", "metadata=a", "a=%"})
    EXPECT_TRUE(refusal_of([&] { parse_list_query(bad); }).starts_with("400")) << bad;
  const std::string newest = render_cursor({Time(), "i0", Order::newest_first});
  EXPECT_TRUE(
      refusal_of([&] { parse_list_query("order=asc&nextToken=" + newest); }).starts_with("400"));
}

TEST(E2bIds, AreLettersAndDigits) {
  EXPECT_EQ(parse_sandbox_id("i0az"), "i0az");
  EXPECT_EQ(parse_sandbox_id("i0az-client"), "i0az");
  EXPECT_EQ(parse_sandbox_id(std::string(100, 'i')).size(), 100U) << "nobody's, but an id";
  for (const char* bad : {"", "-x", "A", "a.b", "../x", "a_b"})
    EXPECT_TRUE(refusal_of([&] { parse_sandbox_id(bad); }).starts_with("400")) << bad;
  const std::string id = new_sandbox_id();
  EXPECT_EQ(id.size(), 21U);
  EXPECT_TRUE(id.starts_with('i') && is_sandbox_id(id));
  EXPECT_NE(id, new_sandbox_id());
}

State state_from(std::string_view metadata, std::string_view rest = "{}") {
  Json sandbox = json(rest);
  sandbox.as_object()["metadata"] = json(metadata);
  return state_of(sandbox);
}

TEST(E2bState, FollowsWishAndCondition) {
  const std::string ours = R"({"labels":{"hearth.dev/front":"e2b"}})";
  const std::string pause =
      R"({"labels":{"hearth.dev/front":"e2b"},"annotations":{"hearth.dev/pause":"memory"}})";
  const std::string paused =
      R"({"status":{"conditions":[{"type":"hearth.dev/Paused","status":"True"}]}})";
  const std::string wish = R"({"spec":{"operatingMode":"Suspended"}})";
  const std::string away = R"({"spec":{"operatingMode":"Suspended"},
      "status":{"conditions":[{"type":"Suspended","status":"True"}]}})";
  EXPECT_EQ(state_from("{}"), State::none);
  EXPECT_EQ(state_from(R"({"labels":{"hearth.dev/front":"e2b"},"deletionTimestamp":"x"})"),
            State::none);
  EXPECT_EQ(state_from(ours), State::running);
  EXPECT_EQ(state_from(pause), State::pausing);
  EXPECT_EQ(state_from(pause, paused), State::paused);
  EXPECT_EQ(state_from(ours, paused), State::resuming);
  EXPECT_EQ(state_from(ours, wish), State::pausing);
  EXPECT_EQ(state_from(ours, away), State::paused);
}

TEST(E2bErrors, HaveANumberAndASentence) {
  EXPECT_EQ(refusal_of([] { fail(Code::conflict, "no"); }), "409: no");
  EXPECT_EQ(refusal_of([] { refuse_unoffered("x", "do y"); }), "501: x is not offered here; do y");
  EXPECT_EQ(refusal_of([] { fail(Code::internal, "secret"); }), "500: internal error");
  EXPECT_EQ(refusal_of([] { throw std::runtime_error("secret"); }), "500: internal error");
}

}  // namespace
}  // namespace hearth::e2b
