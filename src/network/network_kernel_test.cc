// The life of slots: made, lost, found again, swept, used up; and two engines side by side.
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <thread>
#include <vector>

#include "linux/nft_batch.h"
#include "network/pool.h"
#include "network/testing_internal.h"

namespace hearth::network {
namespace {

class NetworkTest : public InternetTest {
 protected:
  static Options options(const std::string& tag = "test", std::uint32_t slots = 100) {
    return {.tag = tag, .slots = slots, .resolver = kWorldServer};
  }

  // The host's ends of sandboxes, of every engine.
  static std::vector<std::string> links() {
    std::vector<std::string> names;
    for (const linux::Link& link : linux::RouteSocket().list_links()) {
      if (link.name.starts_with('h')) names.push_back(link.name);
    }
    return names;
  }

  static bool wait_until_no_links() {
    const Deadline deadline = Deadline::after(std::chrono::minutes(1));
    while (!links().empty() && !deadline.passed()) ::usleep(10'000);
    return links().empty();
  }

  static bool has_gateway(const std::string& address) {
    const auto all = linux::RouteSocket().list_addresses();
    return std::ranges::find(all, address, &linux::LinkAddress::address) != all.end();
  }

  // What the `nft` command shows of everything in this namespace; empty where there is none.
  static std::string nft_listing() {
    std::string text;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(
        ::popen("nft list ruleset 2>/dev/null", "re"), ::pclose);
    std::array<char, 4096> part{};
    while (std::fgets(part.data(), part.size(), out.get()) != nullptr) text += part.data();
    return text;
  }

  static std::string message_of(const std::function<void()>& body, Code code) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }
};

TEST_F(NetworkTest, ASlotIsWhatItSays) {
  Network network(options());
  EXPECT_EQ(network.start(), 0U);
  EXPECT_TRUE(network.has_egress());
  const linux::Fd ns = linux::make_net_namespace();

  const Slot slot = network.attach(ns.get());

  EXPECT_EQ(slot.index, 0U);
  EXPECT_EQ(slot.gateway, network.gateway());
  EXPECT_TRUE(parse_cidr(network.pool()).contains(parse_cidr(slot.address).address));
  EXPECT_EQ(links(), std::vector{slot.link});
  linux::RouteSocket inside(ns.get());
  EXPECT_TRUE(inside.find_link("lo")->up);
  EXPECT_TRUE(inside.find_link("eth0")->up);
  const auto addresses = inside.list_addresses();
  EXPECT_NE(std::ranges::find(addresses, slot.address, &linux::LinkAddress::address),
            addresses.end());
  message_of([&] { network.set_policy(7, {}); }, Code::not_found);
  message_of([&] { network.traffic(7); }, Code::not_found);
  network.release(7);
}

TEST_F(NetworkTest, RemoveLeavesNothing) {
  Network network(options());
  network.start();
  const linux::Fd ns = linux::make_net_namespace();
  network.attach(ns.get(), world_policy());
  ASSERT_TRUE(has_gateway(network.gateway()));

  network.remove();

  EXPECT_TRUE(links().empty());
  EXPECT_FALSE(has_gateway(network.gateway()));
  EXPECT_EQ(nft_listing(), "");
}

TEST_F(NetworkTest, SlotsRunOutAndComeBack) {
  Network network(options("test", 2));
  network.start();
  const linux::Fd first = linux::make_net_namespace();
  linux::Fd second = linux::make_net_namespace();
  const linux::Fd third = linux::make_net_namespace();
  network.attach(first.get());
  const Slot lost = network.attach(second.get());

  const std::string text = message_of([&] { network.attach(third.get()); }, Code::exhausted);
  EXPECT_NE(text.find("no free network slot"), std::string::npos) << text;
  EXPECT_EQ(links().size(), 2U);

  second.reset();
  network.release(lost.index);
  EXPECT_EQ(network.attach(third.get()).index, lost.index);
}

// The old link may still be there, with its name and its route.
TEST_F(NetworkTest, AnIndexIsReusedWhileItsOldLinkDies) {
  Network network(options("test", 1));
  network.start();
  const linux::Fd server = listen_in_world(80);
  linux::Fd old = linux::make_net_namespace();
  const Slot before = network.attach(old.get(), world_policy());
  network.release(before.index);  // the namespace is alive: as late as it can be

  const linux::Fd ns = linux::make_net_namespace();
  const Slot after = network.attach(ns.get());

  EXPECT_EQ(after.address, before.address);
  EXPECT_NE(after.link, before.link);
  EXPECT_EQ(reach(ns, kWorldServer, 80), "refused") << "the old policy must not be inherited";
  network.set_policy(after.index, world_policy());
  EXPECT_EQ(reach(ns, kWorldServer, 80), "connected");
  EXPECT_EQ(reach(old, kWorldServer, 80, kImpatience), "silence") << "no longer its address";
  old.reset();
  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (links().size() > 1 && !deadline.passed()) ::usleep(10'000);
  EXPECT_EQ(links(), std::vector{after.link});
  EXPECT_EQ(reach(ns, kWorldServer, 80), "connected") << "its route must not go with the old link";
}

TEST_F(NetworkTest, AnAddressIsGivenAgainWithoutItsConnections) {
  Network network(options("test", 1));
  network.start();
  constexpr std::uint16_t kPort = 5000;
  const linux::Fd server = listen_at(internet_, SOCK_DGRAM, kWorldServer, kPort);
  linux::Fd ns = linux::make_net_namespace();
  const Slot before = network.attach(ns.get(), world_policy());
  linux::Fd talker = listen_at(ns, SOCK_DGRAM, "0.0.0.0", kPort);
  const sockaddr_in to = socket_address(kWorldServer, kPort);
  ASSERT_EQ(::sendto(talker.get(), "who?", 4, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
            4);
  ASSERT_TRUE(wait_for(server.get(), POLLIN, kPatience));
  sockaddr_in sender{};
  socklen_t size = sizeof sender;
  char buffer[16];
  ::recvfrom(server.get(), buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&sender), &size);
  const auto answer = [&] {
    return ::sendto(server.get(), "me", 2, 0, reinterpret_cast<sockaddr*>(&sender), size);
  };
  ASSERT_EQ(answer(), 2);
  ASSERT_TRUE(wait_for(talker.get(), POLLIN, kPatience)) << "its own answers it gets";

  talker.reset();
  ns.reset();
  network.release(before.index);
  const linux::Fd next = linux::make_net_namespace();
  ASSERT_EQ(network.attach(next.get(), world_policy()).address, before.address);
  const linux::Fd listener = listen_at(next, SOCK_DGRAM, "0.0.0.0", kPort);

  ASSERT_EQ(answer(), 2);
  EXPECT_FALSE(wait_for(listener.get(), POLLIN, kImpatience)) << "an answer to somebody else";
}

TEST_F(NetworkTest, FailureLeavesNothing) {
  Network network(options("test", 1));
  network.start();

  // An eth0 is in the way, and then a default route.
  const linux::Fd taken = linux::make_net_namespace();
  linux::RouteSocket(taken.get()).create_veth({.name = "eth0", .peer_name = "eth1"});
  message_of([&] { network.attach(taken.get()); }, Code::already_exists);
  const linux::Fd routed = linux::make_net_namespace();
  linux::RouteSocket inside(routed.get());
  inside.create_veth({.name = "other", .peer_name = "end", .up = true});
  inside.add_route("0.0.0.0/0", {.link = "other"});
  message_of([&] { network.attach(routed.get()); }, Code::already_exists);
  EXPECT_FALSE(inside.find_link("eth0"));
  const linux::Fd no_namespace = linux::make_pipe().read;
  EXPECT_THROW(network.attach(no_namespace.get()), Error);
  const linux::Fd ns = linux::make_net_namespace();
  Policy nonsense;
  nonsense.allow.push_back({.first_port = 5});
  message_of([&] { network.attach(ns.get(), nonsense); }, Code::invalid);

  EXPECT_TRUE(links().empty());
  EXPECT_EQ(network.attach(ns.get(), world_policy()).index, 0U);
}

TEST_F(NetworkTest, TheNextLifeFindsWhatTheLastLeft) {
  const linux::Fd server = listen_in_world(80);
  const linux::Fd living = linux::make_net_namespace();
  const linux::Fd orphan = linux::make_net_namespace();
  linux::Fd dead = linux::make_net_namespace();
  Slot slot;
  Slot lost;
  std::string pool;
  {
    Network network(options());
    network.start();
    pool = network.pool();
    lost = network.attach(dead.get(), world_policy());
    network.attach(orphan.get(), world_policy());
    slot = network.attach(living.get(), world_policy());
  }
  dead.reset();
  const auto [stream, how] = dial(living, kWorldServer, 80);
  ASSERT_EQ(how, "connected") << "the table stays between two lives";
  const linux::Fd accepted(::accept(server.get(), nullptr, nullptr));
  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (links().size() > 2 && !deadline.passed()) ::usleep(10'000);

  Network network(options());
  EXPECT_EQ(network.pool(), pool);
  const Slot found = network.adopt(slot.index, world_policy());
  message_of([&] { network.adopt(lost.index, {}); }, Code::not_found);
  EXPECT_EQ(network.start(), 1U);

  EXPECT_EQ(found.link, slot.link);
  EXPECT_EQ(found.address, slot.address);
  EXPECT_EQ(links(), std::vector{slot.link});
  EXPECT_FALSE(linux::RouteSocket(orphan.get()).find_link("eth0"));
  ASSERT_EQ(::send(stream.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(wait_for(accepted.get(), POLLIN, kPatience)) << "adoption must not cut";
  EXPECT_EQ(reach(living, kWorldServer, 80), "connected");

  std::set<std::uint32_t> indexes{slot.index};
  const linux::Fd fresh[] = {linux::make_net_namespace(), linux::make_net_namespace(),
                             linux::make_net_namespace()};
  for (const linux::Fd& ns : fresh) {
    EXPECT_TRUE(indexes.insert(network.attach(ns.get()).index).second);
  }
}

TEST_F(NetworkTest, TwoEnginesKeepApart) {
  Network one(options("one"));
  Network two(options("two"));
  one.start();
  two.start();
  const linux::Fd server = listen_in_world(80);
  const linux::Fd first = linux::make_net_namespace();
  const linux::Fd second = linux::make_net_namespace();
  const Slot slot_one = one.attach(first.get(), world_policy());
  const Slot slot_two = two.attach(second.get(), world_policy());
  const linux::Fd target = listen_at(second, SOCK_STREAM, slot_two.address, 80);

  EXPECT_FALSE(parse_cidr(one.pool()).overlaps(parse_cidr(two.pool())));
  EXPECT_EQ(reach(first, kWorldServer, 80), "connected");
  EXPECT_EQ(reach(second, kWorldServer, 80), "connected");
  EXPECT_EQ(reach(host_, slot_two.address, 80), "connected");
  EXPECT_NE(reach(first, slot_two.address, 80, kImpatience), "connected");

  one.remove();
  EXPECT_EQ(links(), std::vector{slot_two.link});
  EXPECT_EQ(reach(second, kWorldServer, 80), "connected");
}

TEST_F(NetworkTest, APoolIsOneThatTheHostDoesNotUse) {
  const Cidr favourite = pool_candidates("test").front();
  linux::RouteSocket here;
  here.add_address("up0", address_text(favourite.address + 77), 24);

  Network network(options());
  EXPECT_NE(network.pool(), to_string(favourite));
  EXPECT_FALSE(parse_cidr(network.pool()).overlaps(favourite));

  Options wanted = options("other");
  wanted.pool = "198.51.0.0/16";
  message_of([&] { Network refused(wanted); }, Code::conflict);
  wanted.pool = network.pool();
  message_of([&] { Network refused(wanted); }, Code::conflict);
  for (const char* nonsense : {"10.0.0.0/7", "10.0.0.0/31", "10.0.0.1/16", "x"}) {
    wanted.pool = nonsense;
    message_of([&] { Network refused(wanted); }, Code::invalid);
  }
  wanted.pool = "192.168.64.0/24";
  EXPECT_EQ(Network(wanted).gateway(), "192.168.64.1");
  EXPECT_EQ(Network(wanted).pool(), wanted.pool) << "its own claim is no obstacle";
  wanted.tag = "Not A Label";
  message_of([&] { Network refused(wanted); }, Code::invalid);
}

TEST_F(NetworkTest, ManyThreadsAttachAtOnce) {
  Network network(options());
  network.start();
  constexpr int kThreads = 4;
  constexpr int kEach = 10;
  std::mutex mutex;
  std::set<std::string> addresses;
  std::vector<linux::Fd> keep;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int at = 0; at < kEach; ++at) {
        linux::Fd ns = linux::make_net_namespace();
        const Slot slot = network.attach(ns.get());
        network.set_policy(slot.index, world_policy());
        const std::lock_guard lock(mutex);
        addresses.insert(slot.address);
        keep.push_back(std::move(ns));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(addresses.size(), std::size_t{kThreads} * kEach);
  const linux::Fd server = listen_in_world(80);
  for (const linux::Fd& ns : keep) EXPECT_EQ(reach(ns, kWorldServer, 80), "connected");
}

TEST_F(NetworkTest, ComingAndGoingLeavesNothing) {
  Network network(options("test", 10));
  network.start();
  const std::string before = nft_listing();
  const Policy listed{.mode = Mode::listed, .allow = {parse_rule("192.0.2.0/24:80")}};

  for (int round = 0; round < 200; ++round) {
    linux::Fd ns = linux::make_net_namespace();
    const Slot slot = network.attach(ns.get());
    network.set_policy(slot.index, round % 2 == 0 ? listed : world_policy());
    ns.reset();
    network.release(slot.index);
  }

  EXPECT_TRUE(wait_until_no_links());
  if (before.empty()) GTEST_SKIP() << "needs the nft command to look into the table";
  EXPECT_EQ(nft_listing(), before);
}

TEST_F(NetworkTest, ATableThatSomebodyTookAwayComesBack) {
  Network network(options());
  network.start();
  const linux::Fd server = listen_in_world(80);
  const linux::Fd service = listen_at(host_, SOCK_STREAM, "0.0.0.0", 22);
  const linux::Fd ns = linux::make_net_namespace();
  const linux::Fd other = linux::make_net_namespace();
  const Slot slot = network.attach(ns.get(), world_policy());
  network.attach(other.get(), world_policy());
  const Policy shared{.mode = Mode::listed, .allow = {parse_rule("203.0.113.7:80")}};
  const linux::Fd first = linux::make_net_namespace();
  const linux::Fd second = linux::make_net_namespace();
  for (const linux::Fd* one : {&first, &second}) network.attach(one->get(), shared);
  linux::NftBatch batch("hearth-test");
  batch.delete_table();
  linux::NftSocket().commit(batch, "delete the table");

  network.set_policy(slot.index, {});

  EXPECT_EQ(reach(ns, kWorldServer, 80), "refused");
  EXPECT_EQ(reach(other, kWorldServer, 80), "connected");
  EXPECT_EQ(reach(other, kHostAddress, 22), "refused");
  for (const linux::Fd* one : {&first, &second}) {
    EXPECT_EQ(reach(*one, kWorldServer, 80), "connected");
    EXPECT_EQ(reach(*one, kOtherServer, 80), "refused");
  }
}

}  // namespace
}  // namespace hearth::network
