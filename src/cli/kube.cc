#include "cli/kube.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/endpoints.h"
#include "cli/environment.h"
#include "cli/kube_endpoint.h"
#include "cli/listening.h"
#include "cli/signals.h"
#include "cli/state_folder.h"

namespace hearth::cli {
namespace {

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void wait_for_signal(Signals& signals) {
  while (!signals.next()) {
    pollfd waiting{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, -1) < 0 && errno != EINTR) throw_errno("wait for signals");
  }
}

}  // namespace

int apiserver(const ApiServerOptions& options) {
  log::configure(log::parse_level(options.log_level), log::parse_format(options.log_format));
  Signals signals({SIGINT, SIGTERM, SIGHUP});
  make_state_folder(options.state_dir);
  const linux::Fd lock = lock_state_folder(options.state_dir);
  const EngineUser self{.uid = ::geteuid(), .gid = ::getegid()};
  // Root serves what is an engine's as that engine's user; a folder of its own as root.
  const EngineUser user =
      ::geteuid() == 0 ? find_engine_owner(options.state_dir).value_or(self) : self;
  claim_state_folder(options.state_dir, user);
  Listening listening = listen_on(options.listen, options.kube_port, "--kube-port");
  if (user.uid != ::geteuid()) give_up_root(user);

  const KubeEndpoint api({.state_dir = options.state_dir,
                          .listening = std::move(listening),
                          .listen = options.listen,
                          .token = options.token,
                          .has_sandboxes = false});
  const Endpoints endpoints{.kube = api.url(), .api = {}, .e2b = {}, .metrics = {}};
  write_endpoints(options.state_dir, endpoints);
  say(fmt::format("ready {} state-dir={}\n", describe(endpoints), options.state_dir));
  say(environment_lines(options.state_dir, endpoints));
  wait_for_signal(signals);
  remove_endpoints(options.state_dir);
  return 0;
}

int kubectl(const KubectlOptions& options) {
  const auto endpoints = find_endpoints(options.state_dir);
  const std::string config = options.state_dir + "/" + kKubeconfigFile;
  if (!endpoints || endpoints->kube.empty() || ::access(config.c_str(), R_OK) < 0)
    fail(Code::unavailable, "no engine of ours runs on '{}'; start one with 'hearth up'",
         options.state_dir);
  std::vector<char*> words = {const_cast<char*>("kubectl")};
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (::setenv("KUBECONFIG", config.c_str(), 1) < 0) throw_errno("set KUBECONFIG");
  ::execvp("kubectl", words.data());
  if (errno == ENOENT)
    fail(Code::not_found,
         "there is no kubectl on this machine; 'apt-get install kubernetes-client' brings one, and "
         "KUBECONFIG={} is all that it needs",
         config);
  throw_errno("run kubectl");
}

}  // namespace hearth::cli
