// The runtime for many threads at once: a connection for each call that is under way.
//
// A RuntimeClient holds one conversation at a time. Connections are kept for the next caller; one
// on which a call failed for want of a runtime is not, so that a runtime that was started again is
// as good as the one before.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "runtime/client.h"
#include "runtime/runtime.h"

namespace hearth::node {

class RuntimePool final : public runtime::Runtime {
 public:
  explicit RuntimePool(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  Created create(const runtime::SandboxSpec& spec) override;
  linux::Channel connect(const std::string& id) override;
  void destroy(const std::string& id) override;
  runtime::Sandbox get(const std::string& id) override;
  std::vector<runtime::Sandbox> list() override;
  void pause(const std::string& id) override;
  void resume(const std::string& id) override;
  void configure(const std::string& id, const runtime::Belongings& belongings) override;
  void replace_files(const std::string& id, const runtime::MountSpec& tree) override;
  void keep_log(const std::string& id) override;
  std::vector<runtime::LogFile> open_log(const std::string& id) override;
  void set_policy(const std::string& id, const network::Policy& policy) override;
  image::Image commit(const std::string& id, const std::string& name) override;
  std::vector<runtime::Sandbox> fork(const std::string& id, unsigned count) override;
  std::vector<image::Image> list_images() override;
  bool remove_image(const std::string& name) override;
  void create_volume(const std::string& name, std::uint64_t bytes) override;
  std::vector<runtime::Volume> list_volumes() override;
  void remove_volume(const std::string& name) override;

 private:
  using Client = std::unique_ptr<runtime::RuntimeClient>;

  template <typename F>
  decltype(auto) with(F&& call);
  Client borrow();
  void give_back(Client client);

  const std::string state_dir_;
  Guarded<std::vector<Client>> idle_;
};

}  // namespace hearth::node
