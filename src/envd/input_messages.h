// The messages of process.Process that name a process and do something to it.
#pragma once

#include "envd/process_messages.h"

namespace hearth::envd {

struct ProcessSelector {
  std::optional<std::uint32_t> pid;
  std::optional<std::string> tag;
  static void fields(auto& self, auto& visit) {
    visit(1, "pid", self.pid);
    visit(2, "tag", self.tag);
  }
};

// ConnectRequest and CloseStdinRequest, and the start of a StreamInput.
struct SelectRequest {
  std::optional<ProcessSelector> process;
  static void fields(auto& self, auto& visit) { visit(1, "process", self.process); }
};

struct UpdateRequest {
  std::optional<ProcessSelector> process;
  std::optional<Pty> pty;
  static void fields(auto& self, auto& visit) {
    visit(1, "process", self.process);
    visit(2, "pty", self.pty);
  }
};

struct ProcessInput {
  std::optional<Bytes> in;
  std::optional<Bytes> pty;
  static void fields(auto& self, auto& visit) {
    visit(1, "stdin", self.in);
    visit(2, "pty", self.pty);
  }
};

struct SendInputRequest {
  std::optional<ProcessSelector> process;
  std::optional<ProcessInput> input;
  static void fields(auto& self, auto& visit) {
    visit(1, "process", self.process);
    visit(2, "input", self.input);
  }
};

struct StreamInputData {
  std::optional<ProcessInput> input;
  static void fields(auto& self, auto& visit) { visit(2, "input", self.input); }
};

struct StreamInputRequest {
  std::optional<SelectRequest> start;
  std::optional<StreamInputData> data;
  std::optional<Empty> keepalive;
  static void fields(auto& self, auto& visit) {
    visit(1, "start", self.start);
    visit(2, "data", self.data);
    visit(3, "keepalive", self.keepalive);
  }
};

enum class Signal : std::int32_t { unspecified = 0, kill = 9, terminate = 15 };
template <>
struct EnumNames<Signal> {
  static constexpr std::array<EnumName, 3> all() {
    return {{{0, "SIGNAL_UNSPECIFIED"}, {9, "SIGNAL_SIGKILL"}, {15, "SIGNAL_SIGTERM"}}};
  }
};

struct SendSignalRequest {
  std::optional<ProcessSelector> process;
  Signal signal = Signal::unspecified;
  static void fields(auto& self, auto& visit) {
    visit(1, "process", self.process);
    visit(2, "signal", self.signal);
  }
};

}  // namespace hearth::envd
