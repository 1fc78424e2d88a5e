// For tests: envd as it runs in a sandbox, with a guest's server beside it, in a process of its
// own; and a client that speaks its protocols byte by byte.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "envd/connect.h"
#include "envd/envd.h"
#include "guest/server.h"
#include "linux/channel.h"
#include "serve/testing.h"

namespace hearth::envd {

class EnvdTest : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
    char path[] = "/tmp/hearth-envd-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
    std::filesystem::create_directory(folder_ + "/work");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    serve::Listening listening = serve::listen_on_loopback();
    port_ = listening.port;
    server_ = ::fork();
    if (server_ == 0) serve_and_exit(std::move(listening.socket));
  }

  void TearDown() override {
    if (server_ == 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
    end_orphans();
    std::filesystem::remove_all(folder_);
  }

  virtual guest::Settings settings() const {
    guest::Settings settings;
    settings.environment = {"FROM_SANDBOX=yes", "BOTH=sandbox"};
    settings.user = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
    settings.directory = folder_ + "/work";
    return settings;
  }

  http::Response ask(const std::string& method, const std::string& target, std::string body = {},
                     const http::Headers& headers = {}) const {
    return serve::TestClient(port_).ask(
        {.method = method, .target = target, .headers = headers, .body = std::move(body)});
  }

  // A unary call in JSON.
  http::Response call(const std::string& method, std::string json,
                      http::Headers headers = {}) const {
    headers.add("Content-Type", "application/json");
    return ask("POST", "/" + method, std::move(json), headers);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    return path(name);
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
  std::uint16_t port_ = 0;
  pid_t server_ = 0;

 private:
  void serve_and_exit(linux::Fd socket) const {
    try {
      const linux::Fd folder = linux::open_file(folder_, O_RDONLY | O_DIRECTORY);
      guest::ServerOptions options;
      options.listen = linux::listen_at(folder.get(), "guest.sock");
      guest::Core core(settings());
      guest::Spawner spawner({});
      guest::Server guest_server(std::move(options), core, spawner);
      std::vector<serve::Entrance> entrances;
      entrances.push_back({.listen = std::move(socket),
                           .handler = make_handler(core),
                           .rehearsal = [&core] { return make_rehearsal(core); }});
      serve::Server server(std::move(entrances));
      guest_server.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "envd: %s\n", error.what());
    }
    ::_exit(1);
  }

  // What tests left running came to us, and so does what they started when they end.
  static void end_orphans() {
    do {
      std::ifstream children("/proc/thread-self/children");
      for (pid_t pid = 0; children >> pid;) ::kill(pid, SIGKILL);
    } while (::waitpid(-1, nullptr, 0) > 0);
  }
};

}  // namespace hearth::envd
