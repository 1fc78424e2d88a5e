#include "bench/e2b_proxy.h"

#include <time.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/id.h"
#include "bench/crowd.h"
#include "bench/e2b_subjects.h"
#include "bench/entry.h"
#include "bench/interleave.h"
#include "bench/proxy_gateway.h"
#include "bench/small_server.h"
#include "bench/statistics.h"
#include "bench/surface_client.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kClients = 32;
constexpr std::size_t kAnswerBytes = 1024;

// Gone with this object, whatever is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path() / ("hearth-bench-proxy-" + random_hex(4))) {
    fs::create_directory(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string make(const char* name) const {
    fs::create_directory(path_ / name);
    return path_ / name;
  }

 private:
  fs::path path_;
};

// One worker that does not log, and keeps its connections to whom it asks. It passes the request on
// as it came, without the headers that our gateway adds.
constexpr const char* kNginxConfig = R"(daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream sandbox {{
    server 127.0.0.1:{upstream};
    keepalive 64;
    keepalive_requests 1000000000;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://sandbox;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }}
  }}
}}
)";

// A port that nobody had a moment ago: nginx cannot be told to take any.
std::uint16_t free_port() {
  return SmallServer(SmallServer::echo(200, 0)).port();
}

class Nginx {
 public:
  Nginx(const std::string& folder, std::uint16_t upstream) : port_(free_port()) {
    const std::string config = folder + "/nginx.conf";
    std::ofstream(config) << fmt::format(fmt::runtime(kNginxConfig), fmt::arg("folder", folder),
                                         fmt::arg("upstream", upstream), fmt::arg("port", port_));
    child_.emplace(std::vector<std::string>{find_nginx(), "-c", config, "-p", folder},
                   CommandFds{});
    wait_until_it_listens();
  }

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return child_->pid(); }

 private:
  static std::string find_nginx() {
    try {
      return find_program("nginx");
    } catch (const Error&) {
      fail(Code::not_found, "'nginx' is not installed: it is in Debian's nginx-light");
    }
  }
  void wait_until_it_listens() {
    for (const Deadline end = Deadline::after(kPatience); !end.passed();) {
      try {
        connect_to_port(port_);
        return;
      } catch (const Error&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    child_->wait();  // says why
  }

  std::uint16_t port_;
  std::optional<Child> child_;
};

// Of all threads of a process, in seconds.
double processor_time(pid_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    fail(Code::internal, "process {} does not tell its processor time", pid);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// A proxy and those who ask it.
struct Side {
  std::string subject;
  pid_t pid = 0;
  Crowd crowd;
  std::vector<double> times = {};
  double processor_seconds = 0;

  // Requests a second.
  double take_turn(const std::string& request, Duration time) {
    const double before = processor_time(pid);
    const Moment begin = now();
    const std::vector<double> answers = crowd.load(request, time);
    const double taken = us_between(begin, now()) / 1e6;
    processor_seconds += processor_time(pid) - before;
    times.insert(times.end(), answers.begin(), answers.end());
    return static_cast<double>(answers.size()) / taken;
  }
};

void note(Results& results, const Side& side, const std::vector<double>& rates) {
  const Summary summary = summarize(side.times);
  results.rows.push_back({.bench_case = "proxy",
                          .subject = side.subject,
                          .p50_us = summary.p50,
                          .p99_us = summary.p99,
                          .per_s = summarize(rates).p50,
                          .n = summary.count});
}

void note_per_core(Results& results, const Side& side) {
  results.rows.push_back({.bench_case = "proxy_per_core",
                          .subject = side.subject,
                          .per_s = static_cast<double>(side.times.size()) / side.processor_seconds,
                          .n = side.times.size()});
}

}  // namespace

void measure_proxies(const PageOptions& options, Results& results) {
  const bool is_quick = options.rounds < 40;
  const unsigned slices = is_quick ? 1 : 15;
  const Duration slice = std::chrono::milliseconds(is_quick ? 100 : 500);
  const TemporaryFolder folder;
  const ServerProcess upstream({"echo", "200", std::to_string(kAnswerBytes)});
  const ServerProcess gateway({"gateway", folder.make("gateway")});
  std::optional<Nginx> nginx;
  try {
    nginx.emplace(folder.make("nginx"), upstream.port());
  } catch (const Error& error) {
    results.skip("proxy", "nginx", error.what());
    results.skip("proxy_per_core", "nginx", error.what());
  }
  // What routes a request costs our gateway alone; nginx gets the same bytes.
  const std::string request = fmt::format(
      "GET /index.html HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n"
      "E2b-Sandbox-Id: {}\r\nE2b-Sandbox-Port: {}\r\n\r\n",
      kProxiedSandbox, upstream.port());

  std::deque<Side> sides;
  sides.push_back({.subject = "hearth", .pid = gateway.pid(), .crowd = {gateway.port(), kClients}});
  if (nginx)
    sides.push_back({.subject = "nginx", .pid = nginx->pid(), .crowd = {nginx->port(), kClients}});
  std::vector<Contender> contenders;
  for (Side& side : sides) {
    side.crowd.load(request, slice / 5);  // connections are made
    contenders.push_back({.subject = side.subject, .take_turn = [&side, &request, slice] {
                            return side.take_turn(request, slice);
                          }});
  }
  interleave(contenders, {.warm_up = 0, .rounds = slices});
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (contenders[i].failure.empty()) {
      note(results, sides[i], contenders[i].turns);
    } else {
      results.skip("proxy", sides[i].subject, contenders[i].failure);
      results.skip("proxy_per_core", sides[i].subject, contenders[i].failure);
    }
  }
  for (std::size_t i = 0; i < sides.size(); ++i)
    if (contenders[i].failure.empty()) note_per_core(results, sides[i]);
}

}  // namespace hearth::bench
