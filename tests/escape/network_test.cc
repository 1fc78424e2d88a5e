// A sandbox and the network: whom it reaches, with the engine's own rules in place.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "escape/testing.h"

namespace hearth::escape {
namespace {

using namespace std::chrono_literals;

constexpr int kImpatience = 400;  // milliseconds for what must not come

// A server of the host, on all its addresses.
class Server {
 public:
  explicit Server(int type) : socket_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {.s_addr = INADDR_ANY}};
    socklen_t size = sizeof at;
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0)
      throw_errno("bind a server");
    if (type == SOCK_STREAM && ::listen(socket_.get(), 16) != 0) throw_errno("listen");
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&at), &size);
    port_ = std::to_string(ntohs(at.sin_port));
  }
  const std::string& port() const { return port_; }
  bool heard_something() const {
    pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, kImpatience) == 1;
  }

 private:
  linux::Fd socket_;
  std::string port_;
};

std::vector<std::string> addresses_of_host() {
  std::vector<std::string> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw_errno("list addresses");
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    all.emplace_back(text);
  }
  ::freeifaddrs(first);
  return all;
}

class EscapeNetwork : public EscapeTest {
 protected:
  void SetUp() override {
    EscapeTest::SetUp();
    if (IsSkipped()) return;
    if (runtime().hello().network.empty())
      GTEST_SKIP() << "this machine has no network for sandboxes";
    box_ = make_sandbox({.network = network::Policy{.mode = network::Mode::world}});
  }

  Report from_box(std::vector<std::string> words) {
    return attempt(runtime(), box_, std::move(words));
  }
  std::string in_box(const std::string& script) {
    return runtime::run_shell(runtime(), box_, script).output;
  }
  // As the sandbox knows it.
  std::string gateway() {
    const std::string hex = in_box("awk '$2 == \"00000000\" { print $3; exit }' /proc/net/route");
    const auto number = static_cast<in_addr_t>(std::stoul(hex, nullptr, 16));
    char text[INET_ADDRSTRLEN];
    return ::inet_ntop(AF_INET, &number, text, sizeof text);
  }
  std::string address_of(const std::string& id) { return runtime().get(id).address; }

  std::string box_;
};

TEST_F(EscapeNetwork, TheHostCannotBeReachedByAnyOfItsAddresses) {
  const Server server(SOCK_STREAM);
  std::vector<std::string> words = {"connect", gateway(), server.port()};
  for (const std::string& address : addresses_of_host()) {
    words.push_back(address);
    words.push_back(server.port());
  }
  EXPECT_REFUSED(from_box(words));
  EXPECT_FALSE(server.heard_something());
}

TEST_F(EscapeNetwork, TheHostHearsNoDatagramsEither) {
  const Server server(SOCK_DGRAM);
  for (const std::string& address : addresses_of_host())
    from_box({"send", address, server.port(), "hello"});
  EXPECT_FALSE(server.heard_something());
}

TEST_F(EscapeNetwork, ANeighbourCannotBeReached) {
  const std::string neighbour =
      make_sandbox({.network = network::Policy{.mode = network::Mode::world}});
  guest::Connection serving(runtime().connect(neighbour));
  linux::Pipe out = linux::make_pipe();
  guest::ExecRequest request;
  request.command = {kPayload, "serve", "8080"};
  serving.start(request, {.input = -1, .output = out.write.get(), .error = -1});
  char ready[16];
  ASSERT_GT(::read(out.read.get(), ready, sizeof ready), 0);

  EXPECT_REFUSED(from_box({"connect", address_of(neighbour), "8080"}));

  // It was there: the host may.
  const linux::Fd host(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(8080), .sin_addr = {}};
  ::inet_pton(AF_INET, address_of(neighbour).c_str(), &to.sin_addr);
  EXPECT_EQ(::connect(host.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  const auto exited = serving.wait(Deadline::after(60s));
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->status.code, 1);
}

TEST_F(EscapeNetwork, MetadataServicesAreWalledOff) {
  EXPECT_REFUSED(
      from_box({"connect", "169.254.169.254", "80", "169.254.170.2", "80", "100.100.100.200", "80",
                "169.254.0.1", "80", "224.0.0.1", "80", "255.255.255.255", "80", "0.0.0.0", "1"}));
}

TEST_F(EscapeNetwork, ForgedSourcesDoNotArrive) {
  const Server server(SOCK_DGRAM);
  const std::string neighbour =
      make_sandbox({.network = network::Policy{.mode = network::Mode::none}});
  for (const std::string& source : {address_of(neighbour), std::string("127.0.0.1"),
                                    std::string("192.0.2.9"), gateway(), address_of(box_)}) {
    for (const std::string& target : addresses_of_host())
      EXPECT_REFUSED(from_box({"lie", source, target, server.port(), "lie"}));
  }
  EXPECT_FALSE(server.heard_something());
}

TEST_F(EscapeNetwork, ThereIsNoIpv6) {
  EXPECT_REFUSED(from_box({"connect-6", "fe80::1", "80", "2001:4860:4860::8888", "53", "ff02::1",
                           "80", "::ffff:169.254.169.254", "80", "fd00:ec2::254", "80"}));
}

TEST_F(EscapeNetwork, TheNetworkCannotBeChanged) {
  EXPECT_REFUSED(from_box({"change-network"}));
}

TEST_F(EscapeNetwork, PolicyNoneLetsNothingOut) {
  const std::string none = make_sandbox({.network = network::Policy{}});
  const Server server(SOCK_DGRAM);
  std::vector<std::string> words = {"connect", "1.1.1.1", "443", "8.8.8.8", "53"};
  for (const std::string& address : addresses_of_host()) {
    words.insert(words.end(), {address, "22"});
    attempt(runtime(), none, {"send", address, server.port(), "hello"});
  }
  EXPECT_REFUSED(attempt(runtime(), none, words));
  EXPECT_FALSE(server.heard_something());
}

// Also while the policy changes under a flow of packets.
TEST_F(EscapeNetwork, NoPacketSlipsThroughAChangeOfPolicy) {
  const Server server(SOCK_DGRAM);
  guest::Connection sending(runtime().connect(box_));
  guest::ExecRequest request;
  std::string script = "while :; do";
  for (const std::string& address : addresses_of_host())
    script += fmt::format(" {} send {} {} hello;", kPayload, address, server.port());
  request.command = {"/bin/sh", "-c", script + " done"};
  sending.start(request, {});
  for (int i = 0; i < 30; ++i) {
    runtime().set_policy(box_, {.mode = i % 2 == 0 ? network::Mode::listed : network::Mode::world});
  }
  EXPECT_FALSE(server.heard_something());
}

}  // namespace
}  // namespace hearth::escape
