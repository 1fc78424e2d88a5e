// A real `hearth up` on a state folder of its own, for pages that measure a whole engine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/claim_client.h"
#include "bench/process.h"

namespace hearth::bench {

class HearthUp {
 public:
  // `options` are its command line's, besides ports and the state folder. Needs root. Throws Error:
  // not_found when it is not built, unavailable when it does not start.
  explicit HearthUp(const std::vector<std::string>& options);
  HearthUp(const HearthUp&) = delete;
  HearthUp& operator=(const HearthUp&) = delete;
  // Ends it as Ctrl-C does, with every sandbox. Leaves nothing behind.
  ~HearthUp();

  ApiAddress kube() const { return {kube_port_, token_}; }
  // Of E2B's API and the gateway; 0: it has none.
  std::uint16_t e2b_port() const { return e2b_port_; }
  std::string e2b_key() const;
  pid_t pid() const { return child_->pid(); }

 private:
  void start(const std::vector<std::string>& options);
  void make_image() const;
  void end();
  std::string state_dir() const { return folder_ + "/state"; }

  const std::string bin_;
  const std::string folder_;
  std::optional<Child> child_;
  linux::Fd output_;  // what it says later goes nowhere, and must not end it
  std::uint16_t kube_port_ = 0;
  std::uint16_t e2b_port_ = 0;
  std::string token_;
};

}  // namespace hearth::bench
