// A sandbox of ours that lives on, and what is the same for all of them.
#pragma once

#include <string>
#include <vector>

#include "bench/workshop.h"
#include "guest/client.h"
#include "runtime/client.h"

namespace hearth::bench {

// Of the same root folder that the peers have, with a loopback link and no other.
inline runtime::SandboxSpec bench_spec() {
  runtime::SandboxSpec spec;
  spec.image = kImage;
  return spec;
}

inline guest::ExecRequest request_of(std::vector<std::string> command) {
  guest::ExecRequest request;
  request.command = std::move(command);
  request.directory = "/";
  return request;
}

inline void check_end(const guest::Exited& exited) {
  if (exited.status == linux::ExitStatus{}) return;
  fail(Code::internal, "the program ended with code {}, signal {}", exited.status.code,
       exited.status.signal);
}

class HearthSandbox {
 public:
  explicit HearthSandbox(const Engine& engine)
      : client_(engine.state_dir()),
        created_(client_.create(bench_spec())),
        guest_(std::move(created_.guest)) {}
  HearthSandbox(const HearthSandbox&) = delete;
  HearthSandbox& operator=(const HearthSandbox&) = delete;
  ~HearthSandbox() {
    try {
      client_.destroy(id());
    } catch (const Error&) {
      // The engine destroys everything when it ends.
    }
  }

  runtime::RuntimeClient& client() { return client_; }
  guest::Connection& guest() { return guest_; }
  const std::string& id() const { return created_.sandbox.id; }

 private:
  runtime::RuntimeClient client_;
  runtime::Runtime::Created created_;
  guest::Connection guest_;
};

}  // namespace hearth::bench
