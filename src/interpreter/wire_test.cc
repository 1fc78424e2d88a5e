// The surface over HTTP with real kernels: endpoints, errors, turns, departures.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

using namespace std::chrono_literals;

class Wire : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    if (::system("python3 -c pass >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "there is no python3 on this machine";
  }

  Executed run(std::string_view code, std::string_view more = "") const {
    return read_events(guest_.ask("POST", "/execute", cell(code, more)));
  }
  std::string make_context(const std::string& body) const {
    const http::Response made = guest_.ask("POST", "/contexts", body);
    EXPECT_EQ(made.status, 200U) << made.body;
    return made.body.substr(7, 36);
  }
  // A client in the middle of a cell that has printed "begun".
  serve::TestClient begin(std::string_view code, std::string_view more = "") const {
    serve::TestClient client = guest_.begin(cell(fmt::format("print('begun')\n{}", code), more));
    std::string seen;
    while (seen.find("begun") == std::string::npos) {
      const auto piece = client.receive_piece();
      if (!piece) break;
      seen += *piece;
    }
    return client;
  }
  static std::string rest_of(serve::TestClient& client) {
    std::string rest;
    while (const auto piece = client.receive_piece()) rest += *piece;
    return rest;
  }

  TestGuest guest_;
};

TEST_F(Wire, SaysThatItIsHealthy) {
  const http::Response response = guest_.ask("GET", "/health");

  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(response.body, "\"OK\"");
}

TEST_F(Wire, StreamsTheEventsOfACell) {
  const http::Response response = guest_.ask("POST", "/execute", cell("print('a'); 1 + 1"));
  const Executed executed = read_events(response);

  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(executed.kinds, (std::vector<std::string>{"number_of_executions", "stdout", "result",
                                                      "end_of_execution"}));
  EXPECT_EQ(executed.count, 1U);
  EXPECT_EQ(executed.output, "a\n");
  EXPECT_EQ(executed.result_field("text"), "2");
  EXPECT_EQ(executed.result_field("is_main_result"), "true");
  EXPECT_NE(executed.body.find("\"timestamp\":\"20"), std::string::npos);
}

TEST_F(Wire, TakesExplicitNulls) {
  EXPECT_EQ(run("1", R"("context_id":null,"language":null,"env_vars":null)").result_field("text"),
            "1");
}

TEST_F(Wire, ListsPythonAndJavaScriptFromTheStart) {
  const http::Response response = guest_.ask("GET", "/contexts");

  EXPECT_EQ(response.status, 200U);
  const std::size_t python = response.body.find(R"("language":"python")");
  EXPECT_NE(python, std::string::npos);
  EXPECT_NE(response.body.find(R"("language":"javascript")", python), std::string::npos);
}

TEST_F(Wire, RefusesInPlainText) {
  const auto expect = [&](const http::Response& response, unsigned status, std::string_view text) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_NE(response.body.find(text), std::string::npos) << response.body;
    EXPECT_TRUE(response.headers.value("Content-Type").starts_with("text/plain"));
  };
  const auto execute = [&](const std::string& body) {
    return guest_.ask("POST", "/execute", body);
  };
  expect(execute(cell("1", R"("context_id":"a","language":"python")")), 400,
         "Only one of context_id or language can be provided");
  expect(execute(cell("1", R"("context_id":"abc")")), 404, "Context abc not found");
  expect(execute(cell("1", R"("language":"r")")), 500, "'r' is not supported");
  expect(execute("{}"), 400, "'code' is missing");
  expect(execute("[]"), 400, "no JSON object");
  expect(execute("{"), 400, "not JSON");
  expect(execute(R"({"code":1})"), 400, "'code' is no text");
  expect(execute(cell("1", R"("env_vars":{"A":1})")), 400, "'A'");
  expect(execute(cell("1", R"("env_vars":{"A=B":"1"})")), 400, "'A=B'");
  expect(guest_.ask("POST", "/contexts", R"({"language":"cobol"})"), 500, "'cobol'");
  expect(guest_.ask("POST", "/contexts", R"({"cwd":"/not/there"})"), 500, "'/not/there'");
  expect(guest_.ask("DELETE", "/contexts/abc"), 404, "Context abc not found");
  expect(guest_.ask("POST", "/contexts/abc/restart"), 404, "Context abc not found");
  expect(guest_.ask("GET", "/execute"), 405, "");
  expect(guest_.ask("GET", "/elsewhere"), 404, "");
}

TEST_F(Wire, SaysWhichProgramIsMissing) {
  const TestGuest poor({.environment = {"PATH=/nowhere"}});
  const http::Response python = poor.ask("POST", "/execute", cell("1"));
  const http::Response node = poor.ask("POST", "/execute", cell("1", R"("language":"js")"));

  EXPECT_EQ(python.status, 500U);
  EXPECT_EQ(python.body, "there is no program 'python3' in the sandbox");
  EXPECT_EQ(node.status, 500U);
  EXPECT_EQ(node.body, "there is no program 'node' in the sandbox");
}

TEST_F(Wire, AnswersBrowsers) {
  const http::Response response = guest_.ask("OPTIONS", "/execute");

  EXPECT_EQ(response.status, 204U);
  EXPECT_EQ(response.headers.value("Access-Control-Allow-Origin"), "*");
}

TEST_F(Wire, AsksForTheTokenWhereClientsSendIt) {
  const TestGuest secured({.token = "secret"});
  http::Request request{.method = "POST", .target = "/execute", .body = cell("1")};
  EXPECT_EQ(secured.client().ask(request).status, 401U);
  request.headers.add("X-Access-Token", "secret");
  EXPECT_EQ(secured.client().ask(request).status, 200U);
  EXPECT_EQ(secured.ask("GET", "/contexts").status, 200U);
}

TEST_F(Wire, KeepsContextsApart) {
  const std::string one = make_context(R"({"language":"python","cwd":"/usr"})");
  const std::string other = make_context("{}");
  run("x = 1", fmt::format(R"("context_id":"{}")", one));

  EXPECT_EQ(run("x", fmt::format(R"("context_id":"{}")", one)).result_field("text"), "1");
  EXPECT_EQ(run("x", fmt::format(R"("context_id":"{}")", other)).error_field("name"), "NameError");
  EXPECT_EQ(
      run("import os; os.getcwd()", fmt::format(R"("context_id":"{}")", one)).result_field("text"),
      "/usr");
}

TEST_F(Wire, RestartClearsVariables) {
  const std::string id = make_context("{}");
  const std::string here = fmt::format(R"("context_id":"{}")", id);
  run("x = 1", here);
  const http::Response response = guest_.ask("POST", "/contexts/" + id + "/restart");

  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(response.body, "null");
  EXPECT_EQ(run("x", here).error_field("name"), "NameError");
  EXPECT_EQ(run("1", here).count, 2U);
}

TEST_F(Wire, RestartEndsTheRunningCell) {
  const std::string id = make_context("{}");
  const std::string here = fmt::format(R"("context_id":"{}")", id);
  serve::TestClient client = begin("import time; time.sleep(60)", here);
  EXPECT_EQ(guest_.ask("POST", "/contexts/" + id + "/restart").status, 200U);

  const std::string rest = rest_of(client);
  EXPECT_NE(rest.find(R"("name":"ContextRestarting","value":"Context was restarted")"),
            std::string::npos);
  EXPECT_TRUE(rest.ends_with("{\"type\":\"end_of_execution\"}\n"));
  EXPECT_EQ(run("2", here).result_field("text"), "2");
}

TEST_F(Wire, RemovalEndsTheContext) {
  const std::string id = make_context("{}");
  const std::string here = fmt::format(R"("context_id":"{}")", id);
  serve::TestClient client = begin("import time; time.sleep(60)", here);
  EXPECT_EQ(guest_.ask("DELETE", "/contexts/" + id).status, 200U);

  EXPECT_NE(rest_of(client).find("ExecutionAborted"), std::string::npos);
  EXPECT_EQ(run("1", here).status, 404U);
  EXPECT_EQ(guest_.ask("DELETE", "/contexts/" + id).status, 404U);
}

TEST_F(Wire, CellsThatWaitGoWithTheirContext) {
  const std::string id = make_context("{}");
  const std::string here = fmt::format(R"("context_id":"{}")", id);
  serve::TestClient running = begin("import time; time.sleep(60)", here);
  serve::TestClient streaming = guest_.begin(cell("1", here));  // its head comes after 5 seconds
  auto waiting = std::async(std::launch::async,
                            [&] { return guest_.ask("POST", "/execute", cell("1", here)); });
  std::this_thread::sleep_for(200ms);  // there is no sign that it waits
  EXPECT_EQ(guest_.ask("DELETE", "/contexts/" + id).status, 200U);

  const http::Response refused = waiting.get();
  EXPECT_EQ(refused.status, 404U);
  EXPECT_EQ(refused.body, fmt::format("Context {} not found", id));
  EXPECT_NE(rest_of(streaming).find(R"("name":"ExecutionAborted","value":"Context was removed")"),
            std::string::npos);
}

// Python as the guest finds it: a kernel starts when `go` is there, and says so in `starts`.
class SlowPython {
 public:
  SlowPython() {
    std::ofstream(folder_ / "python3") << fmt::format(
        "#!/bin/sh\necho >>{0}/starts\nuntil test -e {0}/go; do sleep 0.01; done\n"
        "PATH=${{PATH#*:}} exec python3 \"$@\"\n",
        folder_.string());
    std::filesystem::permissions(folder_ / "python3", std::filesystem::perms::owner_all);
  }
  SlowPython(const SlowPython&) = delete;
  SlowPython& operator=(const SlowPython&) = delete;
  ~SlowPython() { std::filesystem::remove_all(folder_); }

  guest::Settings settings() const {
    return {.environment = {fmt::format("PATH={}:{}", folder_.string(), std::getenv("PATH"))}};
  }
  void wait_for_start() const {
    while (starts() == 0) std::this_thread::sleep_for(1ms);
  }
  void go() const { std::ofstream(folder_ / "go"); }
  std::uintmax_t starts() const {
    std::error_code none_yet;
    const auto lines = std::filesystem::file_size(folder_ / "starts", none_yet);
    return none_yet ? 0 : lines;
  }

 private:
  static std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "slow-python-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  const std::filesystem::path folder_ = make_folder();
};

TEST_F(Wire, ARestartStartsNothingInARemovedContext) {
  const SlowPython python;
  const TestGuest guest(python.settings());
  const auto ask = [&](const std::string& method, const std::string& target) {
    return std::async(std::launch::async, [&guest, method, target] {
      return guest.ask(method, target, target == "/execute" ? cell("1") : "").status;
    });
  };
  const std::string id = guest.ask("GET", "/contexts").body.substr(8, 36);
  python.wait_for_start();
  auto cell = ask("POST", "/execute");
  std::this_thread::sleep_for(100ms);  // there is no sign that somebody waits
  auto restart = ask("POST", "/contexts/" + id + "/restart");
  std::this_thread::sleep_for(100ms);
  auto removal = ask("DELETE", "/contexts/" + id);
  std::this_thread::sleep_for(100ms);
  python.go();

  EXPECT_EQ(removal.get(), 200U);
  EXPECT_EQ(restart.get(), 404U);
  EXPECT_EQ(cell.get(), 404U);
  EXPECT_EQ(python.starts(), 1U);
}

TEST_F(Wire, AKernelThatDiesIsReportedAndReplaced) {
  const Executed died = run("import os; print('last'); os._exit(3)");
  EXPECT_EQ(died.output, "last\n");
  EXPECT_EQ(died.error_field("name"), "UnexpectedEndOfExecution");
  EXPECT_EQ(died.kinds.back(), "end_of_execution");

  EXPECT_EQ(run("4").result_field("text"), "4");
}

TEST_F(Wire, AKernelThatDiedBetweenCellsIsReplacedSilently) {
  const Executed first = run("import os, signal; os.getpid()");
  const pid_t kernel = std::stoi(first.result_field("text"));
  ::kill(kernel, SIGKILL);
  while (::kill(kernel, 0) == 0) std::this_thread::sleep_for(1ms);

  EXPECT_EQ(run("4").result_field("text"), "4");
}

TEST_F(Wire, ADepartureInterruptsAndKeepsVariables) {
  run("x = 5");
  begin("import time\nwhile True: time.sleep(60)").close();

  const Executed next = run("x");
  EXPECT_EQ(next.result_field("text"), "5");
  EXPECT_EQ(next.error, "");
}

TEST_F(Wire, ADepartureInTheMiddleOfAnEventKeepsVariables) {
  run("x = 5");
  for (int i = 0; i < 3; ++i) {
    serve::TestClient client =
        begin("big = {'text/html': 'x' * 10_000_000}\nwhile True: display(big, raw=True)");
    client.receive_piece();
    client.close();

    const Executed next = run("x");
    EXPECT_EQ(next.result_field("text"), "5") << i;
  }
}

TEST_F(Wire, ACellThatIgnoresInterruptsIsGivenUp) {
  run("x = 5");
  begin("import signal, time\nsignal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(60)")
      .close();

  EXPECT_EQ(run("x").error_field("name"), "NameError");
}

TEST_F(Wire, OneCellAtATimeInTheOrderTheyCame) {
  serve::TestClient first = begin("import time; time.sleep(1); order = ['first']");
  std::vector<serve::TestClient> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(guest_.client());
    const std::string body = cell(fmt::format("order.append({})", i));
    others.back().send(fmt::format(
        "POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
    std::this_thread::sleep_for(200ms);  // they come by different ways
  }
  rest_of(first);
  for (serve::TestClient& other : others) EXPECT_EQ(read_events(other.receive()).error, "");

  EXPECT_EQ(run("order").result_field("text"), "['first', 0, 1, 2]");
}

TEST_F(Wire, KeepsSilentStreamsAlive) {
  const Executed executed = run("import time; time.sleep(5.5)");

  EXPECT_EQ(executed.kinds,
            (std::vector<std::string>{"number_of_executions", "keepalive", "end_of_execution"}));
}

TEST_F(Wire, SetsVariablesForOneCell) {
  guest_.set_environment("GLOBAL=sandbox");
  const std::string ask = "import os; print(os.environ.get('GLOBAL'), os.environ.get('OWN'))";

  EXPECT_EQ(run(ask).output, "sandbox None\n");
  EXPECT_EQ(run(ask, R"("env_vars":{"GLOBAL":"cell","OWN":"1"})").output, "cell 1\n");
  EXPECT_EQ(run(ask).output, "sandbox None\n");
}

TEST_F(Wire, VariablesThatEveryProcessHasComeBack) {
  const std::string ask = "import os; {n: os.environ.get(n) for n in ('PATH', 'HOME', 'LANG')}";
  const std::string before = run(ask).result_field("text");

  const Executed own = run(ask, R"("env_vars":{"PATH":"/own","HOME":"/own","LANG":"own"})");
  EXPECT_EQ(own.result_field("text"), "{'PATH': '/own', 'HOME': '/own', 'LANG': 'own'}");
  EXPECT_EQ(before.find("None"), std::string::npos) << before;
  EXPECT_EQ(run(ask).result_field("text"), before);
}

TEST_F(Wire, LearnsOfVariablesThatCameLater) {
  run("1");
  guest_.set_environment("LATER=yes");

  EXPECT_EQ(run("import os; os.environ['LATER']").result_field("text"), "yes");
}

TEST_F(Wire, PassesLargeResults) {
  const Executed executed = run("'x' * 20_000_000");

  EXPECT_EQ(executed.result_field("text").size(), 20'000'000U);
}

TEST_F(Wire, IsAsciiWhateverTheLanguage) {
  const std::string text = "\u00e9\u2028\u0085\u20ac\U0001F600";
  const auto expect = [&](const Executed& executed) {
    EXPECT_TRUE(std::ranges::all_of(executed.body, [](char c) { return c >= 0; })) << executed.body;
    EXPECT_EQ(executed.output, text);
  };
  expect(run(fmt::format("print('{}', end='')", text)));
  if (::system("node -e 0 >/dev/null 2>&1") != 0) return;
  const Executed node =
      run(fmt::format("process.stdout.write('{0}'); '{0}'", text), R"("language":"js")");
  expect(node);
  EXPECT_EQ(node.result_field("text"), text);
}

TEST_F(Wire, BoundsTheLinesOfOutput) {
  const Executed executed = run("print('\u20ac' * 300_000)");

  EXPECT_EQ(executed.output.size(), 900'001U);
  EXPECT_EQ(executed.output.find("\uFFFD"), std::string::npos);
  EXPECT_GT(executed.kinds.size(), 10U);
}

TEST_F(Wire, AKernelCannotBreakTheStream) {
  // The kernel's own socket is no secret to a cell; the guest must survive what is written there.
  const Executed executed =
      run("import os\n"
          "for fd in range(3, 64):\n"
          "  try: os.write(fd, b'garbage ' * 100)\n"
          "  except OSError: pass\n");
  EXPECT_EQ(executed.error_field("name"), "UnexpectedEndOfExecution");
  EXPECT_EQ(executed.kinds.back(), "end_of_execution");

  EXPECT_EQ(run("1").result_field("text"), "1");
}

}  // namespace
}  // namespace hearth::interpreter
