// A runtime that has volumes and hears of policies, and nothing else, for tests.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/runtime.h"

namespace hearth::node {

class FakeRuntime : public runtime::Runtime {
 public:
  std::map<std::string, std::uint64_t> volumes;  // with their sizes
  std::set<std::string> used;
  bool has_sizes = true;
  std::uint64_t most_bytes = std::uint64_t{1} << 40;
  std::function<void(const std::string& id, const network::Policy& policy)> on_policy;

  void create_volume(const std::string& name, std::uint64_t bytes) override {
    if (bytes > most_bytes) fail(Code::invalid, "{} bytes are too many", bytes);
    if (bytes != 0 && !has_sizes) fail(Code::unavailable, "no loop devices");
    if (!volumes.emplace(name, bytes).second) fail(Code::already_exists, "'{}' is there", name);
  }
  void remove_volume(const std::string& name) override {
    if (used.contains(name)) fail(Code::conflict, "'{}' is used", name);
    if (volumes.erase(name) == 0) fail(Code::not_found, "there is no '{}'", name);
  }
  std::vector<runtime::Volume> list_volumes() override { return {}; }

  Created create(const runtime::SandboxSpec&) override { refuse(); }
  linux::Channel connect(const std::string&) override { refuse(); }
  void destroy(const std::string&) override { refuse(); }
  runtime::Sandbox get(const std::string&) override { refuse(); }
  std::vector<runtime::Sandbox> list() override { return {}; }
  void pause(const std::string&) override { refuse(); }
  void resume(const std::string&) override { refuse(); }
  void configure(const std::string&, const runtime::Belongings&) override { refuse(); }
  void replace_files(const std::string&, const runtime::MountSpec&) override { refuse(); }
  void keep_log(const std::string&) override { refuse(); }
  std::vector<runtime::LogFile> open_log(const std::string&) override { refuse(); }
  void set_policy(const std::string& id, const network::Policy& policy) override {
    if (!on_policy) refuse();
    on_policy(id, policy);
  }
  image::Image commit(const std::string&, const std::string&) override { refuse(); }
  std::vector<runtime::Sandbox> fork(const std::string&, unsigned) override { refuse(); }
  std::vector<image::Image> list_images() override { return {}; }
  bool remove_image(const std::string&) override { return false; }

 protected:
  [[noreturn]] static void refuse() { fail(Code::unavailable, "there is no sandbox here"); }
};

}  // namespace hearth::node
