// For tests of this room: a guest with an interpreter in front of it, as a process of this user.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "guest/core.h"
#include "http/http.h"
#include "serve/testing.h"

namespace hearth::interpreter {

// Ends with this object, and everything that was started in it.
class TestGuest {
 public:
  explicit TestGuest(guest::Settings settings = {});
  TestGuest(const TestGuest&) = delete;
  TestGuest& operator=(const TestGuest&) = delete;
  ~TestGuest();

  std::uint16_t port() const { return port_; }
  serve::TestClient client() const { return serve::TestClient(port_); }
  // On a connection of its own.
  http::Response ask(std::string method, std::string target, std::string body = "") const;
  // Somebody whose cell is under way: the head of what comes of it is here.
  serve::TestClient begin(const std::string& body) const;
  // The sandbox's variables, from now on.
  void set_environment(const std::string& entry) const;

 private:
  std::uint16_t port_ = 0;
  std::uint16_t settings_port_ = 0;
  pid_t process_ = 0;
};

// What an execution gave, kind by kind.
struct Executed {
  unsigned status = 0;
  std::string body;  // as it came
  std::uint32_t count = 0;
  std::string output;
  std::string error_output;
  std::vector<std::string> results;  // JSON objects
  std::string error;                 // JSON object; empty: none
  std::vector<std::string> kinds;    // of all events, in order

  // A key's value in the error, or in a result: text as it is, anything else as JSON.
  std::string error_field(std::string_view key) const;
  std::string result_field(std::string_view key, std::size_t index = 0) const;
};
Executed read_events(const http::Response& response);

// An /execute request's body.
std::string cell(std::string_view code, std::string_view more = "");

// Cells of Python, in the guest's first context.
class PythonTest : public testing::Test {
 protected:
  void SetUp() override;
  Executed run(std::string_view code) const {
    return read_events(guest_.ask("POST", "/execute", cell(code)));
  }
  std::string text(std::string_view code) const { return run(code).result_field("text"); }

  TestGuest guest_;
};

}  // namespace hearth::interpreter
