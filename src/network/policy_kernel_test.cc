// Who may talk to whom, tried with real packets.
#include "network/testing_internal.h"

namespace hearth::network {
namespace {

using PolicyTest = SandboxTest;

TEST_F(PolicyTest, WithoutAPolicyNothingGoesOut) {
  const linux::Fd server = listen_in_world(80);
  const Box box = make_box({});

  EXPECT_EQ(reach(box.ns, kWorldServer, 80), "refused");
  EXPECT_EQ(reach(box.ns, kHostAddress, 80), "refused");
  EXPECT_EQ(reach(box.ns, network_->gateway(), 53), "refused");
}

TEST_F(PolicyTest, TheWorldIsReachedUnderTheHostsAddress) {
  const linux::Fd server = listen_in_world(80);
  const Box box = make_box(world_policy());

  const auto [stream, how] = dial(box.ns, kWorldServer, 80);

  ASSERT_EQ(how, "connected");
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  const linux::Fd accepted(::accept(server.get(), reinterpret_cast<sockaddr*>(&peer), &size));
  ASSERT_TRUE(accepted);
  EXPECT_EQ(std::string(::inet_ntoa(peer.sin_addr)), kHostAddress);
  EXPECT_EQ(ask(box.ns, kWorldServer, 4000, listen_at(internet_, SOCK_DGRAM, kWorldServer, 4000)),
            "answered");
  const Traffic traffic = network_->traffic(box.slot.index);
  EXPECT_GT(traffic.sent_bytes, 0U);
  EXPECT_GT(traffic.received_bytes, 0U);
}

TEST_F(PolicyTest, TheHostIsRefused) {
  const linux::Fd everywhere = listen_at(host_, SOCK_STREAM, "0.0.0.0", 22);
  const linux::Fd datagrams = listen_at(host_, SOCK_DGRAM, "0.0.0.0", 4000);
  const Box box = make_box(world_policy());

  EXPECT_EQ(reach(box.ns, kHostAddress, 22), "refused");
  EXPECT_EQ(reach(box.ns, network_->gateway(), 22), "refused");
  EXPECT_EQ(ask(box.ns, kHostAddress, 4000, datagrams, kImpatience), "unheard");
}

TEST_F(PolicyTest, NeighboursAreRefused) {
  const Box box = make_box(world_policy());
  const Box neighbour = make_box(world_policy());
  const linux::Fd server = listen_in(neighbour, 80);

  EXPECT_EQ(reach(box.ns, neighbour.slot.address, 80), "refused");
  EXPECT_EQ(reach(host_, neighbour.slot.address, 80), "connected");
}

TEST_F(PolicyTest, LinkLocalIsRefused) {
  const linux::Fd server = listen_in_world(80, kMetadata);
  const Box box = make_box({.mode = Mode::world, .allow = {parse_rule("0.0.0.0/0")}});

  EXPECT_EQ(reach(host_, kMetadata, 80), "connected");
  EXPECT_EQ(reach(box.ns, kMetadata, 80), "refused");
}

TEST_F(PolicyTest, TheOperatorsWallsAreRefused) {
  open_network(
      {.tag = "walled", .resolver = kWorldServer, .more_walls = {parse_cidr(kOtherServer)}});
  const linux::Fd server = listen_in_world(80);
  const linux::Fd other = listen_in_world(80, kOtherServer);
  const Box box = make_box({.mode = Mode::world, .allow = {parse_rule(kOtherServer)}});

  EXPECT_EQ(reach(box.ns, kWorldServer, 80), "connected");
  EXPECT_EQ(reach(box.ns, kOtherServer, 80), "refused");
}

TEST_F(PolicyTest, DeniedIsRefusedAndAllowedWins) {
  const linux::Fd server80 = listen_in_world(80);
  const linux::Fd server81 = listen_in_world(81);
  const linux::Fd other = listen_in_world(80, kOtherServer);
  const Box box = make_box({.mode = Mode::world,
                            .allow = {parse_rule("203.0.113.7:81/tcp")},
                            .deny = {parse_rule("203.0.113.7:80-90/tcp")}});

  EXPECT_EQ(reach(box.ns, kWorldServer, 80), "refused");
  EXPECT_EQ(reach(box.ns, kWorldServer, 81), "connected");
  EXPECT_EQ(reach(box.ns, kOtherServer, 80), "connected");
}

TEST_F(PolicyTest, OnlyWhatIsListedPasses) {
  const linux::Fd server80 = listen_in_world(80);
  const linux::Fd server443 = listen_in_world(443);
  const linux::Fd other = listen_in_world(443, kOtherServer);
  const linux::Fd udp443 = listen_at(internet_, SOCK_DGRAM, kWorldServer, 443);
  const linux::Fd udp4000 = listen_at(internet_, SOCK_DGRAM, kWorldServer, 4000);
  const Box box = make_box(
      {.mode = Mode::listed,
       .allow = {parse_rule("203.0.113.7:443/tcp"), parse_rule("203.0.113.0/25:4000-4001/udp")}});

  EXPECT_EQ(reach(box.ns, kWorldServer, 443), "connected");
  EXPECT_EQ(reach(box.ns, kWorldServer, 80), "refused");
  EXPECT_EQ(reach(box.ns, kOtherServer, 443), "refused");
  EXPECT_EQ(ask(box.ns, kWorldServer, 4000, udp4000), "answered");
  EXPECT_EQ(ask(box.ns, kWorldServer, 443, udp443, kImpatience), "unheard");
}

TEST_F(PolicyTest, APortWithoutAProtocolIsBoth) {
  const linux::Fd tcp = listen_in_world(443);
  const linux::Fd udp = listen_at(internet_, SOCK_DGRAM, kWorldServer, 443);
  const Box box = make_box({.mode = Mode::listed, .allow = {parse_rule("0.0.0.0/0:443")}});

  EXPECT_EQ(reach(box.ns, kWorldServer, 443), "connected");
  EXPECT_EQ(ask(box.ns, kWorldServer, 443, udp), "answered");
}

TEST_F(PolicyTest, WhatIsOpenedPassesTheWalls) {
  const linux::Fd host_service = listen_at(host_, SOCK_STREAM, "0.0.0.0", 9000);
  const linux::Fd host_other = listen_at(host_, SOCK_STREAM, "0.0.0.0", 9001);
  const linux::Fd metadata = listen_in_world(80, kMetadata);
  const Box neighbour = make_box({});
  const linux::Fd server = listen_in(neighbour, 80);
  const Box box =
      make_box({.mode = Mode::listed,
                .open = {parse_rule(network_->gateway() + ":9000/tcp"),
                         parse_rule(neighbour.slot.address + ":80/tcp"), parse_rule(kMetadata)}});

  EXPECT_EQ(reach(box.ns, network_->gateway(), 9000), "connected");
  EXPECT_EQ(reach(box.ns, network_->gateway(), 9001), "refused");
  EXPECT_EQ(reach(box.ns, kMetadata, 80), "connected");
  EXPECT_EQ(reach(box.ns, neighbour.slot.address, 80), "connected");
  EXPECT_EQ(reach(neighbour.ns, box.slot.address, 80), "refused");
}

TEST_F(PolicyTest, TheHostGetsInAndNobodyElse) {
  const Box box = make_box({});
  const linux::Fd server = listen_in(box, 8080);
  linux::RouteSocket there(internet_.get());
  there.add_route(network_->pool(), {.gateway = kHostAddress});

  const auto [stream, how] = dial(host_, box.slot.address, 8080);

  EXPECT_EQ(how, "connected");
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  const linux::Fd accepted(::accept(server.get(), reinterpret_cast<sockaddr*>(&peer), &size));
  ASSERT_TRUE(accepted);
  EXPECT_EQ(std::string(::inet_ntoa(peer.sin_addr)), network_->gateway());
  EXPECT_EQ(reach(internet_, box.slot.address, 8080, kImpatience), "silence");
}

TEST_F(PolicyTest, DnsGoesToTheResolver) {
  const linux::Fd udp = listen_at(internet_, SOCK_DGRAM, kWorldServer, 53);
  const linux::Fd tcp = listen_in_world(53);
  const Box world = make_box(world_policy());
  const Box listed = make_box({.mode = Mode::listed});
  const Box deaf = make_box({.mode = Mode::world, .dns = false});
  const std::string gateway = network_->gateway();

  EXPECT_EQ(network_->resolv_conf_text(), "nameserver " + gateway + "\n");
  EXPECT_EQ(ask(world.ns, gateway, 53, udp), "answered");
  EXPECT_EQ(reach(world.ns, gateway, 53), "connected");
  EXPECT_EQ(ask(listed.ns, gateway, 53, udp), "answered");
  EXPECT_EQ(reach(listed.ns, kWorldServer, 53), "refused");
  EXPECT_EQ(ask(deaf.ns, gateway, 53, udp, kImpatience), "unheard");
}

TEST_F(PolicyTest, DnsReachesAResolverOnTheHostsLoopback) {
  open_network({.tag = "stub", .resolver = "127.0.0.1"});
  const linux::Fd stub = listen_at(host_, SOCK_DGRAM, "127.0.0.1", 53);
  const linux::Fd secret = listen_at(host_, SOCK_STREAM, "127.0.0.1", 6379);
  const Box box = make_box(world_policy());

  EXPECT_EQ(ask(box.ns, network_->gateway(), 53, stub), "answered");
  EXPECT_EQ(reach(box.ns, network_->gateway(), 6379), "refused");
}

TEST_F(PolicyTest, APolicyCanChange) {
  const linux::Fd server = listen_in_world(80);
  const Box box = make_box({});
  const std::uint32_t index = box.slot.index;
  const Policy listed{.mode = Mode::listed, .allow = {parse_rule("203.0.113.7:80/tcp")}};
  const Policy elsewhere{.mode = Mode::listed, .allow = {parse_rule(kOtherServer)}};

  // From every kind to every other.
  const std::pair<Policy, const char*> steps[] = {
      {world_policy(), "connected"}, {{}, "refused"},
      {listed, "connected"},         {elsewhere, "refused"},
      {listed, "connected"},         {{}, "refused"},
      {listed, "connected"},         {world_policy(), "connected"},
      {elsewhere, "refused"},        {world_policy(), "connected"},
      {world_policy(), "connected"}};
  for (const auto& [policy, expected] : steps) {
    network_->set_policy(index, policy);
    EXPECT_EQ(reach(box.ns, kWorldServer, 80), expected) << to_string(policy.mode);
  }
}

TEST_F(PolicyTest, AChangeCutsWhatIsNoLongerAllowedAndNothingElse) {
  const linux::Fd server = listen_in_world(80);
  const Box box = make_box(world_policy());
  const auto [stream, how] = dial(box.ns, kWorldServer, 80);
  ASSERT_EQ(how, "connected");
  const linux::Fd accepted(::accept(server.get(), nullptr, nullptr));
  const auto send_and_hear = [&, &client = stream] {
    if (::send(client.get(), "x", 1, MSG_NOSIGNAL) != 1) return false;
    char byte = 0;
    return wait_for(accepted.get(), POLLIN, kImpatience) &&
           ::recv(accepted.get(), &byte, 1, MSG_DONTWAIT) == 1;
  };
  ASSERT_TRUE(send_and_hear());

  network_->set_policy(box.slot.index,
                       {.mode = Mode::listed, .allow = {parse_rule("203.0.113.7:80/tcp")}});
  EXPECT_TRUE(send_and_hear());
  network_->set_policy(box.slot.index, {});
  EXPECT_FALSE(send_and_hear());

  char byte = 0;
  EXPECT_TRUE(wait_for(stream.get(), POLLIN, kPatience));
  EXPECT_EQ(::recv(stream.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(PolicyTest, WhatSeveralShareIsEachOnesOwn) {
  const linux::Fd server = listen_in_world(80);
  const linux::Fd other = listen_in_world(80, kOtherServer);
  const Policy shared{.mode = Mode::world, .deny = {parse_rule("203.0.113.8")}};
  std::vector<Box> boxes;
  for (int i = 0; i < 3; ++i) boxes.push_back(make_box(shared));
  const auto outcomes = [&](const std::string& ip) {
    std::vector<std::string> all;
    for (const Box& box : boxes) all.push_back(reach(box.ns, ip, 80));
    return all;
  };
  using All = std::vector<std::string>;
  EXPECT_EQ(outcomes(kWorldServer), (All{"connected", "connected", "connected"}));
  EXPECT_EQ(outcomes(kOtherServer), (All{"refused", "refused", "refused"}));
  network_->set_policy(boxes[1].slot.index, world_policy());
  EXPECT_EQ(outcomes(kOtherServer), (All{"refused", "connected", "refused"}));
  network_->set_policy(boxes[2].slot.index, {});
  EXPECT_EQ(outcomes(kWorldServer), (All{"connected", "connected", "refused"}));
  // The shelf is empty now, and somebody else's next.
  const Policy strict{.mode = Mode::listed, .allow = {parse_rule("203.0.113.8")}};
  for (const std::size_t i : {1U, 2U}) network_->set_policy(boxes[i].slot.index, strict);
  EXPECT_EQ(outcomes(kWorldServer), (All{"connected", "refused", "refused"}));
  EXPECT_EQ(outcomes(kOtherServer), (All{"refused", "connected", "connected"}));
  network_->release(boxes[2].slot.index);
  EXPECT_EQ(outcomes(kOtherServer), (All{"refused", "connected", "refused"}));
}

TEST_F(PolicyTest, WithoutEgressOnlyTheHostIsNear) {
  open_network({.tag = "closed", .egress = false, .resolver = kWorldServer});
  const linux::Fd server = listen_in_world(80);
  const linux::Fd service = listen_at(host_, SOCK_STREAM, "0.0.0.0", 9000);
  const Box box =
      make_box({.mode = Mode::world, .open = {parse_rule(network_->gateway() + ":9000/tcp")}});

  EXPECT_FALSE(network_->has_egress());
  EXPECT_EQ(reach(box.ns, network_->gateway(), 9000), "connected");
  EXPECT_EQ(reach(box.ns, kWorldServer, 80), "refused");
}

TEST_F(PolicyTest, ManyRulesFit) {
  const linux::Fd server = listen_in_world(80);
  Policy policy{.mode = Mode::listed};
  for (std::size_t at = 1; at < kMostRules; ++at) {
    policy.allow.push_back(parse_rule(fmt::format("192.0.2.{}:{}", at % 256, at)));
  }
  policy.allow.push_back(parse_rule("203.0.113.7:80/tcp"));
  const Box box = make_box(policy);

  EXPECT_EQ(reach(box.ns, kWorldServer, 80), "connected");
  EXPECT_EQ(reach(box.ns, kWorldServer, 81), "refused");
  policy.allow.push_back(parse_rule("203.0.113.7:81/tcp"));
  EXPECT_THROW(network_->set_policy(box.slot.index, policy), Error);
}

}  // namespace
}  // namespace hearth::network
