// The verbs around the embedded Kubernetes API.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::cli {

struct ApiServerOptions {
  std::string state_dir;
  std::string listen = "127.0.0.1";
  std::uint16_t kube_port = 6443;
  std::string token;  // empty: the kept one, or a new one
  std::string log_format = "text";
  std::string log_level = "info";
};

struct KubectlOptions {
  std::string state_dir;
  std::vector<std::string> words;
};

struct BackupOptions {
  std::string state_dir;
  std::string file;
};

struct RestoreOptions {
  std::string state_dir;
  std::string file;
  bool replace = false;  // what is there is put aside
};

// The API alone, until it is told to end.
int apiserver(const ApiServerOptions& options);
// Becomes kubectl; returns only if that fails.
int kubectl(const KubectlOptions& options);
// Of an engine that runs, by asking it; else of what is there.
int backup(const BackupOptions& options);
// Only where no engine runs. What is there is touched once the backup has been verified.
int restore(const RestoreOptions& options);

}  // namespace hearth::cli
