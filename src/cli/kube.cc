#include "cli/kube.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "apiserver/server.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/endpoints.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "linux/fd.h"
#include "store/store.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) < 0 && errno != EEXIST) throw_errno("make folder '{}'", path);
}

void say(const std::string& line) {
  std::fputs((line + '\n').c_str(), stdout);
  std::fflush(stdout);
}

// Where the objects are, of an engine (`hearth up`) or of an API server alone.
std::string find_objects(const std::string& state_dir) {
  const std::string of_engine = state_dir + "/" + kEngineFolder + "/kube/objects.db";
  return fs::exists(of_engine) ? of_engine : state_dir + "/kube/objects.db";
}

bool is_served(const std::string& state_dir) {
  try {
    const store::Store store(store::Options{.path = find_objects(state_dir)});
    return false;
  } catch (const Error& error) {
    if (error.code() == Code::conflict) return true;
    throw;
  }
}

}  // namespace

int apiserver(const ApiServerOptions& options) {
  log::configure(log::parse_level(options.log_level), log::parse_format(options.log_format));
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  make_folder(options.state_dir);
  apiserver::ServerOptions server_options;
  server_options.state_dir = options.state_dir;
  server_options.address = options.listen;
  server_options.port = options.kube_port;
  server_options.admin_token = options.token;
  apiserver::Server server(std::move(server_options));
  server.start();
  say(fmt::format("ready kube={} state-dir={}", server.url(), options.state_dir));
  say(fmt::format("export KUBECONFIG={}", server.kubeconfig_path()));
  while (!signals.next()) {
    pollfd waiting{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, -1) < 0 && errno != EINTR) throw_errno("wait for signals");
  }
  server.stop();
  return 0;
}

int kubectl(const KubectlOptions& options) {
  const std::string config = options.state_dir + "/" + kKubeconfigFile;
  if (::access(config.c_str(), R_OK) < 0)
    fail(Code::unavailable,
         "there is no kubeconfig '{}' that we may read: is an engine running? ('hearth up')",
         config);
  std::vector<char*> words = {const_cast<char*>("kubectl")};
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (::setenv("KUBECONFIG", config.c_str(), 1) < 0) throw_errno("set KUBECONFIG");
  ::execvp("kubectl", words.data());
  if (errno == ENOENT)
    fail(Code::not_found,
         "there is no kubectl on this machine: 'apt-get install kubernetes-client' brings one, and "
         "so does "
         "https://kubernetes.io/docs/tasks/tools; then KUBECONFIG={} is all that it needs",
         config);
  throw_errno("run kubectl");
}

int backup(const BackupOptions& options) {
  if (fs::exists(options.file)) fail(Code::already_exists, "'{}' is there already", options.file);
  const std::string objects = find_objects(options.state_dir);
  if (!fs::exists(objects))
    fail(Code::not_found, "there are no objects in '{}'", options.state_dir);
  const mode_t old_mask = ::umask(S_IRWXG | S_IRWXO);
  if (is_served(options.state_dir))
    fail(Code::conflict, "the engine of '{}' is running: end it first", options.state_dir);
  store::Store(store::Options{.path = objects}).backup(options.file);
  ::umask(old_mask);
  say(fmt::format("wrote {} ({} bytes)", options.file, fs::file_size(options.file)));
  return 0;
}

int restore(const RestoreOptions& options) {
  const std::string objects = find_objects(options.state_dir);
  if (fs::exists(objects) && is_served(options.state_dir))
    fail(Code::conflict, "the engine of '{}' is running: end it first", options.state_dir);
  fs::create_directories(fs::path(objects).parent_path());
  if (options.replace && fs::exists(objects)) {
    for (const char* suffix : {"", "-wal", "-shm", "-mark"}) {
      std::error_code ignored;
      fs::rename(objects + suffix, objects + ".before-restore" + suffix, ignored);
    }
  }
  store::restore(options.file, objects);
  say(fmt::format("restored {}", objects));
  return 0;
}

}  // namespace hearth::cli
