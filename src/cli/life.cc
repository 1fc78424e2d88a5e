#include "cli/life.h"

#include <cstdio>

#include "cli/command.h"
#include "cli/image_names.h"
#include "guest/client.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

// Does it to each, goes on after what fails, and names what was done.
template <typename F>
int for_each(const std::string& verb, const std::vector<std::string>& names, F&& act) {
  int exit_code = 0;
  for (const std::string& name : names) {
    try {
      act(name);
      std::puts(name.c_str());
    } catch (const Error& error) {
      complain(verb, error.what());
      exit_code = kExitFailure;
    }
  }
  return exit_code;
}

}  // namespace

int pause(const PauseOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  return for_each("pause", options.ids, [&](const std::string& id) { client.pause(id); });
}

int resume(const ResumeOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  return for_each("resume", options.ids, [&](const std::string& id) { client.resume(id); });
}

int stop(const StopOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  return for_each("stop", options.ids, [&](const std::string& id) {
    guest::Connection(client.connect(id)).stop(options.grace);
  });
}

int commit(const CommitOptions& options) {
  const std::string name = full_image_name(options.name);
  runtime::RuntimeClient client(options.state_dir);
  std::puts(client.commit(options.id, name).id.c_str());
  return 0;
}

int fork(const ForkOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  for (const runtime::Sandbox& sandbox : client.fork(options.id, options.count))
    std::puts(sandbox.id.c_str());
  return 0;
}

int set_policy(const PolicyOptions& options) {
  runtime::RuntimeClient(options.state_dir).set_policy(options.id, options.policy);
  std::puts(options.id.c_str());
  return 0;
}

int create_volume(const VolumeCreateOptions& options) {
  runtime::RuntimeClient(options.state_dir).create_volume(options.name, options.bytes);
  std::puts(options.name.c_str());
  return 0;
}

int remove_volumes(const VolumeRmOptions& options) {
  runtime::RuntimeClient client(options.state_dir);
  return for_each("volume", options.names,
                  [&](const std::string& name) { client.remove_volume(name); });
}

}  // namespace hearth::cli
