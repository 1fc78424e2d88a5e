// The messages of process.Process. Each names its fields once: number, JSON name, member.
// Members of a oneof are optionals, of which one is set.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "envd/codec.h"

namespace hearth::envd {

struct Empty {
  static void fields(auto&, auto&) {}
};

struct PtySize {
  std::uint32_t cols = 0;
  std::uint32_t rows = 0;
  static void fields(auto& self, auto& visit) {
    visit(1, "cols", self.cols);
    visit(2, "rows", self.rows);
  }
};

struct Pty {
  std::optional<PtySize> size;
  static void fields(auto& self, auto& visit) { visit(1, "size", self.size); }
};

struct ProcessConfig {
  std::string cmd;
  std::vector<std::string> args;
  std::map<std::string, std::string> envs;
  std::optional<std::string> cwd;
  static void fields(auto& self, auto& visit) {
    visit(1, "cmd", self.cmd);
    visit(2, "args", self.args);
    visit(3, "envs", self.envs);
    visit(4, "cwd", self.cwd);
  }
};

struct ProcessInfo {
  std::optional<ProcessConfig> config;
  std::uint32_t pid = 0;
  std::optional<std::string> tag;
  static void fields(auto& self, auto& visit) {
    visit(1, "config", self.config);
    visit(2, "pid", self.pid);
    visit(3, "tag", self.tag);
  }
};

struct ListResponse {
  std::vector<ProcessInfo> processes;
  static void fields(auto& self, auto& visit) { visit(1, "processes", self.processes); }
};

struct StartRequest {
  std::optional<ProcessConfig> process;
  std::optional<Pty> pty;
  std::optional<std::string> tag;
  std::optional<bool> stdin_wanted;
  static void fields(auto& self, auto& visit) {
    visit(1, "process", self.process);
    visit(2, "pty", self.pty);
    visit(3, "tag", self.tag);
    visit(4, "stdin", self.stdin_wanted);
  }
};

struct StartEvent {
  std::uint32_t pid = 0;
  static void fields(auto& self, auto& visit) { visit(1, "pid", self.pid); }
};

struct DataEvent {
  std::optional<Bytes> out;
  std::optional<Bytes> err;
  std::optional<Bytes> pty;
  static void fields(auto& self, auto& visit) {
    visit(1, "stdout", self.out);
    visit(2, "stderr", self.err);
    visit(3, "pty", self.pty);
  }
};

struct EndEvent {
  Sint32 exit_code;
  bool exited = false;
  std::string status;
  std::optional<std::string> error;
  static void fields(auto& self, auto& visit) {
    visit(1, "exitCode", self.exit_code);
    visit(2, "exited", self.exited);
    visit(3, "status", self.status);
    visit(4, "error", self.error);
  }
};

struct ProcessEvent {
  std::optional<StartEvent> start;
  std::optional<DataEvent> data;
  std::optional<EndEvent> end;
  std::optional<Empty> keepalive;
  static void fields(auto& self, auto& visit) {
    visit(1, "start", self.start);
    visit(2, "data", self.data);
    visit(3, "end", self.end);
    visit(4, "keepalive", self.keepalive);
  }
};

// StartResponse and ConnectResponse.
struct ProcessResponse {
  std::optional<ProcessEvent> event;
  static void fields(auto& self, auto& visit) { visit(1, "event", self.event); }
};

}  // namespace hearth::envd
