#include "guest/testing.h"

#include <fcntl.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include <fmt/format.h>

#include "guest/server.h"
#include "guest/spawner.h"

namespace hearth::guest {
namespace {

Settings as_this_user(Settings settings) {
  settings.user = fmt::format("{}:{}", ::geteuid(), ::getegid());
  return settings;
}

// A socket that nobody connects to: the tests come through the core.
linux::Fd make_unused_door() {
  std::string path = "/tmp/hearth-test-guest-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) throw_errno("make a folder in /tmp");
  const linux::Fd folder = linux::open_file(path, O_RDONLY | O_DIRECTORY);
  linux::Fd door = linux::listen_at(folder.get(), "guest.sock");
  ::unlinkat(folder.get(), "guest.sock", 0);
  ::rmdir(path.c_str());
  return door;
}

}  // namespace

class TestGuest::State {
 public:
  explicit State(Settings settings) : core_(as_this_user(std::move(settings))), spawner_({}) {
    linux::Channel theirs;
    std::tie(life_, theirs) = linux::Channel::make_pair();
    ServerOptions options;
    options.listen = make_unused_door();
    options.boot = std::move(theirs);
    server_ = std::make_unique<Server>(std::move(options), core_, spawner_);
    thread_ = std::thread([this] { server_->run(); });
    life_.receive();  // it runs, and says so
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    life_ = linux::Channel();  // nobody told it to stay
    thread_.join();
  }

  Core& core() { return core_; }

 private:
  Core core_;
  Spawner spawner_;
  linux::Channel life_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TestGuest::TestGuest(Settings settings) : state_(std::make_unique<State>(std::move(settings))) {}

TestGuest::~TestGuest() = default;

Core& TestGuest::core() {
  return state_->core();
}

}  // namespace hearth::guest
