#include "bench/claim_client.h"

#include <sys/epoll.h>

#include <array>
#include <barrier>
#include <charconv>
#include <exception>

#include <fmt/format.h>

#include "base/error.h"
#include "base/thread_name.h"
#include "bench/interrupt.h"
#include "bench/kube_actors.h"
#include "model/meta.h"

namespace hearth::bench {
namespace {

constexpr Duration kReadyPatience = std::chrono::seconds(60);
constexpr int kAnswerPatienceMs = 60'000;
constexpr Duration kFillPatience = std::chrono::minutes(5);

constexpr std::string_view kExtensions =
    "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/";

std::uint64_t version_of(const model::Json& object) {
  const std::string_view text = model::resource_version_of(object);
  std::uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

SurfaceClient ApiAddress::connect() const {
  linux::Fd connection = connect_to_port(port);
  Tls tls = begin_tls(connection.get());
  return SurfaceClient(std::move(connection), std::move(tls));
}

std::string ApiAddress::request(std::string_view method, std::string_view target,
                                std::string_view body) const {
  const std::string_view type =
      method == "PATCH" ? "application/merge-patch+json" : "application/json";
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: kube\r\nAuthorization: Bearer {}\r\nAccept: application/json\r\n"
      "User-Agent: bench\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
      method, target, token, type, body.size(), body);
}

std::string claims_target(std::string_view name) {
  return fmt::format("{}sandboxclaims{}{}", kExtensions, name.empty() ? "" : "/", name);
}

std::string claim_body(std::string_view name) {
  return fmt::format(
      R"({{"kind":"SandboxClaim","apiVersion":"extensions.agents.x-k8s.io/v1beta1",)"
      R"("metadata":{{"name":"{}","namespace":"default"}},"spec":{{"warmPoolRef":{{"name":"{}"}}}}}})",
      name, kBenchPool);
}

ClaimWatch::ClaimWatch(const ApiAddress& address) : client_(address.connect()) {
  client_.begin_stream(address.request("GET", claims_target() + "?watch=true"));
  thread_ = std::jthread([this](const std::stop_token& stop) {
    name_thread("claim watch");
    read(stop);
  });
}

ClaimWatch::~ClaimWatch() {
  thread_.request_stop();
  client_.hang_up();
}

void ClaimWatch::read(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested()) note(client_.next_line());
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    failure_ = error.what();
    emptied_.notify_all();
    for (const auto& [name, waiter] : waiters_) waiter->notify_one();
  }
}

void ClaimWatch::wake(const std::string& name) {
  if (const auto waiter = waiters_.find(name); waiter != waiters_.end())
    waiter->second->notify_one();
}

void ClaimWatch::note(std::string_view line) {
  // Between events are the sizes of chunks.
  if (!line.starts_with('{')) return;
  const Moment at = now();
  const model::Json event = model::parse_json(line).value;
  const model::Json* object = model::find(event, {"object"});
  if (!object) return;
  const std::string name(model::name_of(*object));
  const std::lock_guard lock(mutex_);
  if (model::text_at(event, {"type"}) == "DELETED") {
    claims_.erase(name);
    if (claims_.empty()) emptied_.notify_all();
  } else {
    ReadyClaim& claim = claims_[name];
    if (claim.version != 0 || !model::is_condition_true(*object, "Ready")) return;
    claim.at = at;
    claim.version = version_of(*object);
    claim.is_warm = model::text_at(*object, {"status", "sandbox", "name"}) != name;
    wake(name);
  }
}

ReadyClaim ClaimWatch::wait_ready(const std::string& name) {
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] {
    const auto found = claims_.find(name);
    return !failure_.empty() || (found != claims_.end() && found->second.version != 0);
  };
  std::condition_variable ready;
  waiters_[name] = &ready;
  const bool is_in_time = ready.wait_for(lock, kReadyPatience, is_ready);
  waiters_.erase(name);
  if (!is_in_time) fail(Code::timeout, "claim '{}' is not Ready", name);
  if (!failure_.empty()) fail(Code::unavailable, "the watch has ended: {}", failure_);
  return claims_.find(name)->second;
}

void ClaimWatch::wait_empty() {
  std::unique_lock lock(mutex_);
  if (!emptied_.wait_for(lock, kReadyPatience,
                         [&] { return !failure_.empty() || claims_.empty(); }))
    fail(Code::timeout, "{} claims do not go", claims_.size());
}

Claimer::Claimer(const ApiAddress& address, ClaimWatch& watch)
    : address_(address), watch_(watch), client_(address.connect()) {
  client_.ask(address_.request("GET", "/api/v1/namespaces/default"));
}

void Claimer::send_claim() {
  sent_name_ = "claim-" + new_name();
  const std::string request = address_.request("POST", claims_target(), claim_body(sent_name_));
  sent_at_ = now();
  client_.send(request);
}

Claimer::Claimed Claimer::await_claim() {
  Claimed claimed{.name = sent_name_, .us = 0, .ready = watch_.wait_ready(sent_name_)};
  claimed.us = us_between(sent_at_, claimed.ready.at);
  return claimed;
}

Claimer::Claimed Claimer::claim() {
  send_claim();
  answered();
  return await_claim();
}

void Claimer::unclaim(const std::string& name) {
  client_.ask(address_.request("DELETE", claims_target(name)));
}

double Claimer::answered() {
  client_.answer();
  return us_between(sent_at_, now());
}

void Claimer::send_write() {
  const std::string body = fmt::format(
      R"({{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{{"name":"{}",)"
      R"("namespace":"default"}},"spec":{{"holderIdentity":"{}"}}}})",
      new_name(), kBenchPool);
  const std::string request =
      address_.request("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", body);
  sent_at_ = now();
  client_.send(request);
}

double Claimer::write() {
  send_write();
  return answered();
}

std::uint64_t Claimer::revision() {
  const std::string_view list = client_.ask(address_.request("GET", claims_target() + "?limit=1"));
  return version_of(model::parse_json(list).value);
}

double Claimer::write_synced() {
  const std::string request =
      address_.request("POST", target_of("default"), config_map("default", new_name(), ""));
  sent_at_ = now();
  client_.send(request);
  return answered();
}

void read_answers(std::deque<Claimer>& claimers, unsigned count,
                  const std::function<void(unsigned index)>& answered) {
  const linux::Fd poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll) throw_errno("wait for answers");
  for (unsigned i = 0; i < count; ++i) {
    epoll_event wanted{.events = EPOLLIN | EPOLLONESHOT, .data = {.u32 = i}};
    if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, claimers[i].readable(), &wanted) < 0)
      throw_errno("wait for an answer");
  }
  std::array<epoll_event, 64> events{};
  for (unsigned left = count; left > 0;) {
    check_interrupts();
    const int ready = ::epoll_wait(poll.get(), events.data(), events.size(), kAnswerPatienceMs);
    if (ready == 0) fail(Code::timeout, "{} of {} requests are not answered", left, count);
    for (int i = 0; i < ready; ++i, --left)
      answered(events.at(static_cast<std::size_t>(i)).data.u32);
  }
}

void all_at_once(unsigned count, const std::function<void(unsigned index)>& act) {
  std::barrier gate(static_cast<std::ptrdiff_t>(count));
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        name_thread("claimer");
        gate.arrive_and_wait();
        try {
          act(i);
        } catch (const Error&) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
  check_interrupts();
}

BenchPool::BenchPool(const ApiAddress& address, const std::string& image, For whom)
    : address_(address), client_(address.connect()) {
  const bool is_e2b = whom == For::e2b;
  client_.ask(address_.request(
      "POST", fmt::format("{}sandboxtemplates", kExtensions),
      fmt::format(
          R"({{"kind":"SandboxTemplate","apiVersion":"extensions.agents.x-k8s.io/v1beta1",)"
          R"("metadata":{{"name":"{}"}},"spec":{{"podTemplate":{{"metadata":{{"annotations":{{{}}}}},)"
          R"("spec":{{"containers":[{{"name":"main","image":"{}",)"
          R"("imagePullPolicy":"Never"{}}}]}}}}}}}})",
          kBenchPool, is_e2b ? R"("hearth.dev/surfaces":"envd")" : "", image,
          is_e2b ? "" : R"(,"command":["/noop","stay"])")));
  client_.ask(address_.request(
      "POST", fmt::format("{}sandboxwarmpools", kExtensions),
      fmt::format(R"({{"kind":"SandboxWarmPool","apiVersion":"extensions.agents.x-k8s.io/v1beta1",)"
                  R"("metadata":{{"name":"{0}","annotations":{{{1}}}}},"spec":{{"replicas":0,)"
                  R"("sandboxTemplateRef":{{"name":"{0}"}}}}}})",
                  kBenchPool, is_e2b ? R"("hearth.dev/sandbox-names":"id")" : "")));
}

void BenchPool::set_size(unsigned count) {
  size_ = count;
  client_.ask(address_.request("PATCH",
                               fmt::format("{}sandboxwarmpools/{}", kExtensions, kBenchPool),
                               fmt::format(R"({{"spec":{{"replicas":{}}}}})", count)));
  wait_full();
}

unsigned BenchPool::ready() {
  const auto pool =
      model::parse_json(client_.ask(address_.request(
                            "GET", fmt::format("{}sandboxwarmpools/{}", kExtensions, kBenchPool))))
          .value;
  return static_cast<unsigned>(model::number_at(pool, {"status", "readyReplicas"}).value_or(0));
}

void BenchPool::wait_full() {
  const Moment begin = now();
  while (ready() < size_) {
    check_interrupts();
    if (now() - begin > kFillPatience)
      fail(Code::timeout, "{} of {} warm sandboxes are Ready", ready(), size_);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace hearth::bench
