#include "interpreter/testing.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <boost/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "guest/server.h"
#include "guest/spawner.h"
#include "interpreter/interpreter.h"
#include "serve/server.h"

namespace hearth::interpreter {
namespace {

namespace json = boost::json;

std::string text_of(const json::value& value) {
  if (const json::string* text = value.if_string()) return {text->data(), text->size()};
  return json::serialize(value);
}

std::string field(const std::string& object, std::string_view key) {
  const json::value value = json::parse(object);
  const json::value* found = value.as_object().if_contains(key);
  return found == nullptr ? "" : text_of(*found);
}

// A socket for clients of the guest's own protocol, of whom there are none: the kernel names it.
linux::Fd listen_for_nobody() {
  linux::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr address{.sa_family = AF_UNIX, .sa_data = {}};
  if (!socket || ::bind(socket.get(), &address, sizeof address.sa_family) != 0 ||
      ::listen(socket.get(), 1) != 0)
    throw_errno("listen on a unix socket");
  return socket;
}

[[noreturn]] void be_guest(guest::Settings settings, serve::Listening door,
                           serve::Listening settings_door) {
  try {
    guest::Core core(std::move(settings));
    guest::Spawner spawner({});
    guest::ServerOptions options;
    options.listen = listen_for_nobody();
    guest::Server server(std::move(options), core, spawner);
    std::vector<serve::Entrance> entrances;
    entrances.push_back({.listen = std::move(door.socket), .handler = make_handler(core)});
    const auto change = [&core](serve::Exchange& exchange) {
      guest::Settings changed = core.settings();
      changed.environment.push_back(exchange.read_body(4096));
      core.change_settings([&](guest::Settings& settings) { settings = std::move(changed); });
      exchange.respond(http::text_response(200, ""));
    };
    entrances.push_back({.listen = std::move(settings_door.socket), .handler = change});
    const serve::Server doors(std::move(entrances));
    server.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "guest: %s\n", error.what());
  }
  ::_exit(1);
}

}  // namespace

TestGuest::TestGuest(guest::Settings settings) {
  serve::Listening door = serve::listen_on_loopback();
  serve::Listening settings_door = serve::listen_on_loopback();
  port_ = door.port;
  settings_port_ = settings_door.port;
  settings.user = fmt::format("{}:{}", ::geteuid(), ::getegid());
  process_ = ::fork();
  if (process_ < 0) throw_errno("fork");
  if (process_ > 0) return;
  be_guest(std::move(settings), std::move(door), std::move(settings_door));
}

TestGuest::~TestGuest() {
  // As PID 1 of a sandbox it would take everything with it.
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process_))) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) ::kill(-child, SIGKILL);
  }
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

http::Response TestGuest::ask(std::string method, std::string target, std::string body) const {
  return client().ask(
      {.method = std::move(method), .target = std::move(target), .body = std::move(body)});
}

serve::TestClient TestGuest::begin(const std::string& body) const {
  serve::TestClient begun = client();
  begun.send(fmt::format("POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}",
                         body.size(), body));
  begun.receive_head();
  return begun;
}

void TestGuest::set_environment(const std::string& entry) const {
  serve::TestClient(settings_port_).ask({.method = "POST", .target = "/", .body = entry});
}

std::string cell(std::string_view code, std::string_view more) {
  return fmt::format("{{\"code\":{}{}{}}}", json_quote(code), more.empty() ? "" : ",", more);
}

void PythonTest::SetUp() {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer does not survive a clone that shares memory";
#endif
  if (::system("python3 -c pass >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "there is no python3 on this machine";
}

Executed read_events(const http::Response& response) {
  Executed executed;
  executed.status = response.status;
  executed.body = response.body;
  if (response.status != 200) return executed;
  std::string_view rest = response.body;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) fail(Code::invalid, "a line without an end: '{}'", rest);
    const std::string line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    const std::string kind = field(line, "type");
    executed.kinds.push_back(kind);
    if (kind == "stdout") executed.output += field(line, "text");
    if (kind == "stderr") executed.error_output += field(line, "text");
    if (kind == "result") executed.results.push_back(line);
    if (kind == "error") executed.error = line;
    if (kind == "number_of_executions")
      executed.count = static_cast<std::uint32_t>(std::stoul(field(line, "execution_count")));
  }
  return executed;
}

std::string Executed::error_field(std::string_view key) const {
  return error.empty() ? "" : field(error, key);
}

std::string Executed::result_field(std::string_view key, std::size_t index) const {
  return index < results.size() ? field(results[index], key) : "";
}

}  // namespace hearth::interpreter
