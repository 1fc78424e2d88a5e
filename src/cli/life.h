// The verbs for what happens to a sandbox between its beginning and its end, and for its volumes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "network/policy.h"

namespace hearth::cli {

struct PauseOptions {
  std::string state_dir;
  std::vector<std::string> ids;
};

struct ResumeOptions {
  std::string state_dir;
  std::vector<std::string> ids;
};

struct StopOptions {
  std::string state_dir;
  std::vector<std::string> ids;
  Duration grace = std::chrono::seconds(10);
};

struct CommitOptions {
  std::string state_dir;
  std::string id;
  std::string name;
};

struct ForkOptions {
  std::string state_dir;
  std::string id;
  std::uint32_t count = 1;
};

struct PolicyOptions {
  std::string state_dir;
  std::string id;
  network::Policy policy;
};

struct StatsOptions {
  std::string state_dir;
  std::vector<std::string> ids;  // empty: all
  Format format = Format::table;
};

struct VolumeLsOptions {
  std::string state_dir;
  Format format = Format::table;
};

struct VolumeCreateOptions {
  std::string state_dir;
  std::string name;
  std::uint64_t bytes = 0;  // 0: no limit of its own
};

struct VolumeRmOptions {
  std::string state_dir;
  std::vector<std::string> names;
};

int pause(const PauseOptions& options);
int resume(const ResumeOptions& options);
int stop(const StopOptions& options);
int commit(const CommitOptions& options);
int fork(const ForkOptions& options);
int set_policy(const PolicyOptions& options);
int stats(const StatsOptions& options);
int create_volume(const VolumeCreateOptions& options);
int list_volumes(const VolumeLsOptions& options);
int remove_volumes(const VolumeRmOptions& options);

}  // namespace hearth::cli
