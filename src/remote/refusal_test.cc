// What is answered before a connection is switched over; and logs, for which none is.
#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "net/client.h"
#include "remote/testing_internal.h"

namespace hearth::remote {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

TEST_F(RemoteTest, WordsOfRefusal) {
  struct Case {
    std::string_view pod;
    std::string target;
    unsigned code;
    std::string message;
  };
  const Case cases[] = {
      {kTwo, "/exec?command=ls&stdout=true", 400,
       "a container name must be specified for pod p1, choose one of: [main side]"},
      {kTwo, "/log", 400,
       "a container name must be specified for pod p1, choose one of: [main side]"},
      {kPod, "/exec?container=zz&command=ls&stdout=true", 400,
       "container zz is not valid for pod p1"},
      {kPod, "/log?container=zzz", 400, "container zzz is not valid for pod p1"},
      {kPod, "/exec?command=ls&stdout=true", 400, "Upgrade request required"},
      {kPod, "/attach?stdout=true", 400, "Upgrade request required"},
      {kPod, "/portforward?ports=80", 400, "Upgrade request required"},
      {kHomeless, "/exec?command=ls&stdout=true", 400, "pod p1 does not have a host assigned"},
      {kHomeless, "/portforward", 400, "pod p1 does not have a host assigned"},
      {kTwo, "/log?container=side", 400,
       "container \"side\" in pod \"p1\" is waiting to start: ContainerCreating"},
      {kWithoutImage, "/log", 400,
       "container \"main\" in pod \"p1\" is waiting to start: trying and failing to pull image"},
      {kPod, "/log?tailLines=-1", 422,
       "PodLogOptions \"p1\" is invalid: tailLines: Invalid value: -1: must be greater than or "
       "equal to 0"},
      {kPod, "/log?limitBytes=0", 422,
       "PodLogOptions \"p1\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"},
      {kPod, "/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z", 422,
       "PodLogOptions \"p1\" is invalid: []: Forbidden: at most one of `sinceTime` or "
       "`sinceSeconds` may be specified"},
      {kPod, "/log?tailLines=many", 400, "tailLines: 'many' is no number"},
  };
  for (const Case& one : cases) {
    pod_ = model::parse_json(one.pod).value;
    refused_ = {};
    get(one.target);
    EXPECT_EQ(refused_.message, one.message) << one.target;
    EXPECT_EQ(refused_.code, one.code) << one.target;
  }
}

TEST_F(RemoteTest, WebSocketRefusals) {
  const auto refusal = [&](const std::string& target, const std::string& protocol) {
    net::Request request;
    request.target = target;
    request.headers = {{"Connection", "Upgrade"},
                       {"Upgrade", "websocket"},
                       {"Sec-WebSocket-Version", "13"},
                       {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
                       {"Sec-WebSocket-Protocol", protocol}};
    refused_ = {};
    return net::Client(endpoint()).fetch(std::move(request)).status;
  };
  EXPECT_EQ(refusal("/exec?command=ls&stdout=1", "v9.channel.k8s.io"), 403U);
  EXPECT_EQ(refusal("/exec?stdout=1", "v5.channel.k8s.io"), 400U);
  EXPECT_EQ(refusal("/exec?command=ls", "v5.channel.k8s.io"), 400U);
  EXPECT_EQ(refused_.message, "you must specify at least 1 of stdin, stdout, stderr");
  EXPECT_EQ(refusal("/portforward", "v4.channel.k8s.io"), 400U);
  EXPECT_EQ(refusal("/portforward?ports=0", "v4.channel.k8s.io"), 400U);
  pod_ = model::parse_json(kTwo).value;
  EXPECT_EQ(refusal("/exec?container=main&command=ls&stdout=1", "v5.channel.k8s.io"), 500U);
  EXPECT_EQ(refused_.message, "container not found (\"main\")");
}

TEST_F(RemoteTest, LogIsPlainText) {
  backend_.log_text = "one\ntwo\n";
  const net::Response all = get("/log?timestamps=true&tailLines=2&sinceSeconds=60&previous=0");
  EXPECT_EQ(all.status, 200U);
  EXPECT_EQ(all.body, "one\ntwo\n");
  EXPECT_EQ(all.headers.value("Content-Type"), "text/plain");
  EXPECT_TRUE(backend_.log_options.timestamps);
  EXPECT_FALSE(backend_.log_options.previous);
  EXPECT_EQ(backend_.log_options.tail_lines, 2U);
  EXPECT_TRUE(backend_.log_options.since.has_value());
  EXPECT_EQ(get("/log?limitBytes=5").body, "one\nt");
  pod_ = model::parse_json(kHomeless).value;
  EXPECT_EQ(get("/log").body, "");
}

asio::awaitable<void> follow_a_bit(net::Endpoint endpoint, linux::Fd& writer) {
  net::AsyncClient client(endpoint);
  net::Request request;
  request.target = "/log?follow=true&stream=Stderr";
  const auto exchange = co_await client.open(std::move(request));
  co_await exchange->read_head(5s);
  EXPECT_EQ(co_await exchange->read_some(5s), "begin\n");
  linux::write_all(writer.get(), "more\n");
  EXPECT_EQ(co_await exchange->read_some(5s), "more\n");
}

TEST_F(RemoteTest, AFollowedLogEndsWithItsClient) {
  backend_.log_text = "begin\n";
  run(follow_a_bit(endpoint(), backend_.log_writer));
  EXPECT_EQ(backend_.log_options.stream, LogStream::error);
  const auto deadline = Deadline::after(10s);
  bool is_closed = false;
  while (!is_closed && !deadline.passed()) {
    is_closed = ::write(backend_.log_writer.get(), "x", 1) < 0;
    std::this_thread::yield();
  }
  EXPECT_TRUE(is_closed);
}

TEST(NoNodeTest, SaysThatNothingRuns) {
  NoNode none;
  EXPECT_EQ(none.workers(), nullptr);
  EXPECT_THROW(none.start({}, {}, {}), Error);
  EXPECT_THROW(none.attach({}, {}), Error);
  EXPECT_THROW(none.connect({}, 1), Error);
  EXPECT_THROW(none.open_log({}, {}), Error);
}

}  // namespace
}  // namespace hearth::remote
