#include "network/network.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"
#include "linux/conntrack.h"
#include "linux/nft_batch.h"
#include "network/host_side.h"
#include "network/pool.h"
#include "network/resolver.h"
#include "network/shelves.h"
#include "network/table.h"

namespace hearth::network {
namespace {

// What fits into the name of a link (pool.h).
constexpr std::uint32_t kMostSlots = 1'000'000;

std::optional<std::uint32_t> get_resolver(const std::string& wanted) {
  if (wanted.empty()) return find_host_resolver();
  const Cidr one = parse_cidr(wanted);
  if (one.prefix != 32) fail(Code::invalid, "'{}' is no address of a resolver", wanted);
  return one.address;
}

}  // namespace

class Network::State {
 public:
  explicit State(const Options& options)
      : names_(names_of(options.tag)), host_(names_), wants_egress_(options.egress) {
    spec_.name = names_.table;
    spec_.link_prefix = names_.link_prefix;
    spec_.resolver = get_resolver(options.resolver);
    spec_.more_walls = options.more_walls;
    spec_.pool = host_.claim_pool(options.pool, pool_candidates(options.tag), spec_.resolver);
    spec_.gateway = gateway_of(spec_.pool);
    slots_ = std::min({options.slots, room_in(spec_.pool), kMostSlots});
  }

  Slot adopt(std::uint32_t index, const Policy& policy);
  std::size_t start();
  Slot attach(int netns_fd, const Policy& policy);
  void set_policy(std::uint32_t index, const Policy& policy);
  void set_services(const std::vector<Service>& services);
  void set_name_server(std::uint16_t port);
  void release(std::uint32_t index);
  Traffic traffic(std::uint32_t index);
  void remove();

  const TableSpec& spec() const { return spec_; }

 private:
  struct Living {
    std::string link;
    Policy policy;
    Place place;
  };

  Slot slot(std::uint32_t index, const std::string& link) const;
  std::uint32_t take_index();
  // With table_mutex_ held:
  Living& get_living(std::uint32_t index);
  void commit(linux::NftBatch& batch, const std::string& what);
  void change(std::uint32_t index, Living& living, const Policy& policy);
  void move(Living& living, const Policy& policy, const Place& place);
  bool has_twin(std::uint32_t index, const Policy& policy) const;
  void put_table_back();
  void forget_the_dead();
  bool is_of_the_dead(std::uint32_t address) const;

  const Names names_;
  HostSide host_;
  const bool wants_egress_;
  TableSpec spec_;  // constant after start()
  std::uint32_t slots_ = 0;

  std::mutex table_mutex_;  // guards what follows; held while the kernel changes the table
  linux::NftSocket nft_;
  linux::ConntrackSocket connections_;
  std::map<std::uint32_t, Living> living_;
  Shelves shelves_;
  std::vector<Service> services_;
  std::uint16_t name_server_ = 0;
  // Links found by the first adopt(), by address; until start().
  std::optional<std::multimap<std::uint32_t, std::string>> left_behind_;
  // Indexes that were never used go first, then those longest free: addresses rest. One that was
  // used is free when no connection remembers it any more.
  std::uint32_t next_ = 0;
  std::deque<std::uint32_t> used_;
  std::deque<std::uint32_t> free_;
};

Slot Network::State::slot(std::uint32_t index, const std::string& link) const {
  return {.index = index,
          .address = address_text(address_of(spec_.pool, index)),
          .gateway = address_text(spec_.gateway),
          .link = link};
}

Slot Network::State::adopt(std::uint32_t index, const Policy& policy) {
  check(policy);
  const std::lock_guard lock(table_mutex_);
  if (!left_behind_) left_behind_ = host_.list_links();
  const auto found =
      index < slots_ ? left_behind_->find(address_of(spec_.pool, index)) : left_behind_->end();
  if (found == left_behind_->end()) fail(Code::not_found, "network slot {} has no link", index);
  move(living_[index] = {.link = found->second}, policy,
       shelves_.find(policy, [&] { return has_twin(index, policy); }));
  return slot(index, found->second);
}

std::size_t Network::State::start() {
  spec_.egress = wants_egress_ && allow_forwarding();
  if (!spec_.resolver) log::warning("sandboxes have no DNS: the host has no IPv4 name server");
  std::vector<std::string> nobodys;
  {
    const std::lock_guard lock(table_mutex_);
    put_table_back();
    forget_the_dead();
    left_behind_.reset();
    for (const auto& [address, link] : host_.list_links()) {
      const auto owner = living_.find(*find_index(names_, link));
      if (owner == living_.end() || owner->second.link != link) nobodys.push_back(link);
    }
  }
  for (const std::string& link : nobodys) host_.disconnect(link);
  return nobodys.size();
}

void Network::State::put_table_back() {
  linux::NftBatch batch(spec_.name);
  put_table(batch, spec_);
  for (unsigned shelf = 1; shelf < kShelves; ++shelf)
    if (!shelves_.is_free(shelf)) put_shelf(batch, spec_, shelf, shelves_.policy(shelf));
  for (const auto& [index, living] : living_)
    put_change(batch, spec_, address_of(spec_.pool, index), /*from=*/{}, living.place,
               living.policy);
  put_services(batch, /*from=*/{}, services_);
  if (name_server_ != 0) put_name_server(batch, spec_, name_server_);
  nft_.commit(batch, fmt::format("make nftables table '{}'", spec_.name));
}

bool Network::State::is_of_the_dead(std::uint32_t address) const {
  return spec_.pool.contains(address) && address != spec_.gateway &&
         !living_.contains(address - address_of(spec_.pool, 0));
}

// Whoever gets an address again would also get what is sent to the one who had it before: the
// kernel remembers connections for minutes, some for days. One look through its table serves all
// addresses that were used since the last.
void Network::State::forget_the_dead() {
  try {
    connections_.forget([&](const linux::TrackedConnection& connection) {
      return std::ranges::any_of(
          std::array{connection.source, connection.destination, connection.answer_source},
          [&](std::uint32_t end) { return is_of_the_dead(end); });
    });
  } catch (const Error& error) {
    log::warning("connections of sandboxes that are gone are not forgotten",
                 {{"error", error.what()}});
  }
  std::ranges::move(used_, std::back_inserter(free_));
  used_.clear();
}

std::uint32_t Network::State::take_index() {
  const std::lock_guard lock(table_mutex_);
  while (next_ < slots_) {
    const std::uint32_t index = next_++;
    if (!living_.contains(index)) return index;
  }
  if (free_.empty() && !used_.empty()) forget_the_dead();
  if (free_.empty()) fail(Code::exhausted, "no free network slot: all {} are used", slots_);
  const std::uint32_t index = free_.front();
  free_.pop_front();
  return index;
}

Slot Network::State::attach(int netns_fd, const Policy& policy) {
  check(policy);
  const std::uint32_t index = take_index();
  OnFailure give_back([&] {
    const std::lock_guard lock(table_mutex_);
    used_.push_back(index);
  });
  const std::string link = host_.connect(netns_fd, index, spec_.pool);
  OnFailure disconnect([&] { host_.disconnect(link); });
  if (spec_.resolver && is_loopback(*spec_.resolver)) host_.reach_loopback_from(link);
  set_up_inside(netns_fd, address_of(spec_.pool, index), spec_.gateway);
  host_.settle(link);
  {
    const std::lock_guard lock(table_mutex_);
    Living& living = living_[index] = {.link = link};
    OnFailure forget([&] { living_.erase(index); });
    change(index, living, policy);
    forget.release();
  }
  disconnect.release();
  give_back.release();
  return slot(index, link);
}

Network::State::Living& Network::State::get_living(std::uint32_t index) {
  const auto found = living_.find(index);
  if (found == living_.end()) fail(Code::not_found, "nobody has network slot {}", index);
  return found->second;
}

// What is to be afterwards is known by now: all of it is put back if need be.
void Network::State::commit(linux::NftBatch& batch, const std::string& what) {
  try {
    nft_.commit(batch, what);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    // Somebody else took things out of our table, or all of it ("nft flush ruleset").
    log::warning("the nftables table is not as it was left, and is put back",
                 {{"table", spec_.name}, {"error", error.what()}});
    put_table_back();
  }
}

void Network::State::change(std::uint32_t index, Living& living, const Policy& policy) {
  const Place place = shelves_.find(policy, [&] { return has_twin(index, policy); });
  linux::NftBatch batch(spec_.name);
  if (place.kind == Place::Kind::shelf && shelves_.is_free(place.shelf))
    put_shelf(batch, spec_, place.shelf, policy);
  put_change(batch, spec_, address_of(spec_.pool, index), living.place, place, policy);
  const Living before = living;
  move(living, policy, place);
  OnFailure keep([&] { move(living, before.policy, before.place); });
  commit(batch, fmt::format("set the policy of network slot {}", index));
  keep.release();
}

void Network::State::move(Living& living, const Policy& policy, const Place& place) {
  shelves_.enter(place, policy);
  shelves_.leave(living.place);
  living.policy = policy;
  living.place = place;
}

bool Network::State::has_twin(std::uint32_t index, const Policy& policy) const {
  return std::ranges::any_of(living_, [&](const auto& other) {
    return other.first != index && other.second.policy == policy;
  });
}

void Network::State::set_policy(std::uint32_t index, const Policy& policy) {
  check(policy);
  const std::lock_guard lock(table_mutex_);
  change(index, get_living(index), policy);
}

void Network::State::set_services(const std::vector<Service>& services) {
  check(services);
  for (const Service& service : services)
    for (const ServiceTarget& target : service.targets)
      if (!spec_.pool.contains(target.address) || target.address == spec_.gateway)
        fail(Code::invalid, "service {}: {} is no sandbox's address", address_text(service.address),
             address_text(target.address));
  const std::lock_guard lock(table_mutex_);
  linux::NftBatch batch(spec_.name);
  put_services(batch, services_, services);
  if (batch.empty()) return;
  std::vector<Service> before = std::exchange(services_, services);
  OnFailure keep([&] { services_ = std::move(before); });
  commit(batch, "set services");
  keep.release();
}

void Network::State::set_name_server(std::uint16_t port) {
  const std::lock_guard lock(table_mutex_);
  if (!spec_.resolver || port == name_server_) return;
  linux::NftBatch batch(spec_.name);
  put_name_server(batch, spec_, port);
  const std::uint16_t before = std::exchange(name_server_, port);
  OnFailure keep([&] { name_server_ = before; });
  commit(batch, "set the name server");
  keep.release();
}

void Network::State::release(std::uint32_t index) {
  const std::lock_guard lock(table_mutex_);
  const auto found = living_.find(index);
  if (found == living_.end()) return;
  change(index, found->second, /*policy=*/{});
  living_.erase(found);
  used_.push_back(index);
}

Traffic Network::State::traffic(std::uint32_t index) {
  std::string name;
  {
    const std::lock_guard lock(table_mutex_);
    name = get_living(index).link;
  }
  const std::optional<linux::Link> link = host_.find_link(name);
  if (!link) fail(Code::not_found, "network slot {} has no link", index);
  return {.received_bytes = link->sent_bytes, .sent_bytes = link->received_bytes};
}

void Network::State::remove() {
  for (const auto& [address, link] : host_.list_links()) host_.disconnect(link);
  const std::lock_guard lock(table_mutex_);
  linux::NftBatch batch(spec_.name);
  batch.add_table();
  batch.delete_table();
  nft_.commit(batch, fmt::format("delete nftables table '{}'", spec_.name));
  living_.clear();
  host_.give_up_pool(spec_.pool);
}

Network::Network(const Options& options) : state_(std::make_unique<State>(options)) {}
Network::~Network() = default;

Slot Network::adopt(std::uint32_t index, const Policy& policy) {
  return state_->adopt(index, policy);
}
std::size_t Network::start() {
  return state_->start();
}
Slot Network::attach(int netns_fd, const Policy& policy) {
  return state_->attach(netns_fd, policy);
}
void Network::set_policy(std::uint32_t index, const Policy& policy) {
  state_->set_policy(index, policy);
}
void Network::set_services(const std::vector<Service>& services) {
  state_->set_services(services);
}
void Network::set_name_server(std::uint16_t port) {
  state_->set_name_server(port);
}
void Network::release(std::uint32_t index) {
  state_->release(index);
}
Traffic Network::traffic(std::uint32_t index) {
  return state_->traffic(index);
}
std::string Network::resolv_conf_text() const {
  return fmt::format("nameserver {}\n", address_text(state_->spec().gateway));
}
std::string Network::pool() const {
  return to_string(state_->spec().pool);
}
std::string Network::gateway() const {
  return address_text(state_->spec().gateway);
}
bool Network::has_egress() const {
  return state_->spec().egress;
}
void Network::remove() {
  state_->remove();
}

}  // namespace hearth::network
