// Words of a command line -> what to do.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/controller.h"
#include "cli/image.h"
#include "cli/kube.h"
#include "cli/kube_verbs.h"
#include "cli/life.h"
#include "cli/surface.h"
#include "cli/tenant_verbs.h"
#include "cli/verbs.h"

namespace hearth::cli {

// To be printed, and nothing else done.
struct Help {
  std::string text;
};

using Order = std::variant<Help, UpOptions, RunOptions, ExecOptions, LsOptions, InspectOptions,
                           RmOptions, LogsOptions, AttachOptions, VersionOptions, EnvOptions,
                           DoctorOptions, ImageOrder, PauseOptions, ResumeOptions, StopOptions,
                           CommitOptions, ForkOptions, PolicyOptions, StatsOptions, VolumeLsOptions,
                           VolumeRmOptions, ForwardOptions, PortsOptions, ConfigureOptions,
                           VolumeCreateOptions, ApiServerOptions, KubectlOptions, BackupOptions,
                           RestoreOptions, ControllerOptions, CrdsOptions, KubeOrder, TenantOrder>;

struct CommandLine {
  std::string verb;       // as known to find_verb_help(); empty: none was given
  std::string state_dir;  // given before the verb
  std::vector<std::string> rest;
};

// Finds the verb; the words behind it are not looked at. Throws Error(invalid) for options before
// it that are not known.
CommandLine split_command_line(std::vector<std::string> words);

// Throws Error(invalid) that says what to write instead.
Order parse_order(const CommandLine& line);

}  // namespace hearth::cli
