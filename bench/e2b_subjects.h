// Who takes part in the page `e2b`, and how each makes a sandbox and runs its first command.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/claim_client.h"
#include "bench/crowd.h"
#include "bench/hearth_up.h"
#include "bench/process.h"
#include "bench/subject.h"

namespace hearth::bench {

// A server of ours in a process of its own (server_main.cc), gone with this object.
class ServerProcess {
 public:
  explicit ServerProcess(const std::vector<std::string>& arguments);

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return child_->pid(); }

 private:
  std::optional<Child> child_;
  std::uint16_t port_ = 0;
};

// An engine with a template and a pool of the benchmark's own.
class E2bEngine {
 public:
  E2bEngine();

  std::uint16_t port() const { return up_.e2b_port(); }
  const std::string& key() const { return key_; }
  pid_t pid() const { return up_.pid(); }

  // Waits until as many are ready, and nothing else is there.
  void set_pool(unsigned count);
  void wait_settled();

 private:
  bool is_settled();

  HearthUp up_;
  std::string key_;
  BenchPool pool_;
  SurfaceClient api_;
  unsigned size_ = 0;
};

// Something that is done so many times at once: microseconds of each.
class Starts {
 public:
  Starts() = default;
  Starts(const Starts&) = delete;
  Starts& operator=(const Starts&) = delete;
  virtual ~Starts() = default;

  virtual std::vector<double> start(unsigned count) = 0;
  // Ends what was started, until it is gone.
  virtual void clear() {}
};

// POST /sandboxes on kept connections.
class RawCreates final : public Starts {
 public:
  RawCreates(E2bEngine& engine, unsigned most);

  std::vector<double> start(unsigned count) override;
  void clear() override;
  std::size_t answer_bytes() const { return answer_bytes_; }

  static std::string request(const std::string& key);

 private:
  friend class RawFirstExecs;

  E2bEngine& engine_;
  Crowd crowd_;
  std::string request_;
  std::vector<std::string> made_;
  std::size_t answer_bytes_ = 0;
};

// The same, and then a command through the gateway until its first output.
class RawFirstExecs final : public Starts {
 public:
  RawFirstExecs(E2bEngine& engine, unsigned most) : creates_(engine, most) {}

  std::vector<double> start(unsigned count) override;
  void clear() override { creates_.clear(); }
  std::size_t answer_bytes() const { return creates_.answer_bytes(); }

 private:
  RawCreates creates_;
};

// The request of RawCreates to a server that answers as many bytes and does nothing.
class EchoStarts final : public Starts {
 public:
  EchoStarts(const std::string& key, std::size_t answer_bytes, unsigned most);

  std::vector<double> start(unsigned count) override;

 private:
  ServerProcess server_;
  Crowd crowd_;
  std::string request_;
};

// Create and first command at their least (floor.h), one by one: one thread serves it.
class FloorStarts final : public Starts {
 public:
  FloorStarts(const std::string& key, std::size_t answer_bytes);

  std::vector<double> start(unsigned count) override;

 private:
  ServerProcess server_;
  Crowd crowd_;
  std::string create_;
  std::string command_;
};

// Commands that make a container and run the program in it, until its first output.
class CommandStarts final : public Starts {
 public:
  explicit CommandStarts(std::unique_ptr<Subject> subject) : subject_(std::move(subject)) {}

  std::vector<double> start(unsigned count) override;

 private:
  std::unique_ptr<Subject> subject_;
};

// E2B's own packages, in a process that is asked again and again.
class SdkStarts final : public Starts {
 public:
  SdkStarts(E2bEngine& engine, const std::vector<std::string>& program);

  std::vector<double> start(unsigned count) override;
  void clear() override;

 private:
  std::string ask(unsigned count);

  E2bEngine& engine_;
  linux::Fd input_;
  linux::Fd output_;
  std::optional<Child> child_;
};
// Throw Error(not_found), with what to install, when the package is not there.
std::unique_ptr<Starts> make_js_sdk(E2bEngine& engine);
std::unique_ptr<Starts> make_py_sdk(E2bEngine& engine);

}  // namespace hearth::bench
