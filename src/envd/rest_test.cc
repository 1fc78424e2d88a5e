// The REST part on the wire: who may, files, late configuration.
#include <sys/stat.h>
#include <sys/xattr.h>
#include <zlib.h>

#include <random>

#include "envd/access.h"
#include "envd/wire_testing.h"
#include "http/target.h"
#include "serve/gzip.h"

namespace hearth::envd {
namespace {

const http::Headers kRaw = {{"Content-Type", "application/octet-stream"}};

std::string gzip(const std::string& text) {
  std::string out;
  serve::GzipWriter writer([&](std::string_view bytes) { out += bytes; });
  writer.write(text);
  writer.end();
  return out;
}

std::string gunzip(const std::string& bytes) {
  bool given = false;
  const serve::Source source = serve::inflate_gzip(
      [&] { return std::exchange(given, true) ? std::string_view() : std::string_view(bytes); });
  std::string out;
  for (std::string_view piece = source(); !piece.empty(); piece = source()) out += piece;
  return out;
}

class EnvdRest : public EnvdTest {
 protected:
  http::Response get(const std::string& name, const http::Headers& headers = {}) const {
    return ask("GET", "/files?path=" + path(name), {}, headers);
  }
  http::Response post(const std::string& name, const std::string& content,
                      const http::Headers& headers = kRaw) const {
    return ask("POST", "/files?path=" + path(name), content, headers);
  }
  std::string told(const std::string& name, const std::string& more = {}) const {
    return fmt::format(R"([{{"path":"{}","name":"{}","type":"file"{}}}])", path(name),
                       std::filesystem::path(name).filename().string(), more);
  }
};

TEST_F(EnvdRest, IsWell) {
  const http::Response health = ask("GET", "/health");
  EXPECT_EQ(health.status, 204U);
  EXPECT_EQ(health.headers.value("Access-Control-Allow-Origin"), "*");
  const http::Response metrics = ask("GET", "/metrics");
  EXPECT_EQ(metrics.status, 200U);
  for (const char* name : {"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache",
                           "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"}) {
    EXPECT_NE(metrics.body.find(fmt::format("\"{}\":", name)), std::string::npos) << name;
  }
  EXPECT_EQ(ask("GET", "/envs").body,
            R"({"BOTH":"sandbox","E2B_SANDBOX":"true","FROM_SANDBOX":"yes"})");
}

TEST_F(EnvdRest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(ask("GET", "/nothing").status, 404U);
  EXPECT_EQ(ask("DELETE", "/files").status, 405U);
  EXPECT_EQ(ask("GET", "/process.Process/List").status, 405U);
  EXPECT_EQ(ask("POST", "/process.Process/Nothing", "{}").status, 404U);
  const http::Response type =
      ask("POST", "/process.Process/List", "{}", {{"Content-Type", "application/grpc"}});
  EXPECT_EQ(type.status, 415U);
  EXPECT_EQ(type.headers.value("Accept-Post"), "application/json, application/proto");
  EXPECT_EQ(
      ask("POST", "/process.Process/Start", "{}", {{"Content-Type", "application/json"}}).status,
      415U);
  const http::Response compressed =
      call("process.Process/List", "{}", {{"Content-Encoding", "gzip"}});
  EXPECT_EQ(compressed.status, 501U);
  const std::string envelope = make_envelope(kCompressed, "{}");
  EXPECT_NE(ask("POST", "/process.Process/Start", envelope,
                {{"Content-Type", "application/connect+json"}})
                .body.find("unimplemented"),
            std::string::npos);
}

TEST_F(EnvdRest, AnswersBrowsers) {
  const http::Response answer =
      ask("OPTIONS", "/files", {}, {{"Access-Control-Request-Headers", "x-access-token"}});
  EXPECT_EQ(answer.status, 204U);
  EXPECT_EQ(answer.headers.value("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(answer.headers.value("Access-Control-Allow-Headers"), "x-access-token");
  EXPECT_NE(answer.headers.value("Access-Control-Allow-Methods").find("POST"),
            std::string_view::npos);
}

TEST_F(EnvdRest, GivesFilesAsTheyAre) {
  write("a.txt", "hello");
  const http::Response answer = get("a.txt");
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.headers.value("Content-Length"), "5");
  EXPECT_EQ(answer.headers.value("Vary"), "Accept-Encoding");
  EXPECT_EQ(answer.headers.value("Content-Disposition"), "inline; filename=a.txt");
  EXPECT_EQ(answer.headers.value("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(answer.headers.value("Accept-Ranges"), "bytes");
  EXPECT_NE(answer.headers.find("Last-Modified"), nullptr);
  const http::Response head = ask("HEAD", "/files?path=" + path("a.txt"));
  EXPECT_EQ(head.headers.value("Content-Length"), "5");
}

TEST_F(EnvdRest, GivesPartsOfFiles) {
  write("a.txt", "0123456789");
  const http::Response part = get("a.txt", {{"Range", "bytes=2-4"}, {"Accept-Encoding", "gzip"}});
  EXPECT_EQ(part.status, 206U);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.headers.value("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(get("a.txt", {{"Range", "bytes=-3"}}).body, "789");
  EXPECT_EQ(get("a.txt", {{"Range", "bytes=50-"}}).status, 416U);
  const std::string modified(get("a.txt").headers.value("Last-Modified"));
  EXPECT_EQ(get("a.txt", {{"If-Modified-Since", modified}}).status, 304U);
}

TEST_F(EnvdRest, CompressesWhereItIsWanted) {
  const std::string content(100'000, 'x');
  write("a.txt", content);
  const http::Response answer = get("a.txt", {{"Accept-Encoding", "gzip, deflate"}});
  EXPECT_EQ(answer.headers.value("Content-Encoding"), "gzip");
  EXPECT_EQ(answer.headers.find("Content-Length"), nullptr);
  EXPECT_LT(answer.body.size(), 5000U);
  EXPECT_EQ(gunzip(answer.body), content);
  EXPECT_EQ(get("a.txt", {{"Accept-Encoding", "identity"}}).body, content);
  EXPECT_EQ(get("a.txt", {{"Accept-Encoding", "*;q=0"}}).status, 406U);
}

TEST_F(EnvdRest, LargeFilesThatDoNotCompressAreSentAsTheyAre) {
  std::string noise(2 << 20, '\0');
  std::minstd_rand random(7);
  for (char& byte : noise) byte = static_cast<char>(random() >> 16);
  write("noise", noise);
  write("text", std::string(2 << 20, 'x'));

  const http::Response plain = get("noise", {{"Accept-Encoding", "gzip, deflate"}});
  EXPECT_EQ(plain.headers.find("Content-Encoding"), nullptr);
  EXPECT_EQ(plain.headers.value("Content-Length"), std::to_string(noise.size()));
  EXPECT_EQ(plain.body, noise);

  const http::Response packed = get("noise", {{"Accept-Encoding", "gzip, identity;q=0"}});
  EXPECT_EQ(packed.headers.value("Content-Encoding"), "gzip");
  EXPECT_EQ(gunzip(packed.body), noise);
  EXPECT_EQ(get("text", {{"Accept-Encoding", "gzip"}}).headers.value("Content-Encoding"), "gzip");
}

// Their work is in no limit of the sandbox's.
TEST_F(EnvdRest, CompressesForFourAtOnce) {
  // More than the kernel takes from a server whose client does not read.
  std::string noise(32 << 20, '\0');
  std::minstd_rand random(7);
  for (char& byte : noise) byte = static_cast<char>(random() >> 16);
  write("noise", noise);
  const auto gzip_only = [&] {
    serve::TestClient client(port_);
    client.send("GET /files?path=" + path("noise") +
                " HTTP/1.1\r\nHost: x\r\n"
                "Accept-Encoding: gzip, identity;q=0\r\n\r\n");
    return client;
  };
  std::vector<serve::TestClient> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(gzip_only());
    EXPECT_EQ(slow.back().receive_head().status, 200U);
  }
  EXPECT_EQ(gzip_only().receive_head().status, 503U);
  write("text", std::string(2 << 20, 'x'));
  const http::Response plain = get("text", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(plain.status, 200U);
  EXPECT_EQ(plain.headers.find("Content-Encoding"), nullptr);

  slow.pop_back();
  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (gzip_only().receive_head().status != 200 && !deadline.passed()) {
  }
  EXPECT_FALSE(deadline.passed());
}

TEST_F(EnvdRest, GivesEmptyFilesAndThoseOfTheKernel) {
  write("empty", "");
  const http::Response empty = get("empty", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(empty.status, 200U);
  EXPECT_EQ(empty.headers.value("Content-Length"), "0");
  EXPECT_EQ(empty.headers.find("Content-Encoding"), nullptr);
  EXPECT_NE(ask("GET", "/files?path=/proc/version").body.find("Linux"), std::string::npos);
}

TEST_F(EnvdRest, SaysWhyThereIsNoFile) {
  const http::Response missing = get("nope");
  EXPECT_EQ(missing.status, 404U);
  EXPECT_EQ(missing.body,
            fmt::format(R"({{"code":404,"message":"path '{}' does not exist"}})", path("nope")));
  const http::Response folder = get("work");
  EXPECT_EQ(folder.status, 400U);
  EXPECT_EQ(folder.body,
            fmt::format(R"({{"code":400,"message":"path '{}' is a directory"}})", path("work")));
  ::mkfifo(path("fifo").c_str(), 0600);
  EXPECT_EQ(get("fifo").status, 400U);
  EXPECT_EQ(post("fifo", "x").status, 400U);
  std::filesystem::create_symlink(path("loop"), path("loop"));
  for (const std::string& name : {std::string("loop"), std::string(300, 'n')}) {
    EXPECT_EQ(get(name).status, 400U) << name;
    EXPECT_EQ(post(name, "x").status, 400U) << name;
  }
  const http::Response user = ask("GET", "/files?path=/etc/passwd&username=nobody-here");
  EXPECT_EQ(user.status, 401U);
  EXPECT_EQ(
      user.body,
      R"({"code":401,"message":"error looking up user 'nobody-here': user: unknown user nobody-here"})");
  EXPECT_EQ(ask("GET", "/files?path=%zz").status, 400U);
}

TEST_F(EnvdRest, TakesRawBodies) {
  const http::Response answer = post("new/folder/a.txt", "content");
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.body, told("new/folder/a.txt"));
  EXPECT_EQ(read(path("new/folder/a.txt")), "content");
  EXPECT_EQ(post("new/folder/a.txt", "less").status, 200U);
  EXPECT_EQ(read(path("new/folder/a.txt")), "less");
  struct stat status{};
  ASSERT_EQ(::stat(path("new/folder/a.txt").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644U);
  ASSERT_EQ(::stat(path("new/folder").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755U);
  EXPECT_EQ(ask("POST", "/files", "x", kRaw).body,
            R"({"code":400,"message":"path query parameter is required for raw body upload"})");
  EXPECT_EQ(post("work", "x").status, 400U);
  EXPECT_EQ(post("x", "x", {{"Content-Type", "text/plain"}}).status, 400U);
  EXPECT_EQ(post("x", "x").status, 200U);
  EXPECT_EQ(post("x/below", "x").status, 400U);
}

TEST_F(EnvdRest, TakesCompressedBodies) {
  http::Headers headers = kRaw;
  headers.add("Content-Encoding", "gzip");
  EXPECT_EQ(post("a", gzip("unpacked"), headers).status, 200U);
  EXPECT_EQ(read(path("a")), "unpacked");
  EXPECT_EQ(post("broken", "no gzip", headers).status, 400U);
  EXPECT_FALSE(std::filesystem::exists(path("broken")));
  headers.set("Content-Encoding", "br");
  EXPECT_EQ(post("a", "x", headers).status, 400U);
}

TEST_F(EnvdRest, TakesForms) {
  const http::Headers form = {{"Content-Type", "multipart/form-data; boundary=XX"}};
  const auto part = [](const std::string& name, const std::string& file, const std::string& text) {
    return fmt::format(
        "--XX\r\nContent-Disposition: form-data; name=\"{}\"; filename=\"{}\"\r\n\r\n{}\r\n", name,
        file, text);
  };
  const http::Response two = ask("POST", "/files",
                                 part("file", path("f/one"), "1") + part("other", "x", "?") +
                                     part("file", path("f/two"), "22") + "--XX--\r\n",
                                 form);
  EXPECT_EQ(two.body, fmt::format("[{},{}]", told("f/one").substr(1, told("f/one").size() - 2),
                                  told("f/two").substr(1, told("f/two").size() - 2)));
  EXPECT_EQ(read(path("f/one")), "1");
  EXPECT_EQ(read(path("f/two")), "22");
  // The query wins.
  EXPECT_EQ(
      ask("POST", "/files?path=" + path("g"), part("file", "ignored", "3") + "--XX--", form).body,
      told("g"));
  EXPECT_EQ(ask("POST", "/files",
                part("file", path("h"), "1") + part("file", path("h"), "2") + "--XX--", form)
                .status,
            400U);
  EXPECT_EQ(ask("POST", "/files", "--XX--", form).body, "[]");
  EXPECT_EQ(ask("POST", "/files", part("file", path("cut"), "1"), form).status, 400U);
  EXPECT_FALSE(std::filesystem::exists(path("cut")));
}

TEST_F(EnvdRest, KeepsMetadata) {
  http::Headers headers = kRaw;
  headers.add("X-Metadata-Author", "me");
  headers.add("X-Metadata-author", "somebody else");
  headers.add("x-metadata-n", "1");
  const http::Response answer = post("a", "x", headers);
  EXPECT_EQ(answer.body, told("a", R"(,"metadata":{"author":"me","n":"1"})"));
  char value[16] = {};
  if (::getxattr(path("a").c_str(), "user.e2b.author", value, sizeof value) < 0)
    GTEST_SKIP() << "this file system keeps no attributes";
  EXPECT_STREQ(value, "me");
  EXPECT_NE(call("filesystem.Filesystem/Stat", fmt::format(R"({{"path":"{}"}})", path("a")))
                .body.find(R"("metadata":{"author":"me","n":"1"})"),
            std::string::npos);
  // The next upload replaces all of it.
  EXPECT_EQ(post("a", "x").body, told("a"));
  EXPECT_LT(::getxattr(path("a").c_str(), "user.e2b.author", value, sizeof value), 0);
}

TEST_F(EnvdRest, RefusesBadMetadata) {
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"X-Metadata-a", "\xc3\xbc"},
                                    {"X-Metadata-" + std::string(247, 'k'), "v"},
                                    {"X-Metadata-a", std::string(4096, 'v')}}) {
    http::Headers headers = kRaw;
    headers.add(name, value);
    const http::Response answer = post("a", "x", headers);
    EXPECT_EQ(answer.status, 400U);
    EXPECT_NE(answer.body.find("invalid metadata: "), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(EnvdRest, SaysWhenThereIsNoRoom) {
  // More than any disk has: refused before it is tried.
  serve::TestClient client(port_);
  client.send(
      fmt::format("POST /files?path={} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                  "Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
                  path("a"), 1ull << 60));
  EXPECT_EQ(client.receive_head().status, 507U);
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(EnvdRest, PutsFilesTogether) {
  write("1", "one ");
  write("2", "two");
  const http::Response answer =
      ask("POST", "/files/compose",
          fmt::format(R"({{"source_paths":["{}","{}"],"destination":"{}"}})", path("1"), path("2"),
                      path("sub/all")));
  EXPECT_EQ(answer.status, 200U) << answer.body;
  EXPECT_NE(answer.body.find(R"("size":"7")"), std::string::npos);
  EXPECT_EQ(read(path("sub/all")), "one two");
  EXPECT_FALSE(std::filesystem::exists(path("1")));
  write("3", "three");
  EXPECT_EQ(ask("POST", "/files/compose",
                fmt::format(R"({{"source_paths":["{}","{}"],"destination":"{}"}})", path("3"),
                            path("nope"), path("all")))
                .status,
            404U);
  EXPECT_EQ(read(path("3")), "three");
  EXPECT_EQ(ask("POST", "/files/compose",
                fmt::format(R"({{"source_paths":["{0}"],"destination":"{0}"}})", path("3")))
                .status,
            400U);
  EXPECT_EQ(ask("POST", "/files/compose", "[]").status, 400U);
}

TEST_F(EnvdRest, IsConfiguredLate) {
  EXPECT_EQ(ask("POST", "/init", R"({"envVars":{"A=B":"x"},"accessToken":"t"})").status, 400U);
  EXPECT_EQ(ask("POST", "/init",
                fmt::format(R"({{"envVars":{{"NEW":"1","BOTH":"init"}},"accessToken":"secret",)"
                            R"("defaultWorkdir":"{}","timestamp":"2026-01-02T03:04:05Z"}})",
                            folder_))
                .status,
            204U);
  EXPECT_EQ(ask("GET", "/envs").status, 401U);
  const http::Headers token = {{"X-Access-Token", "secret"}};
  EXPECT_EQ(ask("GET", "/envs", {}, token).body,
            R"({"BOTH":"init","E2B_SANDBOX":"true","FROM_SANDBOX":"yes","NEW":"1"})");
  // A stranger changes nothing; whoever knows the token may, also in the body.
  EXPECT_EQ(ask("POST", "/init", R"({"accessToken":"mine"})").status, 401U);
  EXPECT_EQ(ask("POST", "/init", R"({"envVars":{"X":"1"}})").status, 401U);
  EXPECT_EQ(ask("POST", "/init", R"({"accessToken":"secret","envVars":{"X":"1"}})").status, 204U);
  EXPECT_EQ(ask("POST", "/init", R"({"accessToken":"other"})", token).status, 204U);
  EXPECT_EQ(ask("GET", "/envs", {}, token).status, 401U);
}

TEST_F(EnvdRest, TellsNoVariablesThatCommandsDoNotGet) {
  EXPECT_EQ(
      ask("POST", "/init", R"({"envVars":{"SUBPROCESS_ENV_PASSTHROUGH":"BOTH","KEY":"k"}})").status,
      204U);
  EXPECT_EQ(ask("GET", "/envs").body, R"({"BOTH":"sandbox","E2B_SANDBOX":"true"})");
}

class EnvdSecured : public EnvdRest {
 protected:
  guest::Settings settings() const override {
    guest::Settings settings = EnvdRest::settings();
    settings.token = "secret";
    return settings;
  }
  http::Response signed_get(const std::string& name, const std::string& signature,
                            const std::string& more = {}) const {
    return get(name + "&signature=" + http::percent_encode(signature) + more);
  }
};

TEST_F(EnvdSecured, WantsTheToken) {
  const std::string refusal =
      R"({"code":401,"message":"unauthorized access, please provide a valid access token or method signing if supported"})";
  EXPECT_EQ(ask("GET", "/health").status, 204U);
  EXPECT_EQ(ask("GET", "/metrics").status, 401U);
  EXPECT_EQ(call("process.Process/List", "{}").body, refusal);
  EXPECT_EQ(call("process.Process/List", "{}", {{"X-Access-Token", "wrong!"}}).status, 401U);
  EXPECT_EQ(call("process.Process/List", "{}", {{"X-Access-Token", "secret"}}).status, 200U);
  // Streams are refused as plain HTTP too.
  EXPECT_EQ(ask("POST", "/process.Process/Start", make_envelope(0, "{}"),
                {{"Content-Type", "application/connect+json"}})
                .body,
            refusal);
}

TEST_F(EnvdSecured, TakesSignaturesForFiles) {
  write("a b", "signed");
  const std::string encoded = http::percent_encode("a b");
  EXPECT_NE(get(encoded).body.find("missing signature query parameter"), std::string::npos);
  EXPECT_NE(get(encoded, {{"X-Access-Token", "x"}})
                .body.find("access token present in header but does not match"),
            std::string::npos);
  EXPECT_EQ(get(encoded, {{"X-Access-Token", "secret"}}).body, "signed");
  const std::string good = sign(path("a b"), "read", "", "secret", "");
  EXPECT_EQ(signed_get(encoded, good).body, "signed");
  EXPECT_EQ(signed_get("a+b", good).body, "signed");
  EXPECT_NE(signed_get(encoded, good + "x").body.find("invalid signature"), std::string::npos);
  EXPECT_EQ(signed_get("work", good).status, 401U);
  const std::string old = sign(path("a b"), "read", "", "secret", "1000");
  EXPECT_NE(signed_get(encoded, old, "&signature_expiration=1000")
                .body.find("signature is already expired"),
            std::string::npos);
  const std::string later = sign(path("a b"), "read", "", "secret", "9999999999");
  EXPECT_EQ(signed_get(encoded, later, "&signature_expiration=9999999999").body, "signed");
  EXPECT_EQ(signed_get(encoded, later, "&signature_expiration=9999999998").status, 401U);
  // Reading is not writing.
  EXPECT_EQ(post(encoded + "&signature=" + http::percent_encode(good), "x").status, 401U);
  const std::string write_too = sign(path("a b"), "write", "", "secret", "");
  EXPECT_EQ(post(encoded + "&signature=" + http::percent_encode(write_too), "x").status, 200U);
}

TEST(Access, SignsAsTheSdksDo) {
  // printf '/a:read:user:token' | sha256sum | xxd -r -p | base64
  EXPECT_EQ(sign("/a", "read", "user", "token", ""),
            "v1_MTo2xowazkHy1MgGwYBHxr+gIN82G3dLPTD2iJqUjig");
  EXPECT_EQ(sign("", "write", "", "token", "7"), "v1_mMFiccqH2uPcgsHicuGTXrgfXQ5cg5eS4naxlVaEIC8");
}

}  // namespace
}  // namespace hearth::envd
