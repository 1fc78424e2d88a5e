// Addresses of services, tried with real packets.
#include "network/services.h"
#include "network/testing_internal.h"

namespace hearth::network {
namespace {

constexpr const char* kService = "10.96.0.10";

class ServicesTest : public SandboxTest {
 protected:
  static std::uint32_t number(const std::string& text) { return parse_cidr(text).address; }

  static Service service(const std::vector<std::string>& targets,
                         Protocol protocol = Protocol::tcp) {
    Service made{.address = number(kService), .protocol = protocol, .port = 80};
    for (const std::string& target : targets)
      made.targets.push_back({.address = number(target), .port = 8000});
    return made;
  }

  // Who the server takes for the one that asks its port 53.
  std::string sender_of(const linux::Fd& from, const std::string& ip, const linux::Fd& server) {
    const linux::Fd made = make_socket(from, SOCK_DGRAM);
    const sockaddr_in to = socket_address(ip, 53);
    ::sendto(made.get(), "who?", 4, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    if (!wait_for(server.get(), POLLIN, kPatience)) return "nobody";
    char buffer[16];
    sockaddr_in sender{};
    socklen_t size = sizeof sender;
    ::recvfrom(server.get(), buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&sender), &size);
    return address_text(ntohl(sender.sin_addr.s_addr));
  }

  static Policy opened(const std::string& rule) {
    return {.mode = Mode::listed, .open = {parse_rule(rule)}};
  }
};

TEST_F(ServicesTest, LeadToTheirTargetsFromTheHost) {
  const Box server = make_box({});
  const linux::Fd listening = listen_in(server, 8000);
  network_->set_services({service({server.slot.address})});
  EXPECT_EQ(reach(host_, kService, 80), "connected");
  EXPECT_EQ(reach(host_, kService, 81), "refused");
  network_->set_services({service({})});
  EXPECT_EQ(reach(host_, kService, 80), "refused");
}

TEST_F(ServicesTest, ThePolicyJudgesTheTarget) {
  const Box server = make_box({});
  const linux::Fd listening = listen_in(server, 8000);
  network_->set_services({service({server.slot.address})});
  const Box friendly = make_box(opened(server.slot.address + ":8000/tcp"));
  const Box stranger = make_box(world_policy());
  const Box wrong = make_box(opened(std::string(kService) + ":80/tcp"));
  const Box none = make_box({});

  EXPECT_EQ(reach(friendly.ns, kService, 80), "connected");
  EXPECT_EQ(reach(friendly.ns, kService, 81), "refused");
  EXPECT_EQ(reach(stranger.ns, kService, 80), "refused");
  EXPECT_EQ(reach(wrong.ns, kService, 80), "refused") << "the address alone is no permission";
  EXPECT_EQ(reach(none.ns, kService, 80), "refused");
}

TEST_F(ServicesTest, ConnectionsAreCutWithThePolicyThoughTheServiceIsGone) {
  const Box server = make_box({});
  const linux::Fd listening = listen_in(server, 8000);
  network_->set_services({service({server.slot.address})});
  const Box box = make_box(opened(server.slot.address));
  const auto [stream, how] = dial(box.ns, kService, 80);
  ASSERT_EQ(how, "connected");
  const linux::Fd accepted(::accept(listening.get(), nullptr, nullptr));
  ASSERT_TRUE(accepted);

  network_->set_services({});
  network_->set_policy(box.slot.index, world_policy());

  EXPECT_EQ(::send(stream.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_FALSE(wait_for(accepted.get(), POLLIN, kImpatience));
}

TEST_F(ServicesTest, EveryTargetHasItsShare) {
  const Box one = make_box({});
  const Box two = make_box({});
  const linux::Fd first = listen_in(one, 8000);
  const linux::Fd second = listen_in(two, 8000);
  network_->set_services({service({one.slot.address, two.slot.address})});
  for (int i = 0; i < 40; ++i) ASSERT_EQ(reach(host_, kService, 80), "connected");
  EXPECT_TRUE(wait_for(first.get(), POLLIN, 0));
  EXPECT_TRUE(wait_for(second.get(), POLLIN, 0));
}

TEST_F(ServicesTest, OnlySandboxesCanBeTargets) {
  EXPECT_THROW(network_->set_services({service({kWorldServer})}), Error);
  EXPECT_THROW(network_->set_services({service({network_->gateway()})}), Error);
}

TEST_F(ServicesTest, NamesAreAnsweredWhereItIsSaid) {
  const linux::Fd answering = listen_at(host_, SOCK_DGRAM, network_->gateway(), 5300);
  const linux::Fd streams = listen_at(host_, SOCK_STREAM, network_->gateway(), 5300);
  const linux::Fd resolver = listen_at(internet_, SOCK_DGRAM, kWorldServer, 53);
  const Box box = make_box(world_policy());
  EXPECT_EQ(ask(box.ns, network_->gateway(), 53, resolver), "answered");
  network_->set_name_server(5300);
  EXPECT_EQ(ask(box.ns, network_->gateway(), 53, answering), "answered");
  EXPECT_EQ(reach(box.ns, network_->gateway(), 53), "connected");
  EXPECT_EQ(ask(host_, network_->gateway(), 53, answering), "answered");
  EXPECT_EQ(sender_of(host_, network_->gateway(), answering), network_->gateway());
  EXPECT_EQ(sender_of(box.ns, network_->gateway(), answering), box.slot.address);
  EXPECT_EQ(reach(box.ns, network_->gateway(), 5300), "refused") << "not by its own number";
  network_->set_name_server(0);
  EXPECT_EQ(ask(box.ns, network_->gateway(), 53, resolver), "answered");
}

}  // namespace
}  // namespace hearth::network
