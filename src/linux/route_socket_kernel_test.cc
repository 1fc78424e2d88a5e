#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "linux/kernel_testing.h"
#include "linux/namespaces.h"
#include "linux/route_socket.h"

namespace hearth::linux {
namespace {

// Two fresh namespaces, "here" and "there": the host's own network is never touched.
class RouteSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEEDS(CAP_SYS_ADMIN);
    HEARTH_NEEDS(CAP_NET_ADMIN);
    here_ns_ = make_net_namespace();
    there_ns_ = make_net_namespace();
    here_.emplace(here_ns_.get());
    there_.emplace(there_ns_.get());
  }

  void create_pair() {
    here_->create_veth({.name = "left",
                        .peer_name = "right",
                        .peer_netns_fd = there_ns_.get(),
                        .peer_mac = "02:00:0a:01:02:03",
                        .mtu = 1400});
  }

  // Both ends up, 10.1.2.1 and fd00::1 here, 10.1.2.2 and fd00::2 there.
  void create_connected_pair() {
    create_pair();
    here_->add_address("left", "10.1.2.1", 30);
    here_->add_address("left", "fd00::1", 64);
    there_->add_address("right", "10.1.2.2", 30);
    there_->add_address("right", "fd00::2", 64);
    here_->link_up("left");
    there_->link_up("right");
  }

  Fd here_ns_;
  Fd there_ns_;
  std::optional<RouteSocket> here_;
  std::optional<RouteSocket> there_;
};

std::string message_of(const std::function<void()>& body, Code code) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST_F(RouteSocketTest, AFreshNamespaceHasALoopbackThatIsDown) {
  const auto links = here_->list_links();

  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].name, "lo");
  EXPECT_FALSE(links[0].up);
  EXPECT_EQ(here_->index_of("lo"), 1);
  EXPECT_EQ(here_->index_of("eth7"), std::nullopt);

  here_->link_up("lo");
  EXPECT_TRUE(here_->list_links()[0].up);
}

TEST_F(RouteSocketTest, BothEndsOfAPairAreBornWhereTheyBelong) {
  create_pair();

  EXPECT_TRUE(here_->index_of("left"));
  EXPECT_FALSE(here_->index_of("right"));
  const auto links = there_->list_links();
  const auto right = std::ranges::find(links, "right", &Link::name);
  ASSERT_NE(right, links.end());
  EXPECT_EQ(right->mac, "02:00:0a:01:02:03");
  EXPECT_EQ(right->mtu, 1400U);
  EXPECT_FALSE(right->up);

  here_->delete_link("left");
  here_->delete_link("left");
  EXPECT_FALSE(there_->index_of("right"));
}

TEST_F(RouteSocketTest, AddressesAreListed) {
  create_connected_pair();

  const auto addresses = there_->list_addresses();
  const auto v4 = std::ranges::find(addresses, "10.1.2.2", &LinkAddress::address);
  ASSERT_NE(v4, addresses.end());
  EXPECT_EQ(v4->prefix, 30U);
  EXPECT_EQ(v4->link_index, *there_->index_of("right"));
  const auto v6 = std::ranges::find(addresses, "fd00::2", &LinkAddress::address);
  ASSERT_NE(v6, addresses.end());
  EXPECT_EQ(v6->prefix, 64U);
}

// The address that the kernel would send from to `address`, or its errno as text.
std::string source_towards(const std::string& address) {
  const bool v6 = address.find(':') != std::string::npos;
  const Fd socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to4{.sin_family = AF_INET, .sin_port = htons(9)};
  sockaddr_in6 to6{.sin6_family = AF_INET6, .sin6_port = htons(9)};
  ::inet_pton(AF_INET, address.c_str(), &to4.sin_addr);
  ::inet_pton(AF_INET6, address.c_str(), &to6.sin6_addr);
  const auto* to = v6 ? reinterpret_cast<sockaddr*>(&to6) : reinterpret_cast<sockaddr*>(&to4);
  if (::connect(socket.get(), to, v6 ? sizeof to6 : sizeof to4) != 0) return errno_text(errno);
  socklen_t size = sizeof to6;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&to6), &size);
  std::memcpy(&to4, &to6, sizeof to4);
  char text[INET6_ADDRSTRLEN];
  const void* from = v6 ? static_cast<const void*>(&to6.sin6_addr) : &to4.sin_addr;
  return ::inet_ntop(v6 ? AF_INET6 : AF_INET, from, text, sizeof text);
}

TEST_F(RouteSocketTest, RoutesAreFollowed) {
  create_connected_pair();
  there_->add_default_route("10.1.2.1");
  there_->add_default_route("fd00::1");
  here_->add_route("192.168.7.0/24", {.gateway = "10.1.2.2"});
  here_->add_route("192.168.8.0/24", {.link = "left"});
  here_->add_route("192.168.9.0/24", {.gateway = "172.16.0.1", .link = "left"});
  here_->add_route("fd77::/16", {.gateway = "fd00::2"});

  EXPECT_EQ(run_in_child([&] {
              enter_namespace(there_ns_.get(), CLONE_NEWNET);
              if (source_towards("8.8.8.8") != "10.1.2.2") return 1;
              if (source_towards("2001:db8::1") != "fd00::2") return 2;
              enter_namespace(here_ns_.get(), CLONE_NEWNET);
              if (source_towards("192.168.7.7") != "10.1.2.1") return 3;
              if (source_towards("192.168.8.7") != "10.1.2.1") return 4;
              if (source_towards("192.168.9.7") != "10.1.2.1") return 5;
              if (source_towards("fd77::1") != "fd00::1") return 6;
              return source_towards("8.8.8.8").starts_with("ENETUNREACH") ? 0 : 7;
            }),
            0);
}

TEST_F(RouteSocketTest, ALinkCanBeBornUpWithItsOwnAddress) {
  here_->create_veth({.name = "left",
                      .peer_name = "right",
                      .peer_netns_fd = there_ns_.get(),
                      .mac = "02:00:0a:01:02:09",
                      .up = true});

  const auto left = here_->find_link("left");
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->up);
  EXPECT_EQ(left->mac, "02:00:0a:01:02:09");
  EXPECT_FALSE(there_->find_link("right")->up);
  EXPECT_FALSE(here_->find_link("right"));
}

TEST_F(RouteSocketTest, Ipv6StaysOffALinkThatIsToldSo) {
  create_pair();
  there_->no_ipv6_address("right");
  here_->link_up("left");
  there_->link_up("right");

  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (here_->list_addresses().empty() && !deadline.passed()) ::usleep(1000);

  EXPECT_EQ(here_->list_addresses().size(), 1U) << "the end that was not told";
  EXPECT_TRUE(there_->list_addresses().empty());
  message_of([&] { here_->no_ipv6_address("eth7"); }, Code::not_found);
}

TEST_F(RouteSocketTest, LabelledAddressesComeAndGo) {
  here_->add_address("lo", "10.9.0.1", 32, "lo:label");

  const auto addresses = here_->list_addresses();
  const auto found = std::ranges::find(addresses, "10.9.0.1", &LinkAddress::address);
  ASSERT_NE(found, addresses.end());
  EXPECT_EQ(found->label, "lo:label");
  message_of([&] { here_->add_address("lo", "10.9.0.1", 32, "lo:other"); }, Code::already_exists);
  message_of([&] { here_->add_address("lo", "10.9.0.2", 32, "lo:much-too-long"); }, Code::invalid);

  here_->delete_address("lo", "10.9.0.1", 32);
  here_->delete_address("lo", "10.9.0.1", 32);
  EXPECT_TRUE(here_->list_addresses().empty());
}

TEST_F(RouteSocketTest, RoutesAreListedAndReplaced) {
  create_connected_pair();
  here_->create_veth({.name = "other", .peer_name = "end", .up = true});
  here_->add_route("10.7.0.9/32", {.link = "left"});
  message_of([&] { here_->add_route("10.7.0.9/32", {.link = "other"}); }, Code::already_exists);
  const auto link_to = [&](const std::string& destination) {
    const auto routes = here_->list_routes();
    const auto found = std::ranges::find(routes, destination, &Route::destination);
    return found == routes.end() ? 0 : found->link_index;
  };
  EXPECT_EQ(link_to("10.7.0.9"), *here_->index_of("left"));

  here_->replace_route("10.7.0.9/32", {.link = "other", .source = "10.1.2.1"});

  EXPECT_EQ(link_to("10.7.0.9"), *here_->index_of("other"));
  message_of([&] { here_->replace_route("10.7.0.9/32", {.link = "left", .source = "x"}); },
             Code::invalid);
  EXPECT_EQ(run_in_child([&] {
              enter_namespace(here_ns_.get(), CLONE_NEWNET);
              return source_towards("10.7.0.9") == "10.1.2.1" ? 0 : 1;
            }),
            0);
}

// The other end never answers: only what we know about it gets a packet across, and counted.
TEST_F(RouteSocketTest, AKnownNeighbourIsNotAskedFor) {
  create_connected_pair();
  here_->add_neighbour("left", "10.1.2.77", "02:00:0a:01:02:03");
  here_->add_neighbour("left", "10.1.2.77", "02:00:0a:01:02:04");
  here_->add_route("10.1.2.77/32", {.link = "left"});
  message_of([&] { here_->add_neighbour("left", "10.1.2.78", "x"); }, Code::invalid);
  here_->find_link("left");  // makes the link watch run: until then the kernel drops packets
  const std::uint64_t before = there_->find_link("right")->received_bytes;

  EXPECT_EQ(run_in_child([&] {
              enter_namespace(here_ns_.get(), CLONE_NEWNET);
              const Fd client(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
              sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(4000)};
              to.sin_addr.s_addr = ::inet_addr("10.1.2.77");
              const std::string big(1000, 'x');
              return ::sendto(client.get(), big.data(), big.size(), 0,
                              reinterpret_cast<sockaddr*>(&to), sizeof to) == 1000
                         ? 0
                         : 1;
            }),
            0);

  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  const auto counted = [&] { return there_->find_link("right")->received_bytes - before; };
  while (counted() < 1000 && !deadline.passed()) ::usleep(1000);
  EXPECT_GE(counted(), 1000U);
  EXPECT_GE(here_->find_link("left")->sent_bytes, 1000U);
}

TEST_F(RouteSocketTest, PacketsCross) {
  create_connected_pair();

  EXPECT_EQ(run_in_child([&] {
              enter_namespace(there_ns_.get(), CLONE_NEWNET);
              const Fd server(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
              sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(4000)};
              address.sin_addr.s_addr = ::inet_addr("10.1.2.2");
              auto* to = reinterpret_cast<sockaddr*>(&address);
              if (::bind(server.get(), to, sizeof address) != 0) return 1;
              enter_namespace(here_ns_.get(), CLONE_NEWNET);
              const Fd client(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
              if (::sendto(client.get(), "hi", 2, 0, to, sizeof address) != 2) return 2;
              ::alarm(5);
              char buffer[8];
              return ::recv(server.get(), buffer, sizeof buffer, 0) == 2 ? 0 : 3;
            }),
            0);
}

TEST_F(RouteSocketTest, ErrorsSayWhatTheKernelSaid) {
  create_pair();

  message_of([&] { create_pair(); }, Code::already_exists);
  message_of([&] { here_->link_up("eth7"); }, Code::not_found);
  message_of([&] { here_->add_address("eth7", "10.0.0.1", 8); }, Code::not_found);
  message_of([&] { here_->add_address("left", "10.0.0.x", 8); }, Code::invalid);
  message_of([&] { here_->add_address("left", "10.0.0.1", 33); }, Code::invalid);
  message_of([&] { here_->add_route("10.0.0.0", {.link = "left"}); }, Code::invalid);
  message_of([&] { here_->add_route("10.0.0.0/8", {}); }, Code::invalid);
  message_of([&] { here_->add_route("10.0.0.0/8", {.gateway = "fd00::1"}); }, Code::invalid);
  message_of([&] { here_->link_up("a-name-that-is-too-long"); }, Code::invalid);
  message_of([&] { here_->index_of("a/b"); }, Code::invalid);

  // "Nexthop has invalid gateway" is the kernel's own explanation (net/ipv4/fib_semantics.c).
  const std::string text =
      message_of([&] { here_->add_default_route("10.9.9.9"); }, Code::internal);
  EXPECT_NE(text.find("gateway"), std::string::npos) << text;
  EXPECT_NE(text.find("ENETUNREACH"), std::string::npos) << text;
}

TEST_F(RouteSocketTest, APeerGoesWithItsNamespace) {
  create_pair();
  there_.reset();
  there_ns_.reset();

  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (here_->index_of("left") && !deadline.passed()) ::usleep(1000);

  EXPECT_FALSE(here_->index_of("left"));
}

}  // namespace
}  // namespace hearth::linux
