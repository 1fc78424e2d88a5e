#include "node/probes.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/tcp.h"
#include "node/fake_runtime_internal.h"
#include "node/grpc_health.h"

namespace hearth::node {
namespace {

using namespace std::chrono_literals;

Json json(std::string_view text) {
  return model::parse_json(text).value;
}

// Answers one connection with a text, whatever it is asked.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer)
      : listener_(linux::listen_tcp(linux::kLoopback, 0, 8)),
        thread_([this, answer = std::move(answer)](const std::stop_token& stop) {
          pollfd state{.fd = listener_.socket.get(), .events = POLLIN, .revents = 0};
          while (!stop.stop_requested() && ::poll(&state, 1, 20) <= 0) {
          }
          const linux::Fd peer(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
          if (!peer) return;
          char bytes[4096];
          asked_.assign(bytes, static_cast<std::size_t>(std::max<ssize_t>(
                                   0, ::recv(peer.get(), bytes, sizeof bytes, 0))));
          ::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
          ::shutdown(peer.get(), SHUT_WR);
          while (::recv(peer.get(), bytes, sizeof bytes, 0) > 0) {
          }
        }) {}
  std::uint16_t port() const { return listener_.port; }
  std::string asked() {
    thread_.request_stop();
    thread_.join();
    return asked_;
  }

 private:
  linux::TcpListener listener_;
  std::string asked_;
  std::jthread thread_;
};

class Asking : public testing::Test {
 protected:
  ProbeResult probe(const std::string& text, const std::string& container = "{}") {
    const Json spec = json(container);
    return prober_.probe(json(text), {"none", "127.0.0.1", spec});
  }

  FakeRuntime runtime_;
  Prober prober_{runtime_};
};

std::string answer_with(std::string_view status) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", status);
}

TEST_F(Asking, HttpIsWellFrom200To399) {
  for (const auto& [status, ok] : {std::pair{"200 OK", true}, std::pair{"302 Found", true},
                                   std::pair{"404 Not Found", false}, std::pair{"500 No", false}}) {
    OneAnswer server(answer_with(status));
    const ProbeResult result = probe(fmt::format(R"({{"httpGet":{{"path":"/healthz?x=1","port":{},
            "httpHeaders":[{{"name":"X-Word","value":"yes"}}]}}}})",
                                                 server.port()));
    EXPECT_EQ(result.ok, ok) << status << ": " << result.message;
    const std::string asked = server.asked();
    EXPECT_TRUE(asked.starts_with("GET /healthz?x=1 HTTP/1.1\r\n")) << asked;
    EXPECT_NE(asked.find("X-Word: yes"), std::string::npos);
    EXPECT_NE(asked.find("kube-probe"), std::string::npos);
  }
}

TEST_F(Asking, AnEndlessBodyDoesNotMatter) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + std::string(100000, 'x'));
  EXPECT_TRUE(probe(fmt::format(R"({{"httpGet":{{"port":{}}}}})", server.port())).ok);
}

TEST_F(Asking, NonsenseIsNoHealth) {
  OneAnswer server("\x01\x02 nothing of the kind\r\n\r\n");
  EXPECT_FALSE(probe(fmt::format(R"({{"httpGet":{{"port":{}}}}})", server.port())).ok);
}

TEST_F(Asking, OnlyThePodItselfIsAsked) {
  for (const char* kind : {"httpGet", "tcpSocket"}) {
    const ProbeResult result =
        probe(fmt::format(R"({{"{}":{{"port":80,"host":"169.254.169.254"}}}})", kind));
    EXPECT_FALSE(result.ok);
    EXPECT_NE(result.message.find("'169.254.169.254'"), std::string::npos) << result.message;
  }
}

TEST_F(Asking, PortsHaveNames) {
  const linux::TcpListener listener = linux::listen_tcp(linux::kLoopback, 0, 1);
  const std::string container =
      fmt::format(R"({{"ports":[{{"name":"web","containerPort":{}}}]}})", listener.port);
  EXPECT_TRUE(probe(R"({"tcpSocket":{"port":"web"}})", container).ok);
  EXPECT_EQ(probe(R"({"tcpSocket":{"port":"wob"}})", container).message,
            "there is no port 'wob' in the container");
}

TEST_F(Asking, ARefusedConnectionAndAMissingSandboxAreFailures) {
  std::uint16_t port = 0;
  {
    port = linux::listen_tcp(linux::kLoopback, 0, 1).port;
  }
  const ProbeResult result = probe(fmt::format(R"({{"tcpSocket":{{"port":{}}}}})", port));
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.message.find("ECONNREFUSED"), std::string::npos) << result.message;
  EXPECT_FALSE(probe(R"({"exec":{"command":["true"]}})").ok);
  EXPECT_FALSE(probe(R"({})").ok);
}

std::string frame(char type, char flags, char stream, const std::string& payload) {
  std::string bytes{0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream};
  return bytes + payload;
}

std::string health_answer(char status) {
  return frame(4, 0, 0, "") + frame(1, 4, 1, "\x88") +
         frame(0, 0, 1, std::string("\0\0\0\0\2\x08", 6) + status) + frame(1, 5, 1, "\x88");
}

TEST_F(Asking, GrpcServersSayHowTheyAre) {
  for (const auto& [answer, ok] :
       {std::pair{health_answer(1), true}, std::pair{health_answer(2), false},
        std::pair{frame(4, 0, 0, "") + frame(1, 5, 1, "\x88"), false},
        std::pair{frame(4, 0, 0, "") + frame(7, 0, 0, std::string(8, '\0')), false},
        std::pair{std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), false}}) {
    OneAnswer server(answer);
    const ProbeResult result =
        probe(fmt::format(R"({{"grpc":{{"port":{},"service":"a.b"}}}})", server.port()));
    EXPECT_EQ(result.ok, ok) << result.message;
    const std::string asked = server.asked();
    EXPECT_TRUE(asked.starts_with("PRI * HTTP/2.0"));
    EXPECT_NE(asked.find("/grpc.health.v1.Health/Check"), std::string::npos);
    EXPECT_NE(asked.find("\x0a\x03"
                         "a.b"),
              std::string::npos);
  }
}

TEST(HealthAnswer, ComesInPiecesAndIsAnswered) {
  HealthAnswer answer;
  std::string replies;
  for (const char byte : frame(6, 0, 0, "12345678") + health_answer(1))
    replies += answer.take({&byte, 1});
  EXPECT_TRUE(answer.is_over());
  EXPECT_EQ(answer.status(), HealthAnswer::Status::serving);
  EXPECT_EQ(replies, frame(6, 1, 0, "12345678") + frame(4, 1, 0, ""));
}

// --- when to ask

const Time kStart = Time(std::chrono::seconds(1000));

struct Driven {
  explicit Driven(std::string_view container) : state(json(container), kStart) {}

  // Answers the next question at its time.
  ProbeKind answer(bool ok) {
    const auto due = state.next();
    if (!due) throw std::runtime_error("nothing is asked");
    now = std::max(now, due->at);
    state.record(due->kind, {ok, ok ? "" : "why"}, now);
    return due->kind;
  }

  ProbeState state;
  Time now = kStart;
};

TEST(ProbeState, WithoutProbesAllIsWell) {
  const ProbeState state(json("{}"), kStart);
  EXPECT_TRUE(state.is_started() && state.is_ready());
  EXPECT_FALSE(state.has_probes());
  EXPECT_FALSE(state.next());
}

TEST(ProbeState, ReadinessIsAskedEagerlyAndLostSlowly) {
  Driven driven(R"({"readinessProbe":{"periodSeconds":10,"failureThreshold":2}})");
  EXPECT_FALSE(driven.state.is_ready());
  for (int i = 0; i < 3; ++i) driven.answer(false);
  EXPECT_LT(driven.now - kStart, 1s);
  driven.answer(true);
  EXPECT_TRUE(driven.state.is_ready());
  driven.answer(false);
  EXPECT_GE(driven.now - kStart, 10s);
  EXPECT_TRUE(driven.state.is_ready());
  driven.answer(false);
  EXPECT_GE(driven.now - kStart, 20s);
  EXPECT_FALSE(driven.state.is_ready());
  EXPECT_FALSE(driven.state.fatal());
}

TEST(ProbeState, LivenessEndsAContainerAfterSoManyPeriods) {
  Driven driven(
      R"({"livenessProbe":{"initialDelaySeconds":5,"periodSeconds":2,"failureThreshold":3}})");
  EXPECT_TRUE(driven.state.is_ready());
  driven.answer(false);
  EXPECT_EQ(driven.now - kStart, 5s);
  driven.answer(false);
  EXPECT_FALSE(driven.state.fatal());
  driven.answer(false);
  EXPECT_EQ(driven.now - kStart, 9s);
  EXPECT_EQ(driven.state.fatal(), "why");
  EXPECT_FALSE(driven.state.next());
  EXPECT_FALSE(driven.state.is_ready());
}

TEST(ProbeState, StartupComesFirstAndItsExtraQuestionsDoNotCount) {
  Driven driven(R"({"startupProbe":{"periodSeconds":10,"failureThreshold":3},
                    "livenessProbe":{"periodSeconds":1},"readinessProbe":{}})");
  EXPECT_FALSE(driven.state.is_started());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(driven.answer(false), ProbeKind::startup);
  EXPECT_FALSE(driven.state.fatal());
  EXPECT_EQ(driven.answer(true), ProbeKind::startup);
  EXPECT_TRUE(driven.state.is_started());
  EXPECT_FALSE(driven.state.is_ready());
  EXPECT_EQ(driven.answer(true), ProbeKind::readiness);
  EXPECT_TRUE(driven.state.is_ready());
  EXPECT_EQ(driven.answer(true), ProbeKind::liveness);
}

TEST(ProbeState, AStartupThatNeverPassesIsFatal) {
  Driven driven(R"({"startupProbe":{"periodSeconds":1,"failureThreshold":2}})");
  while (driven.state.next()) driven.answer(false);
  EXPECT_TRUE(driven.state.fatal());
  EXPECT_GE(driven.now - kStart, 1s);
  EXPECT_LT(driven.now - kStart, 3s);
}

TEST(ProbeState, AProbeMayGrantATimeOfItsOwn) {
  const Driven driven(R"({"startupProbe":{"terminationGracePeriodSeconds":7},"livenessProbe":{}})");
  EXPECT_EQ(driven.state.grace(ProbeKind::startup), 7s);
  EXPECT_EQ(driven.state.grace(ProbeKind::liveness), std::nullopt);
  EXPECT_EQ(driven.state.grace(ProbeKind::readiness), std::nullopt);
}

TEST(ProbeState, SuccessMayHaveToBeRepeated) {
  Driven driven(R"({"readinessProbe":{"periodSeconds":1,"successThreshold":2}})");
  driven.answer(true);
  EXPECT_FALSE(driven.state.is_ready());
  driven.answer(true);
  EXPECT_TRUE(driven.state.is_ready());
}

}  // namespace
}  // namespace hearth::node
