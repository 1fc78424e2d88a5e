// Where the parts of a running engine listen: DIR/endpoints.json, for clients and scripts.
//
// The file itself is DIR/engine/endpoints.json, because the engine may write there and nowhere
// else; DIR/endpoints.json is a link to it, made while the engine was still root. Where no engine
// runs, there is no file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::cli {

inline constexpr const char* kEngineFolder = "engine";
inline constexpr const char* kEndpointsFile = "endpoints.json";
// Written by the API server, for its admin alone.
inline constexpr const char* kKubeconfigFile = "admin.kubeconfig";
inline constexpr const char* kAdminTokenFile = "admin.token";
// The first API key of the team `default`, for whoever owns the engine.
inline constexpr const char* kE2bKeyFile = "e2b.key";

// URLs; empty for a part that this engine does not have.
struct Endpoints {
  std::string kube;
  std::string api;
  std::string e2b;
  std::string metrics;

  bool operator==(const Endpoints&) const = default;
};

std::string to_json(const Endpoints& endpoints);

// Members that are not known are ignored. Throws Error(invalid).
Endpoints parse_endpoints(std::string_view json);

// "metrics=http://127.0.0.1:8082", those that exist, with a space between.
std::string describe(const Endpoints& endpoints);

// Readers see the old file or the new one, never a part.
void write_endpoints(const std::string& state_dir, const Endpoints& endpoints);
void remove_endpoints(const std::string& state_dir);

// Nothing when no engine runs, or it is not ours to ask.
std::optional<Endpoints> find_endpoints(const std::string& state_dir);

}  // namespace hearth::cli
