// What a sandbox with evil intentions would try, with real packets.
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>

#include "linux/nft_batch.h"
#include "linux/nft_expression.h"
#include "network/testing_internal.h"

namespace hearth::network {
namespace {

using TricksTest = SandboxTest;

// As container engines publish ports: an address of the host that leads elsewhere.
TEST_F(TricksTest, APortThatTheHostPassesOnIsTheHostsToo) {
  namespace nft = linux::nft;
  const linux::Fd server = listen_in_world(80);
  linux::NftBatch batch("publish");
  batch.add_table();
  batch.add_chain("publish",
                  {.type = "nat", .hook = NF_INET_PRE_ROUTING, .priority = NF_IP_PRI_NAT_DST});
  batch.add_rule("publish", nft::load_meta(NFT_META_L4PROTO) + nft::is(nft::byte(IPPROTO_TCP)) +
                                nft::load_transport_header(2, 2) +
                                nft::is(std::string_view("\x1f\x90", 2)) +  // 8080
                                nft::send_on_to("\xcb\x01\x71\x07", std::string_view("\0\x50", 2)));
  linux::NftSocket().commit(batch, "publish a port");
  const Box box = make_box(world_policy());

  EXPECT_EQ(reach(box.ns, kHostAddress, 8080), "refused");
}

TEST_F(TricksTest, ASourceOfSomebodyElseIsDropped) {
  const linux::Fd server = listen_at(internet_, SOCK_DGRAM, kWorldServer, 4000);
  const Box box = make_box(world_policy());
  const Box neighbour = make_box(world_policy());
  ASSERT_EQ(ask(box.ns, kWorldServer, 4000, server), "answered");
  linux::RouteSocket inside(box.ns.get());

  for (const std::string& source : {neighbour.slot.address, std::string("192.0.2.9")}) {
    inside.add_address("eth0", source, 32);
    const linux::Fd liar = listen_at(box.ns, SOCK_DGRAM, source, 0);
    const sockaddr_in to = socket_address(kWorldServer, 4000);
    ::sendto(liar.get(), "lie", 3, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);

    EXPECT_FALSE(wait_for(server.get(), POLLIN, kImpatience)) << source;
  }
}

sockaddr_in6 socket_address6(const char* ip, std::uint16_t port) {
  sockaddr_in6 address{.sin6_family = AF_INET6, .sin6_port = htons(port)};
  ::inet_pton(AF_INET6, ip, &address.sin6_addr);
  return address;
}

linux::Fd make_socket6(const char* ip, std::uint16_t port) {
  linux::Fd made(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in6 address = socket_address6(ip, port);
  if (::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("bind to {}", ip);
  }
  return made;
}

// Both ends have addresses and know each other: nothing is in the way but the table.
TEST_F(TricksTest, Ipv6IsNoWayRound) {
  const Box box = make_box(world_policy());
  linux::RouteSocket here;
  linux::RouteSocket inside(box.ns.get());
  EXPECT_THROW(here.add_address(box.slot.link, "fd77::1", 64), Error) << "it is off";
  // The table does not rely on that.
  linux::write_file(fmt::format("/proc/sys/net/ipv6/conf/{}/disable_ipv6", box.slot.link), "0");
  here.add_address(box.slot.link, "fd77::1", 64);
  inside.add_address("eth0", "fd77::2", 64);
  here.add_neighbour(box.slot.link, "fd77::2", inside.find_link("eth0")->mac);
  inside.add_neighbour("eth0", "fd77::1", here.find_link(box.slot.link)->mac);
  const linux::Fd of_host = make_socket6("fd77::1", 4000);
  const linux::Fd of_box = in(box.ns, [] { return make_socket6("fd77::2", 4000); });
  const auto heard = [](const linux::Fd& from, const linux::Fd& by, const char* ip) {
    const sockaddr_in6 to = socket_address6(ip, 4000);
    ::sendto(from.get(), "hi", 2, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    return wait_for(by.get(), POLLIN, kImpatience);
  };

  EXPECT_FALSE(heard(of_box, of_host, "fd77::1"));
  EXPECT_FALSE(heard(of_host, of_box, "fd77::2"));

  linux::NftBatch batch("hearth-test");
  batch.delete_table();
  linux::NftSocket().commit(batch, "delete the table");
  EXPECT_TRUE(heard(of_box, of_host, "fd77::1")) << "it was not the table";
  EXPECT_TRUE(heard(of_host, of_box, "fd77::2")) << "it was not the table";
}

// "Too big for me": an ICMP error about a stream from one address to another.
std::string error_about(const sockaddr_in& from, const sockaddr_in& to) {
  std::string message("\3\4\0\0\0\0\2\x58", 8);  // unreachable, fragmentation needed, mtu 600
  std::string inner("\x45\0\0\x28\0\0\x40\0\x40\6\0\0", 12);
  inner.append(reinterpret_cast<const char*>(&from.sin_addr), 4);
  inner.append(reinterpret_cast<const char*>(&to.sin_addr), 4);
  const auto sum = [](const std::string& bytes) {
    std::uint32_t total = 0;
    for (std::size_t at = 0; at < bytes.size(); at += 2) {
      total +=
          static_cast<unsigned char>(bytes[at]) << 8 | static_cast<unsigned char>(bytes[at + 1]);
    }
    total = (total & 0xffff) + (total >> 16);
    return static_cast<std::uint16_t>(~(total + (total >> 16)));
  };
  const auto put = [](std::string& bytes, std::size_t at, std::uint16_t value) {
    bytes[at] = static_cast<char>(value >> 8);
    bytes[at + 1] = static_cast<char>(value);
  };
  put(inner, 10, sum(inner));
  inner.append(reinterpret_cast<const char*>(&from.sin_port), 2);
  inner.append(reinterpret_cast<const char*>(&to.sin_port), 2);
  inner.append(16, '\0');
  message += inner;
  put(message, 2, sum(message));
  return message;
}

// The kernel ties such errors to the connection they speak of, and would call them answers.
TEST_F(TricksTest, ErrorsAboutConnectionsOfOthersAreRefused) {
  const linux::Fd server = listen_in_world(80);
  const Box box = make_box({});
  const linux::Fd box_server = listen_in(box, 80);
  const auto heard_about = [&](const std::string& ip) {
    const linux::Fd stream = dial(host_, ip, 80).first;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    ::getsockname(stream.get(), reinterpret_cast<sockaddr*>(&from), &size);
    const auto make_raw = [] {
      return linux::Fd(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
    };
    const linux::Fd ear = make_raw();
    const linux::Fd mouth = in(box.ns, make_raw);
    const std::string lie = error_about(from, socket_address(ip, 80));
    const sockaddr_in to{.sin_family = AF_INET, .sin_addr = from.sin_addr};
    ::sendto(mouth.get(), lie.data(), lie.size(), 0, reinterpret_cast<const sockaddr*>(&to),
             sizeof to);
    return wait_for(ear.get(), POLLIN, kImpatience);
  };

  EXPECT_FALSE(heard_about(kWorldServer));
  EXPECT_TRUE(heard_about(box.slot.address)) << "about a connection to the sandbox it is its say";
}

}  // namespace
}  // namespace hearth::network
