// The verbs that speak of objects of the Kubernetes API: get, describe, claim, pool, template.
//
// The cluster is the engine's own, unless --kubeconfig or --context name another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/verbs.h"

namespace hearth::cli {

struct ClusterOptions {
  std::string state_dir;
  std::string kubeconfig;  // empty: the engine's, or with a context the usual files
  std::string context;
  std::string ns;  // empty: the context's own
};

enum class ObjectFormat { table, wide, json, yaml, name };

struct GetOptions {
  ClusterOptions cluster;
  std::string kind;  // as written
  std::string name;  // empty: all
  bool all_namespaces = false;
  std::string selector;
  ObjectFormat format = ObjectFormat::table;
  bool watch = false;
};

struct DescribeOptions {
  ClusterOptions cluster;
  std::string kind;
  std::string name;
};

struct DeleteObjectsOptions {
  ClusterOptions cluster;
  std::string kind;
  std::vector<std::string> names;
};

struct ClaimOptions {
  ClusterOptions cluster;
  std::string pool;
  std::string name;                      // empty: made up
  std::vector<std::string> environment;  // NAME=value
  std::vector<std::string> labels;       // key=value
  std::optional<Duration> ttl;
  std::string when_empty;                    // "Cold", "Wait", "Fail"; empty: not said
  Duration wait = std::chrono::seconds(30);  // 0: not at all
  ObjectFormat format = ObjectFormat::table;
  bool keep = false;    // a claim that failed
  bool remove = false;  // once the command has ended
  bool has_command = false;
  CommandOptions command;
};

struct PoolCreateOptions {
  ClusterOptions cluster;
  std::string name;
  std::string sandbox_template;
  std::uint32_t replicas = 1;
  bool names_ids = false;  // its sandboxes are named as E2B does, for its API to hand out
};

struct PoolScaleOptions {
  ClusterOptions cluster;
  std::string name;
  std::uint32_t replicas = 0;
};

struct TemplateCreateOptions {
  ClusterOptions cluster;
  std::string name;
  std::string file;  // "-": our input; empty: what follows
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value
  std::string cpu;
  std::string memory;
  std::vector<std::uint16_t> ports;
  std::string surfaces;    // what listens inside; empty: not said
  std::string sudoers;     // who may use sudo inside: names with commas; empty: nobody
  bool is_public = false;  // for every team
  std::string env_policy;  // "Allowed", "Overrides", "Disallowed"; empty: not said
};

using KubeOrder = std::variant<GetOptions, DescribeOptions, DeleteObjectsOptions, ClaimOptions,
                               PoolCreateOptions, PoolScaleOptions, TemplateCreateOptions>;

int get_objects(const GetOptions& options);
int describe_object(const DescribeOptions& options);
int delete_objects(const DeleteObjectsOptions& options);
int claim(const ClaimOptions& options);
int create_pool(const PoolCreateOptions& options);
int scale_pool(const PoolScaleOptions& options);
int create_template(const TemplateCreateOptions& options);

int perform(const KubeOrder& order);

}  // namespace hearth::cli
