// hearth: the command line. `hearth up` is the engine; every other verb talks to one.
//
// Threads: one, and for `up` also: one serves metrics, one asks the runtime on its behalf, those of
// the Kubernetes API (apiserver/server.h, cli/kube_endpoint.cc), and at the end one waits for the
// runtime to finish while the main thread goes on answering signals. `claim` has one that hears
// signals while it waits.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/image.h"
#include "cli/life.h"
#include "cli/verbs.h"

namespace {

using namespace hearth;

struct Perform {
  int operator()(const cli::Help& help) const {
    std::fputs(help.text.c_str(), stdout);
    return 0;
  }
  int operator()(const cli::UpOptions& options) const { return cli::up(options); }
  int operator()(const cli::RunOptions& options) const { return cli::run(options); }
  int operator()(const cli::ExecOptions& options) const { return cli::exec(options); }
  int operator()(const cli::LsOptions& options) const { return cli::ls(options); }
  int operator()(const cli::InspectOptions& options) const { return cli::inspect(options); }
  int operator()(const cli::RmOptions& options) const { return cli::rm(options); }
  int operator()(const cli::LogsOptions& options) const { return cli::logs(options); }
  int operator()(const cli::AttachOptions& options) const { return cli::attach(options); }
  int operator()(const cli::VersionOptions& options) const { return cli::version(options); }
  int operator()(const cli::EnvOptions& options) const { return cli::env(options); }
  int operator()(const cli::DoctorOptions& options) const { return cli::doctor(options); }
  int operator()(const cli::ImageOrder& order) const { return cli::image(order); }
  int operator()(const cli::PauseOptions& options) const { return cli::pause(options); }
  int operator()(const cli::StopOptions& options) const { return cli::stop(options); }
  int operator()(const cli::ResumeOptions& options) const { return cli::resume(options); }
  int operator()(const cli::CommitOptions& options) const { return cli::commit(options); }
  int operator()(const cli::ForkOptions& options) const { return cli::fork(options); }
  int operator()(const cli::ForwardOptions& options) const { return cli::forward(options); }
  int operator()(const cli::PortsOptions& options) const { return cli::ports(options); }
  int operator()(const cli::ConfigureOptions& options) const { return cli::configure(options); }
  int operator()(const cli::PolicyOptions& options) const { return cli::set_policy(options); }
  int operator()(const cli::StatsOptions& options) const { return cli::stats(options); }
  int operator()(const cli::VolumeLsOptions& options) const { return cli::list_volumes(options); }
  int operator()(const cli::VolumeCreateOptions& options) const {
    return cli::create_volume(options);
  }
  int operator()(const cli::ApiServerOptions& options) const { return cli::apiserver(options); }
  int operator()(const cli::KubectlOptions& options) const { return cli::kubectl(options); }
  int operator()(const cli::BackupOptions& options) const { return cli::backup(options); }
  int operator()(const cli::RestoreOptions& options) const { return cli::restore(options); }
  int operator()(const cli::ControllerOptions& options) const { return cli::controller(options); }
  int operator()(const cli::CrdsOptions& options) const { return cli::crds(options); }
  int operator()(const cli::KubeOrder& order) const { return cli::perform(order); }
  int operator()(const cli::TenantOrder& order) const { return cli::perform(order); }
  int operator()(const cli::VolumeRmOptions& options) const { return cli::remove_volumes(options); }
};

// A descriptor that our caller closed would be given to the next file or socket we open, which
// would then be taken for our input or output.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

// A command's own exit code is never taken for ours.
int exit_code(const std::string& verb, Code code) {
  if (verb == "run" || verb == "exec") return cli::kExitEngine;
  // As agent-sandbox-controller, in whose place it runs.
  if (verb == "controller") return cli::kExitFailure;
  return code == Code::invalid ? cli::kExitUsage : cli::kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  std::string verb;
  Code code = Code::internal;
  try {
    const cli::CommandLine line = cli::split_command_line({argv + 1, argv + argc});
    verb = line.verb;
    return std::visit(Perform{}, cli::parse_order(line));
  } catch (const Error& error) {
    code = error.code();
    if (verb.empty())
      std::fprintf(stderr, "hearth: %s\n", error.what());
    else
      cli::complain(verb, error.what());
  } catch (const std::exception& error) {
    cli::complain(verb.empty() ? "internal error" : verb, error.what());
  }
  return exit_code(verb, code);
}
