// Sandboxes for tests, whose guests are threads that answer what keepers and front doors ask.
#pragma once

#include <signal.h>
#include <sys/socket.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "guest/protocol.h"
#include "linux/channel.h"
#include "node/fake_runtime_internal.h"

namespace hearth::node {

class FakeSandboxes final : public FakeRuntime {
 public:
  static constexpr std::uint16_t kOpenPort = 80;  // inside; nobody listens on others

  FakeSandboxes() = default;
  FakeSandboxes(const FakeSandboxes&) = delete;
  FakeSandboxes& operator=(const FakeSandboxes&) = delete;
  ~FakeSandboxes() override {
    for (const runtime::Sandbox& sandbox : list()) destroy(sandbox.id);
    guests_.clear();
  }

  // "pause ID" and so on, since the last time.
  std::vector<std::string> take_calls() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }
  runtime::State state_of(const std::string& id) { return get(id).state; }
  network::Policy policy_of(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return policies_.at(id);
  }

  void set_memory(const std::string& id, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    find(id).usage.memory_bytes = bytes;
  }

  Created create(const runtime::SandboxSpec& spec) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back("create " + spec.id);
    runtime::Sandbox sandbox;
    sandbox.id = spec.id;
    sandbox.limits = spec.limits;
    sandbox.address = "10.9.0.2";
    sandbox.usage.cpu_microseconds = 7;
    sandbox.usage.memory_bytes = 8;
    sandbox.usage.disk_bytes = 9;
    if (spec.network) policies_[spec.id] = *spec.network;
    sandboxes_[spec.id] = sandbox;
    return {.sandbox = sandbox, .guest = open_door(spec.id)};
  }
  linux::Channel connect(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back("connect " + id);
    if (find(id).state == runtime::State::paused) fail(Code::unavailable, "'{}' is paused", id);
    return open_door(id);
  }
  void destroy(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back("destroy " + id);
    sandboxes_.erase(id);
    changed_.notify_all();
    for (const auto& guest : guests_)
      if (guest->sandbox == id) ::shutdown(guest->channel.fd(), SHUT_RDWR);
  }
  runtime::Sandbox get(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    return find(id);
  }
  std::vector<runtime::Sandbox> list() override {
    const std::lock_guard lock(mutex_);
    std::vector<runtime::Sandbox> all;
    for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
    return all;
  }
  void pause(const std::string& id) override { set_state("pause ", id, runtime::State::paused); }
  void resume(const std::string& id) override { set_state("resume ", id, runtime::State::running); }
  void keep_log(const std::string&) override {}
  void set_policy(const std::string& id, const network::Policy& policy) override {
    const std::lock_guard lock(mutex_);
    find(id);
    policies_[id] = policy;
  }
  image::Image commit(const std::string& id, const std::string& name) override {
    const std::lock_guard lock(mutex_);
    find(id);
    calls_.push_back("commit " + name);
    return {};
  }

 private:
  struct Guest {
    std::string sandbox;
    linux::Channel channel;
    std::jthread thread;
  };

  runtime::Sandbox& find(const std::string& id) {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end()) fail(Code::not_found, "there is no sandbox '{}'", id);
    return found->second;
  }
  void set_state(std::string_view call, const std::string& id, runtime::State state) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::string(call) + id);
    find(id).state = state;
    changed_.notify_all();
  }

  linux::Channel open_door(const std::string& id) {
    auto [ours, theirs] = linux::Channel::make_pair();
    auto guest = std::make_unique<Guest>();
    guest->sandbox = id;
    guest->channel = std::move(theirs);
    guest->thread = std::jthread([this, &one = *guest] { serve(one); });
    guests_.push_back(std::move(guest));
    return std::move(ours);
  }
  // What stands still does not answer.
  void wait_until_running(const std::string& id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      const auto found = sandboxes_.find(id);
      return found == sandboxes_.end() || found->second.state == runtime::State::running;
    });
  }
  void serve(Guest& guest) {
    try {
      while (const auto message = guest.channel.receive()) {
        wait_until_running(guest.sandbox);
        answer(guest.channel, guest::parse_request(message->bytes));
      }
    } catch (const Error&) {
      // Whoever asked has left.
    }
    ::shutdown(guest.channel.fd(), SHUT_RDWR);
  }
  static void answer(linux::Channel& channel, const guest::Request& request) {
    const auto say = [&](const guest::Reply& reply) { channel.send(encode(reply)); };
    if (std::holds_alternative<guest::ExecRequest>(request)) return say(guest::Started{.pid = 2});
    if (const auto* signal = std::get_if<guest::SignalRequest>(&request))
      return say(guest::Exited{.status = {.signal = static_cast<int>(signal->signal)}});
    if (std::holds_alternative<guest::StopRequest>(request)) return say(guest::Exited{});
    if (std::holds_alternative<guest::FileRequest>(request))
      return say(guest::Failed{Code::not_found, "there is no such file"});
    const auto* wanted = std::get_if<guest::ConnectRequest>(&request);
    if (wanted == nullptr) return;  // EndRequest: it runs
    if (wanted->port != kOpenPort)
      return say(guest::Failed{Code::unavailable, "connection refused: nobody listens"});
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw_errno("make a socket pair");
    const linux::Fd here(ends[0]);
    const linux::Fd there(ends[1]);
    channel.send(encode(guest::Reply(guest::Connected{})), {{there.get()}});
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  std::map<std::string, runtime::Sandbox> sandboxes_;
  std::map<std::string, network::Policy> policies_;
  std::vector<std::unique_ptr<Guest>> guests_;
};

}  // namespace hearth::node
