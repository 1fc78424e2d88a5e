// What is said over the runtime's socket: one request, one reply, in order; a connection may be
// used for many. Some replies carry a connected guest socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/wire.h"
#include "network/services.h"
#include "runtime/runtime.h"

namespace hearth::runtime {

// The socket's file, in the state folder.
inline constexpr const char* kSocketName = "runtime.sock";

// Raised when a message changes its meaning.
inline constexpr std::uint32_t kProtocolVersion = 8;

struct HelloRequest {};
struct CreateRequest {
  SandboxSpec spec;
};
struct ConnectRequest {
  std::string id;
};
struct DestroyRequest {
  std::string id;
};
struct GetRequest {
  std::string id;
};
struct ListRequest {};
// The runtime answers, then ends: with every sandbox, or leaving them for its next life.
struct ShutdownRequest {
  bool destroy_all = false;
};
struct PauseRequest {
  std::string id;
};
struct ResumeRequest {
  std::string id;
};
struct PolicyRequest {
  std::string id;
  network::Policy policy;
};
struct CommitRequest {
  std::string id;
  std::string name;
};
struct ForkRequest {
  std::string id;
  std::uint32_t count = 1;
};
struct HasLayerRequest {
  std::string diff_id;
};
// With the archive's descriptor.
struct AddLayerRequest {
  image::LayerBlob blob;
};
// With the folder's descriptor.
struct AddFolderRequest {};
struct PutImageRequest {
  image::Image image;
};
struct ListImagesRequest {};
struct RemoveImageRequest {
  std::string name;
};
struct ListVolumesRequest {};
struct RemoveVolumeRequest {
  std::string name;
};
struct ConfigureRequest {
  std::string id;
  Belongings belongings;
};
struct KeepLogRequest {
  std::string id;
};
// Answered with LogList and as many descriptors.
struct OpenLogRequest {
  std::string id;
};
struct CreateVolumeRequest {
  std::string name;
  std::uint64_t bytes = 0;
};
// In the place of what was said before. The port is where names are answered (network.h), for as
// long as this connection lives; 0: by the host's resolver.
struct ServicesRequest {
  std::vector<network::Service> services;
  std::uint16_t name_server = 0;
};
struct ReplaceFilesRequest {
  std::string id;
  std::vector<MountSpec> trees;
};
// On the wire a message is known by its place here: add at the end.
using Request =
    std::variant<HelloRequest, CreateRequest, ConnectRequest, DestroyRequest, GetRequest,
                 ListRequest, ShutdownRequest, PauseRequest, ResumeRequest, PolicyRequest,
                 CommitRequest, ForkRequest, HasLayerRequest, AddLayerRequest, AddFolderRequest,
                 PutImageRequest, ListImagesRequest, RemoveImageRequest, ListVolumesRequest,
                 RemoveVolumeRequest, ConfigureRequest, KeepLogRequest, OpenLogRequest,
                 CreateVolumeRequest, ServicesRequest, ReplaceFilesRequest>;

struct Hello {
  std::uint32_t protocol = kProtocolVersion;
  std::string version;
  std::uint32_t pid = 0;
  std::string cgroups;        // what limits with, for people
  std::uint32_t adopted = 0;  // sandboxes found alive at start
  std::uint32_t swept = 0;    // remains of dead ones removed at start
  std::string network;        // the addresses that sandboxes get; empty: there is no network
  std::uint64_t warm = 0;     // shells that are ready
  std::uint64_t warm_hits = 0;
  std::uint64_t warm_misses = 0;
};
struct Done {};
struct Sandboxes {
  std::vector<Sandbox> all;
};
struct ImageList {
  std::vector<image::Image> all;
};
struct VolumeList {
  std::vector<Volume> all;
};
// A layer's id; or yes (not empty) and no.
struct Text {
  std::string text;
};
// Where each of the files begins.
struct LogList {
  std::vector<std::uint64_t> starts;
};
struct Failed {
  Code code = Code::internal;
  std::string message;
};
using Reply = std::variant<Hello, Done, Sandboxes, Failed, ImageList, VolumeList, Text, LogList>;

std::string encode(const Request& request);
std::string encode(const Reply& reply);

// Throw Error(invalid).
Request parse_request(std::string_view bytes);
Reply parse_reply(std::string_view bytes);

// As parts of other messages.
void put(wire::Writer& out, const SandboxSpec& spec);
SandboxSpec read_spec(wire::Reader& in);
void put(wire::Writer& out, const std::vector<MountSpec>& mounts);
std::vector<MountSpec> read_mounts(wire::Reader& in);
void put(wire::Writer& out, const Sandbox& sandbox);
Sandbox read_sandbox(wire::Reader& in);
void put_time(wire::Writer& out, Time time);
Time read_time(wire::Reader& in);

}  // namespace hearth::runtime
