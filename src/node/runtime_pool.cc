#include "node/runtime_pool.h"

#include <type_traits>
#include <utility>

#include "base/error.h"

namespace hearth::node {

RuntimePool::Client RuntimePool::borrow() {
  Client client = idle_.with([](std::vector<Client>& idle) {
    if (idle.empty()) return Client();
    Client last = std::move(idle.back());
    idle.pop_back();
    return last;
  });
  return client ? std::move(client) : std::make_unique<runtime::RuntimeClient>(state_dir_);
}

void RuntimePool::give_back(Client client) {
  idle_.with([&](std::vector<Client>& idle) { idle.push_back(std::move(client)); });
}

template <typename F>
decltype(auto) RuntimePool::with(F&& call) {
  Client client = borrow();
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F, runtime::RuntimeClient&>>) {
      call(*client);
      give_back(std::move(client));
    } else {
      auto result = call(*client);
      give_back(std::move(client));
      return result;
    }
  } catch (const Error& error) {
    // Perhaps the sandbox is not available, perhaps the runtime: another connection costs little.
    if (client && error.code() != Code::unavailable && error.code() != Code::timeout)
      give_back(std::move(client));
    throw;
  }
}

using runtime::RuntimeClient;

runtime::Runtime::Created RuntimePool::create(const runtime::SandboxSpec& spec) {
  return with([&](RuntimeClient& client) { return client.create(spec); });
}
linux::Channel RuntimePool::connect(const std::string& id) {
  return with([&](RuntimeClient& client) { return client.connect(id); });
}
void RuntimePool::destroy(const std::string& id) {
  with([&](RuntimeClient& client) { client.destroy(id); });
}
runtime::Sandbox RuntimePool::get(const std::string& id) {
  return with([&](RuntimeClient& client) { return client.get(id); });
}
std::vector<runtime::Sandbox> RuntimePool::list() {
  return with([](RuntimeClient& client) { return client.list(); });
}
void RuntimePool::pause(const std::string& id) {
  with([&](RuntimeClient& client) { client.pause(id); });
}
void RuntimePool::resume(const std::string& id) {
  with([&](RuntimeClient& client) { client.resume(id); });
}
void RuntimePool::configure(const std::string& id, const runtime::Belongings& belongings) {
  with([&](RuntimeClient& client) { client.configure(id, belongings); });
}
void RuntimePool::replace_files(const std::string& id, const runtime::MountSpec& tree) {
  with([&](RuntimeClient& client) { client.replace_files(id, tree); });
}
void RuntimePool::keep_log(const std::string& id) {
  with([&](RuntimeClient& client) { client.keep_log(id); });
}
std::vector<runtime::LogFile> RuntimePool::open_log(const std::string& id) {
  return with([&](RuntimeClient& client) { return client.open_log(id); });
}
void RuntimePool::set_policy(const std::string& id, const network::Policy& policy) {
  with([&](RuntimeClient& client) { client.set_policy(id, policy); });
}
image::Image RuntimePool::commit(const std::string& id, const std::string& name) {
  return with([&](RuntimeClient& client) { return client.commit(id, name); });
}
std::vector<runtime::Sandbox> RuntimePool::fork(const std::string& id, unsigned count) {
  return with([&](RuntimeClient& client) { return client.fork(id, count); });
}
std::vector<image::Image> RuntimePool::list_images() {
  return with([](RuntimeClient& client) { return client.list_images(); });
}
bool RuntimePool::remove_image(const std::string& name) {
  return with([&](RuntimeClient& client) { return client.remove_image(name); });
}
void RuntimePool::create_volume(const std::string& name, std::uint64_t bytes) {
  with([&](RuntimeClient& client) { client.create_volume(name, bytes); });
}
std::vector<runtime::Volume> RuntimePool::list_volumes() {
  return with([](RuntimeClient& client) { return client.list_volumes(); });
}
void RuntimePool::remove_volume(const std::string& name) {
  with([&](RuntimeClient& client) { client.remove_volume(name); });
}

}  // namespace hearth::node
