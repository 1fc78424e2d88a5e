// The runtime API over the wire, with a real guest behind it.
#include "runtimeapi/runtimeapi.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "guest/testing.h"
#include "runtimeapi/execute.h"
#include "serve/testing.h"

namespace hearth::runtimeapi {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

class RuntimeApi : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    char path[] = "/tmp/hearth-runtimeapi-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    top_ = path;
    base_ = top_ / "app";  // not there yet
    write(top_ / "secret", "outside");
    guest::Settings settings;
    settings.environment = {"SANDBOX_BASE_DIR=" + base_.string(), "COLOUR=green"};
    guest_.emplace(settings);
    serve::Listening listening = serve::listen_on_loopback();
    std::vector<serve::Entrance> entrances;
    entrances.push_back(
        {.listen = std::move(listening.socket), .handler = make_handler(guest_->core())});
    server_ = std::make_unique<serve::Server>(std::move(entrances));
    port_ = listening.port;
    client_.emplace(port_);
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
    guest_.reset();
    if (!top_.empty()) fs::remove_all(top_);
  }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void set_variable(const std::string& variable) {
    guest_->core().change_settings(
        [&](guest::Settings& settings) { settings.environment.push_back(variable); });
  }

  http::Response get(const std::string& target) { return client_->ask({.target = target}); }
  http::Response post(const std::string& target, const std::string& body) {
    return client_->ask({.method = "POST", .target = target, .body = body});
  }
  struct Ended {
    std::string output;
    std::string error;
    std::int64_t code = 0;
    bool timed_out = false;
  };
  Ended execute(const std::string& command, const json::object& more = {}) {
    json::object body = more;
    body["command"] = command;
    const http::Response response = post("/execute", json::serialize(body));
    EXPECT_EQ(response.status, 200U);
    const json::value answer = json::parse(response.body);
    return {.output = json::value_to<std::string>(answer.at("stdout")),
            .error = json::value_to<std::string>(answer.at("stderr")),
            .code = answer.at("exit_code").as_int64(),
            .timed_out = answer.at("timed_out").as_bool()};
  }
  http::Response upload(const std::string& name, const std::string& text) {
    return client_->ask(
        {.method = "POST",
         .target = "/upload",
         .headers = {{"Content-Type", "multipart/form-data; boundary=bound"}},
         .body = "--bound\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name +
                 "\"\r\n\r\n" + text + "\r\n--bound--\r\n"});
  }

  fs::path top_;
  fs::path base_;
  std::uint16_t port_ = 0;
  std::optional<guest::TestGuest> guest_;
  std::unique_ptr<serve::Server> server_;
  std::optional<serve::TestClient> client_;
};

void expect_answer(const http::Response& response, unsigned status, std::string_view body) {
  EXPECT_EQ(response.status, status);
  EXPECT_EQ(response.body, body);
  EXPECT_EQ(response.headers.value("Content-Type").substr(0, 16), "application/json");
}

TEST_F(RuntimeApi, IsActive) {
  expect_answer(get("/"), 200, R"({"status":"ok","message":"Sandbox Runtime is active."})");
}

TEST_F(RuntimeApi, RefusesOtherPathsAndMethods) {
  expect_answer(get("/nothing"), 404, R"({"detail":"Not Found"})");
  expect_answer(get("/download"), 404, R"({"detail":"Not Found"})");
  const auto wrong = get("/execute");
  expect_answer(wrong, 405, R"({"detail":"Method Not Allowed"})");
  EXPECT_EQ(wrong.headers.value("Allow"), "POST");
  EXPECT_EQ(post("/list/x", "").status, 405U);
  EXPECT_EQ(client_->ask({.method = "DELETE", .target = "/download/x"}).status, 405U);
}

TEST_F(RuntimeApi, RunsACommand) {
  const Ended ended = execute("echo 'hello world'");
  EXPECT_EQ(ended.output, "hello world\n");
  EXPECT_EQ(ended.error, "");
  EXPECT_EQ(ended.code, 0);
}

TEST_F(RuntimeApi, RunsItInTheBaseFolderWithTheSandboxesEnvironment) {
  EXPECT_EQ(execute("pwd").output, base_.string() + "\n");
  EXPECT_EQ(execute("sh -c 'echo $COLOUR; echo bad >&2; exit 3'").output, "green\n");
  EXPECT_EQ(execute("sh -c 'echo bad >&2; exit 3'").error, "bad\n");
  EXPECT_EQ(execute("sh -c 'exit 3'").code, 3);
}

TEST_F(RuntimeApi, IsNoShell) {
  EXPECT_EQ(execute("echo $COLOUR | cat && echo > x").output, "$COLOUR | cat && echo > x\n");
}

TEST_F(RuntimeApi, TellsASignalByANegativeCode) {
  EXPECT_EQ(execute("sh -c 'kill -9 $$'").code, -9);
}

TEST_F(RuntimeApi, TellsWhatCannotBeRunAsAFailedCommand) {
  const auto expect_failure = [&](const std::string& command, const std::string& text) {
    const Ended ended = execute(command);
    EXPECT_EQ(ended.output, "");
    EXPECT_EQ(ended.error, "Failed to execute command: " + text);
    EXPECT_EQ(ended.code, 1);
  };
  expect_failure("echo 'open", "No closing quotation");
  expect_failure("echo \\", "No escaped character");
  expect_failure("no-such-program x", "[Errno 2] No such file or directory: 'no-such-program'");
  expect_failure("", "there is no command");
  expect_failure(std::string("echo a\0b", 8), "embedded null byte");
}

TEST_F(RuntimeApi, EndsACommandThatTakesTooLong) {
  set_variable("SANDBOX_EXEC_TIMEOUT_SECONDS=0.2");
  const Ended ended = execute("sh -c 'echo lost; sleep 1000 & sleep 1000'");
  EXPECT_TRUE(ended.timed_out);
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.error, "Failed to execute command: Command timed out after 0.2 seconds");
  EXPECT_EQ(ended.code, 1);
}

TEST_F(RuntimeApi, TakesATimeForOneCommand) {
  EXPECT_TRUE(execute("sleep 1000", {{"timeout_seconds", 0.2}}).timed_out);
  EXPECT_FALSE(execute("true", {{"timeout_seconds", 60}}).timed_out);
  EXPECT_FALSE(execute("true", {{"timeout_seconds", nullptr}}).timed_out);
}

TEST_F(RuntimeApi, PassesOverATimeThatIsNone) {
  for (const char* value : {"soon", "0", "-1", "inf", "nan", "5 ", ""}) {
    set_variable("SANDBOX_EXEC_TIMEOUT_SECONDS=" + std::string(value));
    EXPECT_EQ(execute("echo ok").output, "ok\n") << value;
  }
}

TEST_F(RuntimeApi, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(execute("printf 'a\\377b'").output, "a\xEF\xBF\xBD\x62");
}

TEST_F(RuntimeApi, DoesNotWaitForWhatACommandLeavesBehind) {
  EXPECT_EQ(execute("sh -c 'sleep 5 & echo started'").output, "started\n");
}

TEST_F(RuntimeApi, GivesMegabytesOfOutput) {
  const Ended ended = execute("sh -c 'head -c 10000000 /dev/zero | tr \"\\0\" x'");
  EXPECT_EQ(ended.output.size(), 10'000'000U);
  EXPECT_EQ(ended.output.find_first_not_of('x'), std::string::npos);
}

TEST_F(RuntimeApi, StopsACommandThatWritesWithoutEnd) {
  const Ended ended = execute("cat /dev/zero");
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.error.find("Failed to execute command: there is more output"), std::string::npos);
  EXPECT_EQ(execute("echo fine").output, "fine\n");
}

TEST(CaptureBudget, IsOneForAll) {
  CaptureBudget budget;
  EXPECT_TRUE(budget.take(kMaxCaptured));
  EXPECT_FALSE(budget.take(1));
  budget.give_back(1);
  EXPECT_TRUE(budget.take(1));
}

TEST_F(RuntimeApi, RunsManyCommandsAtOnce) {
  constexpr int kMany = 40;
  std::vector<serve::TestClient> clients;
  // Each waits until all of them run.
  const std::string script =
      fmt::format("sh -c 'touch r$$; while [ $(ls | wc -l) -lt {} ]; do sleep 0.05; done'", kMany);
  const std::string body = json::serialize(json::object{{"command", script}});
  for (int i = 0; i < kMany; ++i) {
    clients.emplace_back(port_);
    clients.back().send(fmt::format(
        "POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  }
  for (serve::TestClient& client : clients)
    EXPECT_EQ(client.receive().body,
              R"({"stdout":"","stderr":"","exit_code":0,"timed_out":false})");
}

TEST_F(RuntimeApi, SaysWhatIsWrongWithARequest) {
  expect_answer(post("/execute", "{}"), 422,
                R"({"detail":[{"type":"missing","loc":["body","command"],)"
                R"("msg":"Field required","input":{}}]})");
  expect_answer(post("/execute", R"({"command":5})"), 422,
                R"({"detail":[{"type":"string_type","loc":["body","command"],)"
                R"("msg":"Input should be a valid string","input":5}]})");
  expect_answer(post("/execute", ""), 422,
                R"({"detail":[{"type":"missing","loc":["body"],)"
                R"("msg":"Field required","input":null}]})");
  expect_answer(post("/execute", "[1]"), 422,
                R"({"detail":[{"type":"model_attributes_type","loc":["body"],"msg":"Input should )"
                R"(be a valid dictionary or object to extract fields from","input":[1]}]})");
  for (const char* text : {"{", "{} x", "nonsense", "{\"command\":\"a\"", "\xFF"}) {
    const auto response = post("/execute", text);
    EXPECT_EQ(response.status, 422U) << text;
    const json::value detail = json::parse(response.body).at("detail").at(0);
    EXPECT_EQ(detail.at("type").as_string(), "json_invalid") << text;
    EXPECT_EQ(detail.at("msg").as_string(), "JSON decode error");
  }
  for (const char* text :
       {R"({"command":"true","timeout_seconds":"x"})", R"({"command":"true","timeout_seconds":0})",
        R"({"command":"true","timeout_seconds":-1})"}) {
    EXPECT_EQ(post("/execute", text).status, 422U) << text;
  }
}

TEST_F(RuntimeApi, RefusesACommandOfMegabytes) {
  client_->send("POST /execute HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string megabyte(1 << 20, ' ');
  try {
    for (int i = 0; i < 20; ++i) client_->send("100000\r\n" + megabyte + "\r\n");
    EXPECT_EQ(client_->receive().status, 413U);
  } catch (const Error&) {
    // It hung up in the middle, and that is fine.
  }
}

TEST_F(RuntimeApi, MovesFiles) {
  expect_answer(upload("some/folder/x.txt", "bytes\r\n--boun"), 200,
                R"({"message":"File 'some/folder/x.txt' uploaded successfully."})");
  EXPECT_EQ(read(base_ / "some/folder/x.txt"), "bytes\r\n--boun");
  const auto down = get("/download/some%2Ffolder%2Fx.txt");
  EXPECT_EQ(down.status, 200U);
  EXPECT_EQ(down.body, "bytes\r\n--boun");
  EXPECT_EQ(down.headers.value("Content-Type"), "application/octet-stream");
  EXPECT_EQ(down.headers.value("Content-Disposition"), "attachment; filename=\"x.txt\"");
  EXPECT_EQ(get("/download/some/folder/x.txt").body, down.body);
  EXPECT_EQ(get("/download//some//folder/x.txt").body, down.body);
}

TEST_F(RuntimeApi, TakesNamesAsTheyAre) {
  EXPECT_EQ(upload("100% größe.txt", "x").status, 200U);
  EXPECT_TRUE(fs::exists(base_ / "100% größe.txt"));
  const auto down = get("/download/100%25%20gr%C3%B6%C3%9Fe.txt");
  EXPECT_EQ(down.body, "x");
  EXPECT_EQ(down.headers.value("Content-Disposition"),
            "attachment; filename*=utf-8''100%25%20gr%C3%B6%C3%9Fe.txt");
}

TEST_F(RuntimeApi, ReplacesAFileAndKeepsItsMode) {
  upload("run.sh", "one");
  fs::permissions(base_ / "run.sh", fs::perms(0751));
  EXPECT_EQ(upload("/run.sh", "two").status, 200U);
  EXPECT_EQ(read(base_ / "run.sh"), "two");
  EXPECT_EQ(fs::status(base_ / "run.sh").permissions(), fs::perms(0751));
  EXPECT_EQ(std::distance(fs::directory_iterator(base_), fs::directory_iterator()), 1);
}

TEST_F(RuntimeApi, LeavesNothingOfAnUploadThatBreaksOff) {
  for (const char* body : {"--bound\r\nContent-Disposition: form-data; name=\"file\"; "
                           "filename=\"x\"\r\n\r\nhalf",
                           "no form at all"}) {
    const auto response = serve::TestClient(port_).ask(
        {.method = "POST",
         .target = "/upload",
         .headers = {{"Content-Type", "multipart/form-data; boundary=bound"}},
         .body = body});
    expect_answer(response, 400, R"({"detail":"There was an error parsing the body"})");
    EXPECT_TRUE(fs::is_empty(base_));
  }
}

TEST_F(RuntimeApi, WantsAFileToUpload) {
  const std::string missing = R"({"detail":[{"type":"missing","loc":["body","file"],)"
                              R"("msg":"Field required","input":null}]})";
  expect_answer(post("/upload", "x"), 422, missing);
  const auto other = client_->ask(
      {.method = "POST",
       .target = "/upload",
       .headers = {{"Content-Type", "multipart/form-data; boundary=b"}},
       .body = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\ny\r\n--b--\r\n"});
  expect_answer(other, 422, missing);
}

TEST_F(RuntimeApi, FailsToUploadOverAFolder) {
  fs::create_directories(base_ / "folder");
  expect_answer(upload("folder", "x"), 500,
                R"({"message":"File upload failed: [Errno 21] Is a directory: 'folder'"})");
}

TEST_F(RuntimeApi, ListsAFolder) {
  EXPECT_EQ(get("/list/.").body, "[]");
  fs::create_directories(base_ / "b");
  write(base_ / "a", "12345");
  fs::create_symlink("b", base_ / "c");
  fs::create_symlink("../secret", base_ / "d");
  const timespec times[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000, .tv_nsec = 500000000}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (base_ / "a").c_str(), times, 0), 0);

  for (const char* target :
       {"/list/.", "/list/", "/list/%2F", "/list/b%2F..", "/list/c%2F..%2F."}) {
    const auto response = get(target);
    EXPECT_EQ(response.status, 200U) << target;
    const json::array entries = json::parse(response.body).as_array();
    ASSERT_EQ(entries.size(), 4U) << response.body;
    EXPECT_EQ(json::serialize(entries[0]),
              R"({"name":"a","size":5,"type":"file","mod_time":1.7000000005E9})");
    EXPECT_EQ(entries[1].at("type").as_string(), "directory");
    EXPECT_EQ(entries[2].at("type").as_string(), "directory");
    EXPECT_EQ(entries[3].at("type").as_string(), "file");
    EXPECT_EQ(entries[3].at("size").to_number<int>(), 9);  // of the link, not of the secret
  }
}

TEST_F(RuntimeApi, SaysWhatIsNotThere) {
  write(top_ / "x", "");
  EXPECT_EQ(get("/exists/.").body, R"({"path":".","exists":true})");
  write(base_ / "file", "x");
  fs::create_symlink("loop", base_ / "loop");
  ASSERT_EQ(::mkfifo((base_ / "pipe").c_str(), 0600), 0);
  expect_answer(get("/exists/does_not_exist"), 200, R"({"path":"does_not_exist","exists":false})");
  expect_answer(get("/exists/a%2Fb%22"), 200, R"({"path":"a/b\"","exists":false})");
  EXPECT_EQ(get("/exists/loop").body, R"({"path":"loop","exists":false})");
  for (const char* path : {"none", "", ".", "file/x", "loop", "pipe"})
    expect_answer(get("/download/" + std::string(path)), 404, R"({"message":"File not found"})");
  for (const char* path : {"none", "file", "loop"})
    expect_answer(get("/list/" + std::string(path)), 404,
                  R"({"message":"Path is not a directory"})");
}

TEST_F(RuntimeApi, LetsNobodyOut) {
  get("/exists/.");
  fs::create_symlink("../secret", base_ / "out");
  fs::create_symlink("/", base_ / "top");
  const std::string denied = R"({"message":"Access denied"})";
  for (const char* path : {"../../etc/passwd", "/../etc/passwd", "..%2F..%2Fetc%2Fpasswd",
                           "%2e%2e/secret", "%2E%2E%2Fsecret", ".%2e/secret", "a/../../secret",
                           "%2F..%2Fsecret", "out", "top/etc/passwd", "top%2Fetc%2Fpasswd", ".."}) {
    for (const char* verb : {"/download/", "/list/", "/exists/"})
      expect_answer(get(std::string(verb) + path), 403, denied);
  }
  for (const char* name : {"../secret", "a/../../secret", "/../secret", "top/etc/x", "out"})
    expect_answer(upload(name, "bad"), 403, denied);
  EXPECT_EQ(read(top_ / "secret"), "outside");
  // Encoded twice it is an ordinary name.
  EXPECT_EQ(get("/exists/%252e%252e%252fsecret").body,
            R"({"path":"%2e%2e%2fsecret","exists":false})");
  for (const char* path : {"a%00b", "%", "%zz"})
    EXPECT_EQ(get("/exists/" + std::string(path)).status, 400U) << path;
}

std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) << 10;
  }
  return 0;
}

TEST_F(RuntimeApi, TakesAndGivesLargeFilesInConstantMemory) {
  constexpr int kMegabytes = 96;
  const std::string megabyte(1 << 20, 'm');
  const std::string head =
      "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"big\"\r\n\r\n";
  const std::string tail = "\r\n--b--\r\n";
  const std::size_t before = peak_memory();
  client_->send(
      fmt::format("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: "
                  "multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n{}",
                  head.size() + tail.size() + kMegabytes * megabyte.size(), head));
  for (int i = 0; i < kMegabytes; ++i) client_->send(megabyte);
  client_->send(tail);
  EXPECT_EQ(client_->receive().status, 200U);
  EXPECT_EQ(fs::file_size(base_ / "big"), kMegabytes * megabyte.size());
  EXPECT_EQ(
      client_->ask({.target = "/download/big", .headers = {{"Range", "bytes=100000000-100000002"}}})
          .body,
      "mmm");
#if !__has_feature(address_sanitizer)
  EXPECT_LT(peak_memory() - before, std::size_t{16} << 20);
#endif
}

}  // namespace
}  // namespace hearth::runtimeapi
