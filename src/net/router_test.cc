#include "net/router.h"

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include "net/stream.h"

namespace hearth::net {
namespace {

UnaryHandler says(const std::string& text) {
  return [text](const Request&) { return text_response(200, text); };
}

boost::asio::awaitable<void> do_nothing(Request, Stream&) {
  co_return;
}

struct Answer {
  std::string text;  // of the handler; empty: none
  unsigned status = 0;
  std::string allow;
  Request request;
};

Answer ask(const Router& router, std::string method, std::string path, std::string host = "h") {
  Answer answer;
  answer.request.method = std::move(method);
  answer.request.path = std::move(path);
  answer.request.host = std::move(host);
  const auto match = router.find(answer.request);
  answer.allow = match.allow;
  answer.status = match.problem ? match.problem->status : 200;
  if (match.route != nullptr && match.route->unary) {
    answer.text = match.route->unary(answer.request).body;
  }
  return answer;
}

TEST(Router, LiteralsWinOverParametersAndThoseOverTheRest) {
  Router router;
  router.add("GET", "/a/new", says("literal"));
  router.add("GET", "/a/{id}", says("parameter"));
  router.add("GET", "/a/{rest...}", says("rest"));

  EXPECT_EQ(ask(router, "GET", "/a/new").text, "literal");
  EXPECT_EQ(ask(router, "GET", "/a/old").text, "parameter");
  EXPECT_EQ(ask(router, "GET", "/a/old/er").text, "rest");
  EXPECT_EQ(ask(router, "GET", "/a/").text, "rest");
  EXPECT_EQ(ask(router, "GET", "/a").status, 404U);
  EXPECT_EQ(ask(router, "GET", "/b").status, 404U);
}

TEST(Router, ParametersAreDecodedOnce) {
  Router router;
  router.add("GET", "/sandboxes/{id}/files/{rest...}", says("file"));

  const Answer answer = ask(router, "GET", "/sandboxes/a%2Fb%2541/files/x/y%20z//w");

  EXPECT_EQ(answer.text, "file");
  EXPECT_EQ(answer.request.parameter("id"), "a/b%41");
  EXPECT_EQ(answer.request.parameter("rest"), "x/y z//w");
}

TEST(Router, BadEscapesNulsAndDotSegmentsAreBadRequests) {
  Router router;
  router.add("GET", "/{rest...}", says("x"));

  for (const std::string path :
       {"/%", "/a/%zz", "/%00", "/..", "/a/../b", "/a/%2e%2E/b", "/./a", "/a%2f..%2fb", "/a/."}) {
    EXPECT_EQ(ask(router, "GET", path).status, 400U) << path;
  }
  EXPECT_EQ(ask(router, "GET", "/...").status, 200U);
}

TEST(Router, AnEmptySegmentIsNoParameter) {
  Router router;
  router.add("GET", "/a/{id}/b", says("x"));
  router.add("GET", "/c", says("x"));

  EXPECT_EQ(ask(router, "GET", "/a//b").status, 404U);
  EXPECT_EQ(ask(router, "GET", "/c/").status, 404U);
  EXPECT_EQ(ask(router, "GET", "*").status, 404U);
}

TEST(Router, AWrongMethodIsToldTheRightOnes) {
  Router router;
  router.add("GET", "/a/{id}", says("get"));
  router.add("DELETE", "/a/{id}", says("delete"));
  router.add("PUT", "/a/x", says("put"));

  const Answer answer = ask(router, "POST", "/a/x");

  EXPECT_EQ(answer.status, 405U);
  EXPECT_EQ(answer.allow, "DELETE, GET, HEAD, PUT");
}

TEST(Router, ANodeWithoutTheMethodDoesNotHideOneThatHasIt) {
  Router router;
  router.add("POST", "/a/new", says("literal"));
  router.add("GET", "/a/{id}", says("parameter"));

  EXPECT_EQ(ask(router, "GET", "/a/new").text, "parameter");
  EXPECT_EQ(ask(router, "GET", "/a/new").request.parameter("id"), "new");
}

TEST(Router, HeadIsAnsweredByAUnaryGetButNotByAStream) {
  Router router;
  router.add("GET", "/unary", says("get"));
  router.add_stream("GET", "/stream", do_nothing);
  router.add("*", "/any", says("any"));

  EXPECT_EQ(ask(router, "HEAD", "/unary").text, "get");
  EXPECT_EQ(ask(router, "HEAD", "/stream").status, 405U);
  EXPECT_EQ(ask(router, "BREW", "/any").text, "any");
}

TEST(Router, MountedRoutersKeepTheirDialect) {
  const auto dialect = [](const std::string& name) {
    return [name](const Problem&, const Request&) { return text_response(418, name); };
  };
  Router inner;
  inner.set_error_renderer(dialect("inner"));
  inner.add("GET", "/x/{id}", says("x"));
  Router outer;
  outer.set_error_renderer(dialect("outer"));
  outer.mount("/api", inner);

  Answer found = ask(outer, "GET", "/api/x/7");
  EXPECT_EQ(found.text, "x");
  EXPECT_EQ(found.request.parameter("id"), "7");
  for (const auto& [path, name] : {std::pair("/api/y", "inner"), std::pair("/apis", "outer")}) {
    Request request;
    request.path = path;
    const auto match = outer.find(request);
    EXPECT_EQ(match.surface->renderer(*match.problem, request).body, name) << path;
  }
}

TEST(Router, HostsAreLookedAtBeforePaths) {
  Router router;
  router.add("GET", "/", says("root"));
  router.add_host([](std::string_view host) { return host.ends_with(".box"); }, do_nothing);
  Request request;
  request.path = "/..";
  request.host = "a.box";

  const auto match = router.find(request);

  ASSERT_NE(match.route, nullptr);
  EXPECT_TRUE(match.route->stream);
  EXPECT_EQ(ask(router, "GET", "/").text, "root");
}

TEST(Router, PatternsThatMakeNoSenseAreOurMistake) {
  Router router;
  router.add("GET", "/a", says("a"));

  EXPECT_THROW(router.add("GET", "/a", says("again")), Error);
  EXPECT_THROW(router.add("GET", "a", says("x")), Error);
  EXPECT_THROW(router.add("GET", "/{rest...}/x", says("x")), Error);
  EXPECT_THROW(router.add("GET", "/{}", says("x")), Error);
}

}  // namespace
}  // namespace hearth::net
