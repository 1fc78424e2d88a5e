// A real server on a store of its own, for tests of this room and of those above.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "apiserver/server.h"
#include "base/clock.h"
#include "base/id.h"
#include "model/json.h"
#include "model/status.h"

namespace hearth::apiserver {

inline model::Json json(std::string_view text) {
  return model::parse_json(text).value;
}

// What `act` is refused with.
template <typename F>
model::Status refusal(F act) {
  try {
    act();
  } catch (const model::StatusError& error) {
    return error.status();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

// Waits for what another thread brings about; false after a minute, which only a machine that is
// very busy comes near.
inline bool eventually(const std::function<bool()>& is_so) {
  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  while (!is_so()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class TestServer {
 public:
  TestServer() {
    std::filesystem::create_directories(folder_);
    open();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Another server on what the last one left.
  void reopen() {
    server_.reset();
    open();
  }
  Server* operator->() { return server_.get(); }
  client::Client& client() { return server_->client(); }

 private:
  void open() {
    ServerOptions options;
    options.state_dir = folder_;
    options.io_threads = 1;
    options.workers = 2;
    server_ = std::make_unique<Server>(std::move(options));
  }

  const std::string folder_ =
      std::filesystem::temp_directory_path() / ("apiserver-" + random_hex(6));
  std::unique_ptr<Server> server_;
};

}  // namespace hearth::apiserver
