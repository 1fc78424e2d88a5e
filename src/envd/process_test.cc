// process.Process on the wire, with a real guest behind it.
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "envd/messages.h"
#include "envd/stream_testing.h"
#include "envd/wire_testing.h"
#include "linux/resource_limits.h"

namespace hearth::envd {
namespace {

using namespace std::chrono_literals;

class EnvdProcess : public EnvdTest {
 protected:
  TestStream start(const std::string& script, const std::string& more = R"(,"stdin":false)",
                   const http::Headers& headers = {}) const {
    return TestStream(port_, "process.Process/Start",
                      fmt::format(R"({{"process":{{"cmd":"/bin/sh","args":["-c",{}]}}{}}})",
                                  quoted(script), more),
                      headers);
  }
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + '"';
  }
  static std::string out(const std::string& text) {
    return R"({"event":{"data":{"stdout":")" + base64_encode(text) + "\"}}}";
  }
  // All of it, to the end of the stream.
  static std::string output_of(TestStream& stream) {
    std::string all;
    for (std::string message = stream.next(); message.starts_with('{'); message = stream.next()) {
      const auto event = from_json<ProcessResponse>(message).event;
      if (event->data) all += event->data->out->data;
    }
    return all;
  }
  static std::string by_pid(unsigned pid, const std::string& more = {}) {
    return fmt::format(R"({{"process":{{"pid":{}}}{}}})", pid, more);
  }
  http::Response signal(unsigned pid, const char* name) const {
    return call("process.Process/SendSignal", by_pid(pid, fmt::format(R"(,"signal":"{}")", name)));
  }
  http::Response input(unsigned pid, const std::string& text, const char* kind = "stdin") const {
    return call("process.Process/SendInput",
                by_pid(pid, fmt::format(R"(,"input":{{"{}":"{}"}})", kind, base64_encode(text))));
  }
  Duration used_processor() const {
    clockid_t clock{};
    timespec used{};
    EXPECT_EQ(::clock_getcpuclockid(server_, &clock), 0);
    EXPECT_EQ(::clock_gettime(clock, &used), 0);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  }
  static bool is_alive(unsigned pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0; }
};

const std::string kGoodEnd = R"({"event":{"end":{"exited":true,"status":"exit status 0"}}})"
                             "\nend:{}\n";

TEST_F(EnvdProcess, TellsStartOutputAndEnd) {
  TestStream stream = start("echo hi");
  const std::string first = stream.next();
  EXPECT_TRUE(first.starts_with(R"({"event":{"start":{"pid":)")) << first;
  EXPECT_EQ(stream.type(), "application/connect+json");
  EXPECT_EQ(stream.rest(), out("hi\n") + "\n" + kGoodEnd);
}

TEST_F(EnvdProcess, TellsHowACommandFailed) {
  TestStream stream = start("echo oh >&2; exit 3");
  stream.next();
  EXPECT_EQ(
      stream.rest(),
      R"({"event":{"data":{"stderr":")" + base64_encode("oh\n") + "\"}}}\n" +
          R"({"event":{"end":{"exitCode":3,"exited":true,"status":"exit status 3","error":"exit status 3"}}})"
          "\nend:{}\n");
  TestStream killed = start("kill -SEGV $$");
  killed.next();
  EXPECT_EQ(
      killed.rest(),
      R"({"event":{"end":{"exitCode":-1,"status":"signal: segmentation fault","error":"signal: segmentation fault"}}})"
      "\nend:{}\n");
  TestStream rare = start("kill -PWR $$");
  EXPECT_NE(rare.rest().find(R"("status":"signal: power failure")"), std::string::npos);
}

TEST_F(EnvdProcess, GivesTheEnvironmentInItsOrder) {
  TestStream stream(
      port_, "process.Process/Start",
      R"({"process":{"cmd":"/bin/sh","args":["-c","echo $FROM_SANDBOX $BOTH $E2B_SANDBOX; pwd"],)"
      R"("envs":{"BOTH":"request"}},"stdin":false})");
  stream.next();
  EXPECT_EQ(output_of(stream), "yes request true\n" + folder_ + "/work\n");
}

TEST_F(EnvdProcess, SaysWhatIsWrongBeforeItStarts) {
  TestStream directory(port_, "process.Process/Start",
                       R"({"process":{"cmd":"ls","cwd":"/not/there"}})");
  EXPECT_EQ(directory.rest(),
            "end:{\"error\":{\"code\":\"invalid_argument\",\"message\":\"cwd '/not/there' does not "
            "exist\"}}\n");
  TestStream program(port_, "process.Process/Start", R"({"process":{"cmd":"/not/there"}})");
  EXPECT_TRUE(program.rest().starts_with(
      "end:{\"error\":{\"code\":\"invalid_argument\",\"message\":\"error starting process "
      "'/not/there': "));
  TestStream user(port_, "process.Process/Start", R"({"process":{"cmd":"ls"}})",
                  {{"Authorization", "Basic " + base64_encode("nobody-here:")}});
  EXPECT_EQ(user.rest(),
            "end:{\"error\":{\"code\":\"unauthenticated\",\"message\":\"invalid username: "
            "'nobody-here'\"}}\n");
  TestStream nothing(port_, "process.Process/Start", "{}");
  EXPECT_TRUE(nothing.rest().starts_with("end:{\"error\":{\"code\":\"invalid_argument\""));
  TestStream garbage(port_, "process.Process/Start", "not json");
  EXPECT_TRUE(garbage.rest().starts_with("end:{\"error\":{\"code\":\"invalid_argument\""));
  TestStream timeout(port_, "process.Process/Start", R"({"process":{"cmd":"ls"}})",
                     {{"Connect-Timeout-Ms", "12345678901"}});
  EXPECT_TRUE(timeout.rest().starts_with("end:{\"error\":{\"code\":\"invalid_argument\""));
}

TEST_F(EnvdProcess, KillsAtTheDeadline) {
  const auto before = std::chrono::steady_clock::now();
  TestStream stream =
      start("sleep 60 & sleep 60", R"(,"stdin":false)", {{"Connect-Timeout-Ms", "2000"}});
  const unsigned pid = pid_in(stream.next());
  EXPECT_TRUE(stream.rest().starts_with("end:{\"error\":{\"code\":\"deadline_exceeded\""));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 40s);
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(EnvdProcess, KeepsQuietStreamsAlive) {
  TestStream stream = start("while [ ! -e go ]; do sleep 0.05; done", R"(,"stdin":false)",
                            {{"Keepalive-Ping-Interval", "1"}});
  stream.next();
  const std::string alive = R"({"event":{"keepalive":{}}})";
  EXPECT_EQ(stream.next(), alive);
  EXPECT_EQ(stream.next(), alive);
  write("work/go", "");
  std::string rest = stream.rest();
  while (rest.starts_with(alive)) rest.erase(0, alive.size() + 1);  // the end took its time
  EXPECT_EQ(rest, kGoodEnd);
}

TEST_F(EnvdProcess, GoesOnWithoutItsClient) {
  TestStream stream = start(
      "while [ ! -e go ]; do sleep 0.05; done; head -c 1000000 /dev/zero; "
      "echo done > result; sleep 60");
  const unsigned pid = pid_in(stream.next());
  stream.close();
  TestStream second(port_, "process.Process/Connect", by_pid(pid));
  EXPECT_EQ(second.next(), fmt::format(R"({{"event":{{"start":{{"pid":{}}}}}}})", pid));
  second.close();
  write("work/go", "");
  // Nobody listens, and yet it gets rid of more than a pipe holds.
  for (int i = 0; i < 1200 && !std::filesystem::exists(path("work/result")); ++i)
    std::this_thread::sleep_for(50ms);
  EXPECT_EQ(read(path("work/result")), "done\n");
  EXPECT_TRUE(is_alive(pid));
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 200U);
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(EnvdProcess, SpeaksToSeveralListeners) {
  TestStream first = start("read x; echo $x; read y; echo $y", "");
  const unsigned pid = pid_in(first.next());
  TestStream second(port_, "process.Process/Connect", by_pid(pid));
  EXPECT_EQ(pid_in(second.next()), pid);
  EXPECT_EQ(input(pid, "one\n").body, "{}");
  EXPECT_EQ(first.next(), out("one\n"));
  EXPECT_EQ(second.next(), out("one\n"));
  first.close();
  EXPECT_EQ(input(pid, "two\n").status, 200U);
  EXPECT_EQ(second.rest(), out("two\n") + "\n" + kGoodEnd);
  // The end is known for a while.
  TestStream late(port_, "process.Process/Connect", by_pid(pid));
  EXPECT_EQ(pid_in(late.next()), pid);
  EXPECT_EQ(late.rest(), kGoodEnd);
  EXPECT_EQ(signal(pid, "SIGNAL_SIGTERM").status, 404U);
}

TEST_F(EnvdProcess, ASlowListenerSlowsTheCommandDown) {
  TestStream stream = start("head -c 100000000 /dev/zero; echo finished > result");
  const unsigned pid = pid_in(stream.next());
  std::this_thread::sleep_for(500ms);  // it would be over long ago
  EXPECT_FALSE(std::filesystem::exists(path("work/result")));
  stream.close();
  for (int i = 0; i < 1200 && !std::filesystem::exists(path("work/result")); ++i)
    std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(std::filesystem::exists(path("work/result")));
  EXPECT_NE(pid, 0U);
}

TEST_F(EnvdProcess, ATimeoutOfConnectEndsOnlyTheStream) {
  TestStream first = start("sleep 60");
  const unsigned pid = pid_in(first.next());
  TestStream second(port_, "process.Process/Connect", by_pid(pid), {{"Connect-Timeout-Ms", "100"}});
  second.next();
  EXPECT_TRUE(second.rest().starts_with("end:{\"error\":{\"code\":\"deadline_exceeded\""));
  EXPECT_TRUE(is_alive(pid));
}

class EnvdCrowd : public EnvdProcess {
 protected:
  void SetUp() override {
    linux::raise_own_limit(RLIMIT_NOFILE);  // as a guest does
    EnvdProcess::SetUp();
  }
};

TEST_F(EnvdCrowd, WhateverListensLeavesRoomForOtherCalls) {
  TestStream first = start("sleep 600");
  const unsigned pid = pid_in(first.next());
  std::vector<std::unique_ptr<TestStream>> more;
  const auto connect = [&] {
    more.push_back(std::make_unique<TestStream>(port_, "process.Process/Connect", by_pid(pid)));
    return more.back()->next();
  };
  for (int i = 1; i < 896; ++i) ASSERT_EQ(pid_in(connect()), pid) << i;
  EXPECT_TRUE(connect().starts_with(R"(end:{"error":{"code":"resource_exhausted")"));
  EXPECT_EQ(ask("GET", "/health").status, 204U);
  // One that ends leaves its place to another, as soon as that is noticed.
  more.front()->close();
  const Deadline deadline = Deadline::after(1min);
  while (pid_in(connect()) != pid && !deadline.passed()) {
  }
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 200U);
}

TEST_F(EnvdProcess, ListsWhatRuns) {
  EXPECT_EQ(call("process.Process/List", "{}").body, "{}");
  TestStream stream(port_, "process.Process/Start",
                    R"({"process":{"cmd":"/bin/sleep","args":["60"],"envs":{"A":"1"},"cwd":"/"},)"
                    R"("tag":"mine","stdin":false})");
  const unsigned pid = pid_in(stream.next());
  EXPECT_EQ(call("process.Process/List", "{}").body,
            fmt::format(R"({{"processes":[{{"config":{{"cmd":"/bin/sleep","args":["60"],)"
                        R"("envs":{{"A":"1"}},"cwd":"/"}},"pid":{},"tag":"mine"}}]}})",
                        pid));
  TestStream by_tag(port_, "process.Process/Connect", R"({"process":{"tag":"mine"}})");
  EXPECT_EQ(pid_in(by_tag.next()), pid);
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").body, "{}");
  EXPECT_EQ(
      by_tag.rest(),
      R"({"event":{"end":{"exitCode":-1,"status":"signal: killed","error":"signal: killed"}}})"
      "\nend:{}\n");
  EXPECT_EQ(call("process.Process/List", "{}").body, "{}");
}

TEST_F(EnvdProcess, DoesNotKnowStrangers) {
  TestStream connect(port_, "process.Process/Connect", by_pid(999999));
  EXPECT_EQ(connect.rest(),
            "end:{\"error\":{\"code\":\"not_found\",\"message\":\"process with pid 999999 not "
            "found\"}}\n");
  const http::Response answer = signal(999999, "SIGNAL_SIGKILL");
  EXPECT_EQ(answer.status, 404U);
  EXPECT_EQ(answer.body, R"({"code":"not_found","message":"process with pid 999999 not found"})");
  EXPECT_EQ(
      call("process.Process/SendInput", R"({"process":{"tag":"x"},"input":{"stdin":""}})").status,
      404U);
  EXPECT_EQ(call("process.Process/Update", "{}").status, 400U);
}

TEST_F(EnvdProcess, WaitsForOutputOfChildrenUnlessItWasEnded) {
  // A grandchild holds the pipe.
  TestStream patient = start("(sleep 0.5; echo late) & echo early");
  patient.next();
  EXPECT_EQ(patient.rest(), out("early\n") + "\n" + out("late\n") + "\n" + kGoodEnd);
  TestStream ended = start("sleep 60 & echo early; exec sleep 60");
  const unsigned pid = pid_in(ended.next());
  EXPECT_EQ(ended.next(), out("early\n"));
  EXPECT_EQ(signal(pid, "SIGNAL_SIGTERM").status, 200U);
  EXPECT_TRUE(ended.rest().starts_with(R"({"event":{"end":{"exitCode":-1,"status":"signal: term)"));
}

TEST_F(EnvdProcess, ItsDeadlineHoldsForChildrenThatKeepItsOutput) {
  for (const char* child : {"sleep 60", "while :; do echo more >&2; sleep 0.01; done"}) {
    TestStream stream =
        start(fmt::format("({}) & echo early", child), "", {{"Connect-Timeout-Ms", "500"}});
    const unsigned pid = pid_in(stream.next());
    const std::string told = stream.rest();
    EXPECT_NE(told.find(out("early\n")), std::string::npos);
    EXPECT_NE(told.find("end:{\"error\":{\"code\":\"deadline_exceeded\""), std::string::npos);
    EXPECT_EQ(call("process.Process/List", "{}").body, "{}");
    EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 404U);
  }
}

TEST_F(EnvdProcess, EndsThoughAChildWritesForEver) {
  TestStream pipe = start("yes & sleep 60");
  const unsigned pid = pid_in(pipe.next());
  std::thread killer([&] { EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 200U); });
  EXPECT_NE(pipe.rest().find("signal: killed"), std::string::npos);
  killer.join();
  TestStream terminal = start("yes & sleep 0.1", R"(,"pty":{"size":{"cols":80,"rows":24}})");
  terminal.next();
  EXPECT_NE(terminal.rest().find("exit status 0"), std::string::npos);
}

TEST_F(EnvdProcess, WhatIsKilledIsGoneThoughItsListenerIsSlow) {
  TestStream stream = start("yes");
  const unsigned pid = pid_in(stream.next());
  std::this_thread::sleep_for(500ms);  // nobody reads: whoever tells of it waits
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 200U);
  EXPECT_FALSE(is_alive(pid));
  EXPECT_EQ(call("process.Process/List", "{}").body, "{}");
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 404U);
  EXPECT_NE(stream.rest().find("signal: killed"), std::string::npos);
}

TEST_F(EnvdProcess, WhatEndedAtItsDeadlineIsGoneThoughItsListenerIsSlow) {
  TestStream stream = start("yes", "", {{"Connect-Timeout-Ms", "300"}});
  const unsigned pid = pid_in(stream.next());
  const Deadline deadline = Deadline::after(1min);
  while (call("process.Process/List", "{}").body != "{}" && !deadline.passed())
    std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 404U);
  EXPECT_NE(stream.rest().find("deadline_exceeded"), std::string::npos);
}

TEST_F(EnvdProcess, NobodyIsBusyWaitingForASlowListenerOfATerminal) {
  TestStream stream = start("yes", R"(,"pty":{"size":{"cols":80,"rows":24}})");
  const unsigned pid = pid_in(stream.next());
  TestStream slow(port_, "process.Process/Connect", by_pid(pid));
  slow.next();
  stream.close();
  std::this_thread::sleep_for(500ms);  // until it has to wait
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 200U);
  std::this_thread::sleep_for(200ms);  // a terminal's last words have that long
  const auto before = used_processor();
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(used_processor() - before, 200ms);
  EXPECT_NE(slow.rest().find("signal: killed"), std::string::npos);
}

TEST_F(EnvdProcess, SignalsTheCommandAlone) {
  TestStream stream = start("sleep 60 & echo $!; wait");
  const unsigned pid = pid_in(stream.next());
  const std::string message = stream.next();
  const auto data = from_json<ProcessResponse>(message).event->data->out->data;
  const auto child = static_cast<unsigned>(std::stoul(data));
  EXPECT_EQ(signal(pid, "SIGNAL_SIGKILL").status, 200U);
  stream.rest();
  EXPECT_FALSE(is_alive(pid));
  EXPECT_TRUE(is_alive(child));
  EXPECT_EQ(signal(pid, "SIGNAL_UNSPECIFIED").status, 404U);  // it is gone
  TestStream other = start("sleep 60");
  const http::Response refused = signal(pid_in(other.next()), "SIGNAL_UNSPECIFIED");
  EXPECT_EQ(refused.status, 501U);
}

TEST_F(EnvdProcess, TakesInputUntilItIsClosed) {
  TestStream stream = start("cat; echo over", R"(,"stdin":true)");
  const unsigned pid = pid_in(stream.next());
  EXPECT_EQ(input(pid, "hello\n").status, 200U);
  EXPECT_EQ(stream.next(), out("hello\n"));
  EXPECT_EQ(input(pid, "x", "pty").status, 500U);
  EXPECT_EQ(call("process.Process/CloseStdin", by_pid(pid)).body, "{}");
  // Twice does not matter, if it is still there.
  const unsigned again = call("process.Process/CloseStdin", by_pid(pid)).status;
  EXPECT_TRUE(again == 200U || again == 404U);
  EXPECT_EQ(stream.rest(), out("over\n") + "\n" + kGoodEnd);

  TestStream without = start("sleep 60");
  const http::Response answer = input(pid_in(without.next()), "x");
  EXPECT_EQ(answer.status, 500U);
  EXPECT_EQ(
      answer.body,
      R"({"code":"internal","message":"error writing to stdin: stdin not enabled or closed"})");
}

TEST_F(EnvdProcess, InputThatNobodyTakesIsNoEndOfTheSandbox) {
  TestStream stream = start("exec <&-; echo closed; sleep 60", R"(,"stdin":true)");
  const unsigned pid = pid_in(stream.next());
  EXPECT_EQ(stream.next(), out("closed\n"));
  const http::Response answer = input(pid, "x");
  EXPECT_EQ(answer.status, 500U);
  EXPECT_TRUE(answer.body.starts_with(R"({"code":"internal","message":"error writing to stdin: )"))
      << answer.body;
}

TEST_F(EnvdProcess, StreamsInput) {
  TestStream stream = start("head -c 9; echo", "");
  const unsigned pid = pid_in(stream.next());
  const std::string data = R"({"data":{"input":{"stdin":")" + base64_encode("abc") + "\"}}}";
  const std::string body = make_envelope(0, R"({"start":)" + by_pid(pid) + "}") +
                           make_envelope(0, data) + make_envelope(0, R"({"keepalive":{}})") +
                           make_envelope(0, data) + make_envelope(0, data);
  const http::Response answer = ask("POST", "/process.Process/StreamInput", body,
                                    {{"Content-Type", "application/connect+json"}});
  EXPECT_EQ(answer.body, make_envelope(0, "{}") + make_envelope(kEndOfStream, "{}"));
  EXPECT_EQ(output_of(stream), "abcabcabc\n");
  EXPECT_TRUE(ask("POST", "/process.Process/StreamInput", make_envelope(0, data),
                  {{"Content-Type", "application/connect+json"}})
                  .body.find("invalid_argument") != std::string::npos);
}

TEST_F(EnvdProcess, HasTerminals) {
  TestStream stream =
      start("stty size; read x; stty size; exit 4", R"(,"pty":{"size":{"cols":80,"rows":24}})");
  const unsigned pid = pid_in(stream.next());
  std::string screen;
  const auto read_until = [&](const std::string& text) {
    while (screen.find(text) == std::string::npos) {
      const std::string message = stream.next();
      if (message.starts_with("end:") || message == "nothing") return false;
      const auto event = from_json<ProcessResponse>(message).event;
      if (event->data) screen += event->data->pty->data;
      if (event->end) return event->end->exit_code.value == 4;
    }
    return true;
  };
  EXPECT_TRUE(read_until("24 80"));
  EXPECT_EQ(
      call("process.Process/Update", by_pid(pid, R"(,"pty":{"size":{"cols":100,"rows":30}})")).body,
      "{}");
  EXPECT_EQ(input(pid, "x").status, 500U);
  EXPECT_EQ(call("process.Process/CloseStdin", by_pid(pid)).body.find("\"code\":\"unknown\""), 1U);
  EXPECT_EQ(input(pid, "go\n", "pty").status, 200U);
  EXPECT_TRUE(read_until("30 100"));
  EXPECT_TRUE(read_until("never"));  // the end, with its code
}

TEST_F(EnvdProcess, ResizesNoPipes) {
  TestStream stream = start("sleep 60");
  const http::Response answer =
      call("process.Process/Update",
           by_pid(pid_in(stream.next()), R"(,"pty":{"size":{"cols":1,"rows":1}})"));
  EXPECT_EQ(answer.status, 500U);
  EXPECT_EQ(answer.body.find(R"({"code":"internal")"), 0U);
}

TEST_F(EnvdProcess, SpeaksBinaryToo) {
  StartRequest request;
  request.process.emplace();
  request.process->cmd = "/bin/echo";
  request.process->args = {"hi"};
  TestStream stream(port_, "process.Process/Start", to_proto(request), {}, "proto");
  EXPECT_NE(from_proto<ProcessResponse>(stream.next()).event->start->pid, 0U);
  EXPECT_EQ(stream.type(), "application/connect+proto");
  EXPECT_EQ(from_proto<ProcessResponse>(stream.next()).event->data->out->data, "hi\n");
  EXPECT_EQ(from_proto<ProcessResponse>(stream.next()).event->end->status, "exit status 0");
  EXPECT_EQ(stream.next(), "end:{}");
  const http::Response list =
      ask("POST", "/process.Process/List", "", {{"Content-Type", "application/proto"}});
  EXPECT_EQ(list.headers.value("Content-Type"), "application/proto");
  EXPECT_EQ(list.body, "");
}

}  // namespace
}  // namespace hearth::envd
