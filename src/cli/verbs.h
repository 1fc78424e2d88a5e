// The verbs of `hearth`, one file each: what each takes, and the function that does it.
//
// A verb returns the exit code of the program and throws Error for what it cannot do; main prints
// it. They run on the main thread and block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/sandbox_options.h"
#include "guest/protocol.h"
#include "runtime/log_printer.h"
#include "runtime/runtime.h"

namespace hearth::cli {

enum class Format { table, json, id };

// Exit codes of run and exec that are not the command's own; those of env(1), timeout(1) and
// Docker.
inline constexpr int kExitTimedOut = 124;
inline constexpr int kExitEngine = 125;
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignalBase = 128;

// The rest of them.
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

struct UpOptions {
  std::string state_dir;
  std::string listen = "127.0.0.1";
  std::uint16_t kube_port = 6443;
  std::uint16_t api_port = 8080;
  bool e2b = true;
  std::uint16_t e2b_port = 8090;
  std::optional<std::uint16_t> e2b_tls_port;
  std::string e2b_domain;           // empty: none
  std::string e2b_image = "host";   // of the default templates
  std::uint32_t e2b_warm = 8;       // sandboxes of theirs that are kept ready
  std::uint32_t e2b_team_warm = 2;  // of public templates, for each other team that uses them
  Duration e2b_team_idle = std::chrono::minutes(15);
  std::string access_log;  // a file, or "-"; empty: none
  std::uint16_t metrics_port = 8082;
  std::string log_format = "text";
  std::string log_level = "info";
  std::string user;  // name or uid of the engine; empty: see engine_user.h
  bool demo = false;
  unsigned warm = 16;  // shells kept ready
  bool network = true;
  std::uint64_t image_quota_bytes = 0;  // 0: none
  std::vector<std::string> host_paths;  // that may be mounted into sandboxes
  std::string node_name;                // of this machine; empty: the host's
  std::string eviction_hard;            // what must be left of it (node/pressure.h)
  std::string registry_ca;              // a file; empty: what the system trusts
  bool tracing = false;
};

// A command and how we are attached to it: what run and exec have in common.
struct CommandOptions {
  std::vector<std::string> command;
  bool interactive = false;
  bool terminal = false;
  bool detached = false;
  std::vector<std::string> environment;  // NAME=value
  std::string directory;
  std::string user;
  Duration timeout = {};  // 0: none
  guest::Restart restart = guest::Restart::never;
  std::uint32_t most_restarts = 0;  // 0: as often as it takes
};

struct RunOptions {
  std::string state_dir;
  CommandOptions command;
  std::string image = "host";
  std::string name;
  bool remove = false;
  runtime::Limits limits;
  std::vector<linux::ResourceLimit> ulimits;
  runtime::DiskPlace disk_on = runtime::DiskPlace::memory;
  NetworkOptions network;
  std::vector<runtime::MountSpec> mounts;
  std::vector<SecretFile> secrets;
  std::vector<guest::SurfacePort> surfaces;
  std::string token_file;
  runtime::LogLimits log;
};

struct ExecOptions {
  std::string state_dir;
  std::string id;
  CommandOptions command;
};

struct LsOptions {
  std::string state_dir;
  Format format = Format::table;
};

struct InspectOptions {
  std::string state_dir;
  std::vector<std::string> ids;
};

struct RmOptions {
  std::string state_dir;
  std::vector<std::string> ids;
  bool all = false;
};

struct LogsOptions {
  std::string state_dir;
  std::string id;
  bool follow = false;
  runtime::LogChoice choice;
};

struct AttachOptions {
  std::string state_dir;
  std::string id;
  std::uint32_t pid = 0;  // inside; 0: the first detached command
  bool no_stdin = false;
  bool forward_signals = true;
};

struct VersionOptions {
  std::string state_dir;
  Format format = Format::table;
};

struct EnvOptions {
  std::string state_dir;
};

struct DoctorOptions {
  std::string state_dir;
  Format format = Format::table;
};

int up(const UpOptions& options);
int run(const RunOptions& options);
int exec(const ExecOptions& options);
int ls(const LsOptions& options);
int inspect(const InspectOptions& options);
int rm(const RmOptions& options);
int logs(const LogsOptions& options);
int attach(const AttachOptions& options);
int version(const VersionOptions& options);
int env(const EnvOptions& options);
int doctor(const DoctorOptions& options);

}  // namespace hearth::cli
