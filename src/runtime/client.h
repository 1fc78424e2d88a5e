// The runtime as seen from every other process: one connection to hearth-runtime.
#pragma once

#include <mutex>
#include <span>
#include <string>

#include "linux/channel.h"
#include "runtime/protocol.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

class RuntimeClient final : public Runtime {
 public:
  // Throws Error(unavailable) when no runtime serves the state folder, forbidden when it is not
  // ours to use.
  explicit RuntimeClient(const std::string& state_dir);

  Created create(const SandboxSpec& spec) override;
  linux::Channel connect(const std::string& id) override;
  void destroy(const std::string& id) override;
  Sandbox get(const std::string& id) override;
  std::vector<Sandbox> list() override;
  void pause(const std::string& id) override;
  void resume(const std::string& id) override;
  void configure(const std::string& id, const Belongings& belongings) override;
  void replace_files(const std::string& id, const MountSpec& tree) override;
  void keep_log(const std::string& id) override;
  std::vector<LogFile> open_log(const std::string& id) override;
  void set_policy(const std::string& id, const network::Policy& policy) override;
  image::Image commit(const std::string& id, const std::string& name) override;
  std::vector<Sandbox> fork(const std::string& id, unsigned count) override;
  std::vector<image::Image> list_images() override;
  bool remove_image(const std::string& name) override;
  void create_volume(const std::string& name, std::uint64_t bytes) override;
  std::vector<Volume> list_volumes() override;
  void remove_volume(const std::string& name) override;

  // New images, layer by layer: see image::Store. What is added over one connection stays until it
  // closes, or an image names it. A folder is read with root's rights, hence only for root.
  bool has_layer(const std::string& diff_id);
  std::string add_layer(int blob_fd, const image::LayerBlob& blob);
  std::string add_folder(int dir_fd);
  void put_image(const image::Image& image);

  Hello hello();

  // Where the addresses of Services lead, and where names are answered (see ServicesRequest).
  // invalid; unavailable without a network.
  void set_services(const std::vector<network::Service>& services, std::uint16_t name_server);

  // Ends the runtime, with all sandboxes or leaving them alive. Returns when it is over.
  void shut_down(bool destroy_all);

  // Readable when the runtime is gone.
  int fd() const { return channel_.fd(); }

 private:
  linux::Message ask(const Request& request, std::span<const int> fds = {});

  std::mutex mutex_;  // one conversation at a time on channel_
  linux::Channel channel_;
};

}  // namespace hearth::runtime
