#include "runtime/client.h"

#include <fcntl.h>

namespace hearth::runtime {
namespace {

linux::Channel connect_to(const std::string& state_dir) {
  try {
    const linux::Fd folder = linux::open_file(state_dir, O_PATH | O_DIRECTORY);
    return linux::connect_at(folder.get(), kSocketName);
  } catch (const Error& error) {
    if (error.code() == Code::forbidden) {
      fail(Code::forbidden, "the engine of '{}' belongs to another user; use sudo, or --state-dir",
           state_dir);
    }
    if (error.code() == Code::not_found || error.code() == Code::unavailable) {
      fail(
          Code::unavailable,
          "no engine runs on '{}'; start one with 'hearth up', or name another with --state-dir or "
          "HEARTH_STATE_DIR",
          state_dir);
    }
    throw;
  }
}

template <typename T>
T expect(const linux::Message& message) {
  Reply reply = parse_reply(message.bytes);
  if (const auto* failed = std::get_if<Failed>(&reply)) throw Error(failed->code, failed->message);
  if (auto* expected = std::get_if<T>(&reply)) return std::move(*expected);
  fail(Code::internal, "the runtime answered with something that was not asked for");
}

Sandbox expect_one(const linux::Message& message) {
  auto sandboxes = expect<Sandboxes>(message);
  if (sandboxes.all.size() != 1)
    fail(Code::internal, "the runtime told of {} sandboxes", sandboxes.all.size());
  return std::move(sandboxes.all.front());
}

linux::Channel take_guest(linux::Message& message) {
  if (message.fds.size() != 1) fail(Code::internal, "the runtime sent no guest connection");
  return linux::Channel(std::move(message.fds.front()));
}

}  // namespace

RuntimeClient::RuntimeClient(const std::string& state_dir) : channel_(connect_to(state_dir)) {}

linux::Message RuntimeClient::ask(const Request& request, std::span<const int> fds) {
  const std::lock_guard lock(mutex_);
  channel_.send(encode(request), fds);
  auto reply = channel_.receive();
  if (!reply) fail(Code::unavailable, "the runtime went away; 'hearth up' starts it again");
  return std::move(*reply);
}

Runtime::Created RuntimeClient::create(const SandboxSpec& spec) {
  linux::Message reply = ask(CreateRequest{.spec = spec});
  Sandbox sandbox = expect_one(reply);
  return {.sandbox = std::move(sandbox), .guest = take_guest(reply)};
}

linux::Channel RuntimeClient::connect(const std::string& id) {
  linux::Message reply = ask(ConnectRequest{.id = id});
  expect<Done>(reply);
  return take_guest(reply);
}

void RuntimeClient::destroy(const std::string& id) {
  expect<Done>(ask(DestroyRequest{.id = id}));
}

Sandbox RuntimeClient::get(const std::string& id) {
  return expect_one(ask(GetRequest{.id = id}));
}

std::vector<Sandbox> RuntimeClient::list() {
  return expect<Sandboxes>(ask(ListRequest{})).all;
}

void RuntimeClient::pause(const std::string& id) {
  expect<Done>(ask(PauseRequest{.id = id}));
}

void RuntimeClient::resume(const std::string& id) {
  expect<Done>(ask(ResumeRequest{.id = id}));
}

void RuntimeClient::configure(const std::string& id, const Belongings& belongings) {
  expect<Done>(ask(ConfigureRequest{.id = id, .belongings = belongings}));
}

void RuntimeClient::replace_files(const std::string& id, const MountSpec& tree) {
  expect<Done>(ask(ReplaceFilesRequest{.id = id, .trees = {tree}}));
}

void RuntimeClient::keep_log(const std::string& id) {
  expect<Done>(ask(KeepLogRequest{.id = id}));
}

std::vector<LogFile> RuntimeClient::open_log(const std::string& id) {
  linux::Message reply = ask(OpenLogRequest{.id = id});
  const auto list = expect<LogList>(reply);
  if (reply.fds.size() != list.starts.size())
    fail(Code::internal, "the runtime sent {} files of a log", reply.fds.size());
  std::vector<LogFile> files;
  for (std::size_t i = 0; i < list.starts.size(); ++i)
    files.push_back({.start = list.starts[i], .fd = std::move(reply.fds[i])});
  return files;
}

void RuntimeClient::set_policy(const std::string& id, const network::Policy& policy) {
  expect<Done>(ask(PolicyRequest{.id = id, .policy = policy}));
}

image::Image RuntimeClient::commit(const std::string& id, const std::string& name) {
  auto images = expect<ImageList>(ask(CommitRequest{.id = id, .name = name}));
  if (images.all.size() != 1) fail(Code::internal, "the runtime told of no image");
  return std::move(images.all.front());
}

std::vector<Sandbox> RuntimeClient::fork(const std::string& id, unsigned count) {
  return expect<Sandboxes>(ask(ForkRequest{.id = id, .count = count})).all;
}

std::vector<image::Image> RuntimeClient::list_images() {
  return expect<ImageList>(ask(ListImagesRequest{})).all;
}

bool RuntimeClient::remove_image(const std::string& name) {
  return !expect<Text>(ask(RemoveImageRequest{.name = name})).text.empty();
}

void RuntimeClient::create_volume(const std::string& name, std::uint64_t bytes) {
  expect<Done>(ask(CreateVolumeRequest{.name = name, .bytes = bytes}));
}

std::vector<Volume> RuntimeClient::list_volumes() {
  return expect<VolumeList>(ask(ListVolumesRequest{})).all;
}

void RuntimeClient::remove_volume(const std::string& name) {
  expect<Done>(ask(RemoveVolumeRequest{.name = name}));
}

bool RuntimeClient::has_layer(const std::string& diff_id) {
  return !expect<Text>(ask(HasLayerRequest{.diff_id = diff_id})).text.empty();
}

std::string RuntimeClient::add_layer(int blob_fd, const image::LayerBlob& blob) {
  return expect<Text>(ask(AddLayerRequest{.blob = blob}, {&blob_fd, 1})).text;
}

std::string RuntimeClient::add_folder(int dir_fd) {
  return expect<Text>(ask(AddFolderRequest{}, {&dir_fd, 1})).text;
}

void RuntimeClient::put_image(const image::Image& image) {
  expect<Done>(ask(PutImageRequest{.image = image}));
}

Hello RuntimeClient::hello() {
  return expect<Hello>(ask(HelloRequest{}));
}

void RuntimeClient::set_services(const std::vector<network::Service>& services,
                                 std::uint16_t name_server) {
  expect<Done>(ask(ServicesRequest{.services = services, .name_server = name_server}));
}

void RuntimeClient::shut_down(bool destroy_all) {
  expect<Done>(ask(ShutdownRequest{.destroy_all = destroy_all}));
  // The runtime closes its end when it has let go of everything.
  const std::lock_guard lock(mutex_);
  channel_.receive();
}

}  // namespace hearth::runtime
