// What the tests of this room share: a backend that is made of pipes and socket pairs, and a server
// that serves it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "linux/fd.h"
#include "model/json.h"
#include "model/status.h"
#include "net/connect.h"
#include "net/server.h"
#include "net/websocket.h"
#include "net/workers.h"
#include "remote/backend.h"

namespace hearth::remote {

inline constexpr std::string_view kPod = R"({
  "metadata": {"name": "p1", "uid": "u1"},
  "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
  "status": {"containerStatuses": [
    {"name": "main", "containerID": "hearth://sb1", "state": {"running": {}}}]}})";
inline constexpr std::string_view kTwo = R"({
  "metadata": {"name": "p1"},
  "spec": {"nodeName": "n", "containers": [{"name": "main"}, {"name": "side"}]}})";
inline constexpr std::string_view kWithoutImage = R"({
  "metadata": {"name": "p1"}, "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
  "status": {"containerStatuses": [
    {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}})";
inline constexpr std::string_view kHomeless = R"({
  "metadata": {"name": "p1"}, "spec": {"containers": [{"name": "main"}]}})";

inline constexpr char kExec[] =
    "/exec?command=sh&command=-c&container=main&stdin=1&stdout=true&stderr=True";

// The command's side of what the backend handed out.
struct Inside {
  std::vector<std::string> command;
  Streams streams;
  linux::Fd input;
  linux::Fd output;
  linux::Fd error;
  linux::Fd life;  // one byte: the exit code; reads its end when the command is to be killed

  std::string read_input(std::size_t count) const {
    std::string all;
    char byte = 0;
    while (all.size() < count && ::read(input.get(), &byte, 1) == 1) all += byte;
    return all;
  }
  void exit(int code) const {
    linux::write_all(life.get(), std::string(1, static_cast<char>(code)));
  }
  // Whether nobody holds the other end any more; waits for it.
  bool is_killed() const {
    char byte = 0;
    return ::read(life.get(), &byte, 1) == 0;
  }
};

// Each command is a function that runs on a thread of its own.
class FakeBackend final : public Backend {
 public:
  FakeBackend() = default;
  FakeBackend(const FakeBackend&) = delete;
  FakeBackend& operator=(const FakeBackend&) = delete;
  ~FakeBackend() override;

  net::Workers* workers() override { return &workers_; }
  Command start(const Container& container, const std::vector<std::string>& command,
                const Streams& streams) override;
  Command attach(const Container& container, const Streams& streams) override;
  linux::Fd connect(const Container& container, std::uint16_t port) override;
  std::unique_ptr<LogFeed> open_log(const Container& container, const LogOptions& options) override;

  std::function<void(const Inside&)> behaviour;
  std::function<void(std::uint16_t, linux::Fd&)> target;
  std::string log_text;
  LogOptions log_options;
  linux::Fd log_writer;

 private:
  void run(Command& handed, Inside inside);

  net::Workers workers_{2};
  std::vector<std::thread> threads_;
};

class RemoteTest : public testing::Test {
 public:
  RemoteTest();

  // Runs a client to its end.
  void run(boost::asio::awaitable<void> work);
  net::Endpoint endpoint() const { return {.port = server_->port()}; }
  net::Response get(const std::string& target) const;

  boost::asio::io_context io_;  // of the clients, which must not outlive it
  model::Json pod_ = model::parse_json(kPod).value;
  FakeBackend backend_;
  model::Status refused_;
  std::optional<net::Server> server_;

 private:
  boost::asio::awaitable<void> serve(net::Request request, net::Stream& stream);
};

// What a client saw, by channel.
struct Seen {
  std::map<int, std::string> channels;
  std::optional<std::uint16_t> close_code;
};

using Talk = std::function<boost::asio::awaitable<void>(net::WebSocket&)>;

// Opens a WebSocket, lets `begin` speak, and listens to the end.
boost::asio::awaitable<void> talk(net::Endpoint endpoint, std::string target, std::string protocol,
                                  Talk begin, Seen& seen);
boost::asio::awaitable<void> send_bytes(net::WebSocket& socket, std::string bytes);

}  // namespace hearth::remote
