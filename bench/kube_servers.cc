#include "bench/kube_servers.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kToken = "bench";
constexpr auto kStartPatience = std::chrono::seconds(30);

// One that was free just now: etcd wants to be told which.
std::uint16_t find_free_port() {
  const linux::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), raw, size) < 0 || ::getsockname(socket.get(), raw, &size) < 0)
    throw_errno("find a free port");
  return ntohs(address.sin_port);
}

// "ready kube=https://127.0.0.1:PORT ..." as its first line.
std::uint16_t read_port(int output_fd) {
  std::string line;
  char next = 0;
  while (::read(output_fd, &next, 1) == 1 && next != '\n') line += next;
  constexpr std::string_view kBefore = "kube=https://127.0.0.1:";
  const std::size_t at = line.find(kBefore);
  std::uint16_t port = 0;
  if (at != std::string::npos)
    std::from_chars(line.data() + at + kBefore.size(), line.data() + line.size(), port);
  if (port == 0) fail(Code::unavailable, "'hearth apiserver' did not start: '{}'", line);
  return port;
}

}  // namespace

std::string kube_request(std::string_view method, std::string_view target, std::string_view body) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: kube\r\nAuthorization: Bearer {}\r\nAccept: application/json\r\n"
      "User-Agent: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      method, target, kToken, body.size(), body);
}

ApiServer::ApiServer(std::string folder)
    : program_(fs::read_symlink("/proc/self/exe").parent_path() / "hearth"),
      folder_(std::move(folder)) {
  if (!fs::exists(program_)) fail(Code::not_found, "'{}' is not built", program_);
}

void ApiServer::start() {
  linux::Pipe pipe = linux::make_pipe();
  child_.emplace(std::vector<std::string>{program_, "apiserver", "--state-dir", folder_,
                                          "--kube-port", "0", "--token", kToken},
                 CommandFds{.input = -1, .output = pipe.write.get()});
  pipe.write.reset();
  port_ = read_port(pipe.read.get());
  connect().ask(kube_request("GET", "/api/v1/namespaces/default"));
}

SurfaceClient ApiServer::connect() const {
  linux::Fd connection = connect_to_port(port_);
  Tls tls = begin_tls(connection.get());
  return SurfaceClient(std::move(connection), std::move(tls));
}

Etcd::Etcd(std::string folder) : program_(find_program("etcd")), folder_(std::move(folder)) {}

void Etcd::start() {
  port_ = find_free_port();
  const std::string url = fmt::format("http://127.0.0.1:{}", port_);
  const std::string peers = fmt::format("http://127.0.0.1:{}", find_free_port());
  child_.emplace(
      std::vector<std::string>{program_, "--data-dir", folder_, "--listen-client-urls", url,
                               "--advertise-client-urls", url, "--listen-peer-urls", peers,
                               "--initial-advertise-peer-urls", peers, "--initial-cluster",
                               "default=" + peers, "--quota-backend-bytes", "8589934592",
                               "--logger", "zap", "--log-level", "error"},
      CommandFds{});
  const Moment begin = now();
  while (true) {
    try {
      connect().put("started", "yes");
      return;
    } catch (const Error& error) {
      if (now() - begin > kStartPatience)
        fail(Code::unavailable, "etcd did not start: {}", error.what());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace hearth::bench
