// sandboxd's REST over the wire.
#include "sandboxd/sandboxd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "base/error.h"
#include "sandboxd/files.h"
#include "serve/testing.h"

namespace hearth::sandboxd {
namespace {

namespace fs = std::filesystem;

class Sandboxd : public testing::Test {
 protected:
  Sandboxd() {
    char path[] = "/tmp/hearth-sandboxd-test-XXXXXX";
    EXPECT_NE(::mkdtemp(path), nullptr);
    top_ = path;
    root_ = top_ / "workspace";  // not there yet
    write(top_ / "secret", "outside");
    core_.emplace(guest::Settings{
        .environment = {"SANDBOXD_ROOT_DIR=" + root_.string(), "SANDBOX_COLOUR=green",
                        "SANDBOX_API_TOKEN=x", "SANDBOX_my_key=x", "SANDBOX_CERTS=x", "OTHER=x",
                        "SANDBOX_COLOUR=blue \"1\""},
        .user = fmt::format("{}:{}", ::geteuid(), ::getegid())});
    serve::Listening listening = serve::listen_on_loopback();
    std::vector<serve::Entrance> entrances;
    entrances.push_back({.listen = std::move(listening.socket), .handler = make_handler(*core_)});
    server_ = std::make_unique<serve::Server>(std::move(entrances));
    client_.emplace(listening.port);
  }
  void TearDown() override {
    client_.reset();
    server_.reset();
    fs::remove_all(top_);
  }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  http::Response ask(const std::string& method, const std::string& path,
                     const std::string& body = "", http::Headers headers = {}) {
    return client_->ask({.method = method,
                         .target = "/v1/files/" + path,
                         .headers = std::move(headers),
                         .body = body});
  }
  // 304 and such have no body, whatever their length says.
  unsigned status_of(const std::string& request) {
    client_->send(request);
    return client_->receive(/*has_body=*/false).status;
  }
  std::ptrdiff_t count_entries() {
    return std::distance(fs::directory_iterator(root_), fs::directory_iterator());
  }

  fs::path top_;
  fs::path root_;
  std::optional<guest::Core> core_;
  std::unique_ptr<serve::Server> server_;
  std::optional<serve::TestClient> client_;
};

void expect_problem(const http::Response& response, unsigned status, std::string_view code) {
  EXPECT_EQ(response.status, status);
  EXPECT_TRUE(response.body.starts_with(fmt::format(R"({{"code":"{}","message":")", code)))
      << response.body;
}

TEST_F(Sandboxd, IsHealthy) {
  const auto response = client_->ask({.target = "/v1/health"});
  EXPECT_EQ(response.status, 200U);
  EXPECT_TRUE(response.body.starts_with(R"({"status":"ok","uptime_seconds":)")) << response.body;
}

TEST_F(Sandboxd, ShowsVariablesThatAreNoSecrets) {
  EXPECT_EQ(client_->ask({.target = "/v1/metadata"}).body,
            R"({"env":{"SANDBOX_COLOUR":"blue \"1\""}})");
}

TEST_F(Sandboxd, RefusesOtherPathsAndMethods) {
  expect_problem(client_->ask({.target = "/"}), 404, "NOT_FOUND");
  expect_problem(client_->ask({.target = "/v1/filesx"}), 404, "NOT_FOUND");
  EXPECT_EQ(client_->ask({.method = "POST", .target = "/v1/health"}).status, 405U);
  const auto response = ask("POST", "x", "y");
  EXPECT_EQ(response.status, 405U);
  EXPECT_EQ(response.headers.value("Allow"), "GET, HEAD, PUT, DELETE");
}

TEST_F(Sandboxd, MovesFiles) {
  const auto put = ask("PUT", "a%2Fb/c.txt", "bytes");
  EXPECT_EQ(put.status, 204U);
  EXPECT_EQ(put.body, "");
  EXPECT_EQ(read(root_ / "a/b/c.txt"), "bytes");
  EXPECT_EQ(fs::status(root_ / "a/b/c.txt").permissions(), fs::perms(0644));
  EXPECT_EQ(fs::status(root_ / "a").permissions(), fs::perms(0755));
  for (const char* path : {"a/b/c.txt", "a%2Fb%2Fc.txt", "a/./b/../b/c.txt"})
    EXPECT_EQ(ask("GET", path).body, "bytes") << path;
  const std::string absolute = root_.string() + "/a/b/c.txt";
  EXPECT_EQ(ask("GET", absolute).body, "bytes");
}

TEST_F(Sandboxd, OverwritesAFileAtOnce) {
  ASSERT_EQ(ask("PUT", "x", "one").status, 204U);
  fs::create_hard_link(root_ / "x", top_ / "old");
  ASSERT_EQ(ask("PUT", "x?mode=0600", "two").status, 204U);
  EXPECT_EQ(read(root_ / "x"), "two");
  EXPECT_EQ(read(top_ / "old"), "one");  // whoever reads the old one reads all of it
  EXPECT_EQ(fs::status(root_ / "x").permissions(), fs::perms(0600));
  EXPECT_EQ(count_entries(), 1);
}

TEST_F(Sandboxd, TakesModesOfOneForm) {
  EXPECT_EQ(ask("PUT", "x?mode=0755", "").status, 204U);
  EXPECT_EQ(fs::status(root_ / "x").permissions(), fs::perms(0755));
  for (const char* mode : {"644", "0888", "01777", "1755", "", "0x44", "rw", "%zz"})
    expect_problem(ask("PUT", "y?mode=" + std::string(mode), ""), 400, "INVALID_ARGUMENT");
  EXPECT_EQ(count_entries(), 1);
}

TEST_F(Sandboxd, TakesForms) {
  const http::Headers form = {{"Content-Type", "multipart/form-data; boundary=b"}};
  const std::string body =
      "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nno\r\n"
      "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"any\"\r\n\r\nyes\r\n--b--";
  EXPECT_EQ(ask("PUT", "form", body, form).status, 204U);
  EXPECT_EQ(read(root_ / "form"), "yes");
  expect_problem(
      ask("PUT", "none", "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nno\r\n--b--\r\n",
          form),
      400, "INVALID_ARGUMENT");
  expect_problem(ask("PUT", "none", "nonsense", form), 400, "INVALID_ARGUMENT");
  EXPECT_EQ(count_entries(), 1);
}

TEST_F(Sandboxd, LeavesNothingOfAnUploadThatBreaksOff) {
  client_->send(
      "PUT /v1/files/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n");
  ASSERT_EQ(client_->receive(/*has_body=*/false).status, 100U);
  EXPECT_EQ(count_entries(), 1);  // under another name
  EXPECT_FALSE(fs::exists(root_ / "x"));
  client_->send("half");
  client_->close();
  server_.reset();  // waits for the handler
  EXPECT_EQ(count_entries(), 0);
}

TEST_F(Sandboxd, WritesNoFileOverAFolder) {
  ask("PUT", "folder/file", "x");
  expect_problem(ask("PUT", "folder", "x"), 400, "INVALID_ARGUMENT");
  expect_problem(ask("PUT", "", "x"), 400, "INVALID_ARGUMENT");
  expect_problem(ask("PUT", "folder/file/below", "x"), 400, "INVALID_ARGUMENT");
}

TEST_F(Sandboxd, GivesPartsAndWhatIsNew) {
  ask("PUT", "x", "0123456789");
  const timespec times[2] = {{.tv_sec = 784111777}, {.tv_sec = 784111777}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (root_ / "x").c_str(), times, 0), 0);
  const auto part = ask("GET", "x", "", {{"Range", "bytes=2-4"}});
  EXPECT_EQ(part.status, 206U);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.headers.value("Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(ask("GET", "x", "", {{"Range", "bytes=10-"}}).status, 416U);
  EXPECT_EQ(status_of("GET /v1/files/x HTTP/1.1\r\nHost: x\r\n"
                      "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
            304U);
}

TEST_F(Sandboxd, TellsWhatExists) {
  ask("PUT", "folder/x", "0123456789");
  const auto file = ask("HEAD", "folder/x");
  EXPECT_EQ(file.status, 200U);
  EXPECT_EQ(file.headers.value("Content-Length"), "10");
  EXPECT_EQ(ask("HEAD", "folder").status, 200U);
  EXPECT_EQ(ask("HEAD", "none").status, 404U);
  expect_problem(ask("GET", "none"), 404, "NOT_FOUND");
  expect_problem(ask("GET", "folder/x/y"), 404, "NOT_FOUND");
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  expect_problem(ask("GET", "pipe"), 400, "INVALID_ARGUMENT");
}

TEST_F(Sandboxd, ListsAFolder) {
  EXPECT_EQ(ask("GET", "").body, R"({"path":"/","entries":[]})");
  EXPECT_EQ(client_->ask({.target = "/v1/files"}).body, R"({"path":"/","entries":[]})");
  fs::create_directories(root_ / "sub" / "b");
  write(root_ / "sub" / "a", "12345");
  fs::permissions(root_ / "sub" / "a", fs::perms(0640));
  fs::permissions(root_ / "sub" / "b", fs::perms(0755));
  fs::create_symlink("a", root_ / "sub" / "link");
  fs::create_symlink("/etc/passwd", root_ / "sub" / "out");
  fs::create_symlink("nowhere", root_ / "sub" / "dangling");
  fs::create_symlink("circle", root_ / "sub" / "circle");
  const timespec times[2] = {{.tv_sec = 784111777}, {.tv_sec = 784111777}};
  for (const char* name : {"sub/a", "sub/b"})
    ASSERT_EQ(::utimensat(AT_FDCWD, (root_ / name).c_str(), times, 0), 0);
  struct stat status{};
  ASSERT_EQ(::stat((root_ / "sub" / "b").c_str(), &status), 0);
  EXPECT_EQ(
      ask("GET", "sub").body,
      fmt::format(
          R"({{"path":"/sub","entries":[)"
          R"({{"name":"a","size":5,"type":"file","modified_at":"1994-11-06T08:49:37Z","mode":"0640"}},)"
          R"({{"name":"b","size":{},"type":"directory","modified_at":"1994-11-06T08:49:37Z","mode":"0755"}},)"
          R"({{"name":"link","size":5,"type":"file","modified_at":"1994-11-06T08:49:37Z","mode":"0640"}}]}})",
          status.st_size));
}

TEST_F(Sandboxd, Removes) {
  ask("PUT", "folder/x", "");
  ask("PUT", "folder/y", "");
  fs::create_symlink("folder/x", root_ / "link");
  expect_problem(ask("DELETE", "none"), 404, "NOT_FOUND");
  expect_problem(ask("DELETE", "folder"), 409, "CONFLICT");
  expect_problem(ask("DELETE", "folder?recursive=false"), 409, "CONFLICT");
  expect_problem(ask("DELETE", "folder?recursive=perhaps"), 400, "INVALID_ARGUMENT");
  expect_problem(ask("DELETE", "folder?recursive="), 400, "INVALID_ARGUMENT");
  EXPECT_EQ(ask("DELETE", "link").status, 204U);
  EXPECT_FALSE(fs::exists(root_ / "folder" / "x"));  // what the link led to
  EXPECT_EQ(ask("DELETE", "folder?recursive=true").status, 204U);
  EXPECT_FALSE(fs::exists(root_ / "folder"));
}

TEST_F(Sandboxd, EmptiesTheRootAndKeepsIt) {
  ask("PUT", "folder/x", "");
  for (const char* path : {"", ".", "folder%2F.."})
    expect_problem(ask("DELETE", path), 409, "CONFLICT");
  EXPECT_EQ(ask("DELETE", "?recursive=true").status, 204U);
  EXPECT_EQ(count_entries(), 0);
}

TEST_F(Sandboxd, LetsNobodyOut) {
  ask("PUT", "x", "");
  fs::create_symlink("../secret", root_ / "out");
  fs::create_symlink("..", root_ / "up");
  fs::create_directory(top_ / "workspace2");
  for (const std::string path :
       {"../secret", "..%2Fsecret", "%2e%2e/secret", "%2E%2E%2Fsecret", ".%2e%2fsecret",
        "a/../../secret", "none%2F..%2F..%2Fsecret", "out", "up/secret", "up%2Fsecret",
        "/etc/passwd", "%2Fetc%2Fpasswd", "/", "//etc/passwd"}) {
    EXPECT_EQ(ask("GET", path).status, 403U) << path;
    expect_problem(ask("GET", path), 403, "PERMISSION_DENIED");
    EXPECT_EQ(ask("HEAD", path).status, 403U) << path;
    expect_problem(ask("PUT", path, "bad"), 403, "PERMISSION_DENIED");
    expect_problem(ask("DELETE", path + "?recursive=true"), 403, "PERMISSION_DENIED");
  }
  expect_problem(ask("GET", (top_ / "workspace2").string()), 403, "PERMISSION_DENIED");
  expect_problem(ask("GET", root_.string() + "/../secret"), 403, "PERMISSION_DENIED");
  EXPECT_EQ(read(top_ / "secret"), "outside");
  // Encoded twice it is an ordinary name.
  expect_problem(ask("GET", "%252e%252e%252fsecret"), 404, "NOT_FOUND");
  for (const char* path : {"a%00b", "%", "%zz"})
    expect_problem(ask("GET", path), 400, "INVALID_ARGUMENT");
}

TEST(RelativePath, TakesAbsolutePathsBelowTheRoot) {
  EXPECT_EQ(relative_path("a/b", "/w"), "a/b");
  EXPECT_EQ(relative_path("/w/a", "/w"), "a");
  EXPECT_EQ(relative_path("/w//a", "/w/"), "a");
  EXPECT_EQ(relative_path("/w", "/w"), "");
  EXPECT_EQ(relative_path("w/a", "/w"), "w/a");
  EXPECT_EQ(relative_path("/a", "/"), "a");
  for (const char* path : {"/", "/wx", "/wx/a", "/a", "//w/a"})
    EXPECT_THROW(relative_path(path, "/w"), Error) << path;
}

}  // namespace
}  // namespace hearth::sandboxd
