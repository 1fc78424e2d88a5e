#include "runtime/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <list>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/on_failure.h"

namespace hearth::runtime {
namespace {

// Engine, gateway, and one for each `hearth run --rm`. A waiting thread costs some 20 KiB. The next
// one is told to come back.
constexpr int kMaxConnections = 1024;

// Before it is tried again to accept somebody.
constexpr auto kShortagePause = std::chrono::milliseconds(10);

// Waits for `fd` to become readable: false when it is time to stop.
bool wait_readable(int fd, int stop_fd) {
  while (true) {
    std::array<pollfd, 2> waiting = {{{.fd = fd, .events = POLLIN, .revents = 0},
                                      {.fd = stop_fd, .events = POLLIN, .revents = 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      throw_errno("wait for requests");
    if (waiting[1].revents != 0) return false;
    if (waiting[0].revents != 0) return true;
  }
}

struct Worker {
  std::atomic<bool> over = false;
  std::jthread thread;
};

}  // namespace

struct Daemon::Session {
  linux::Channel channel;
  uid_t uid = 0;
  std::vector<linux::Fd> fds;      // go out with the next answer
  std::vector<std::string> tied;   // sandboxes that end with it
  std::vector<image::Lease> held;  // layers that no image names yet
  bool answers_names = false;
};

Daemon::Daemon(LinuxRuntime& runtime, int listen_fd, uid_t owner)
    : runtime_(runtime),
      listen_fd_(listen_fd),
      owner_(owner),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      spare_(::fcntl(stop_.get(), F_DUPFD_CLOEXEC, 0)) {
  if (!stop_) throw_errno("make an eventfd");
}

void Daemon::stop() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
}

// One who comes when there is no descriptor left for him is told so: he would wait for ever. For
// that a descriptor is kept that can be done without.
std::optional<linux::Channel> Daemon::accept() {
  try {
    return linux::try_accept(listen_fd_);
  } catch (const Error& error) {
    if (error.code() != Code::exhausted) throw;
    log::warning("a connection is refused", {{"error", error.what()}});
  }
  spare_.reset();
  try {
    if (auto channel = linux::try_accept(listen_fd_)) refuse(*channel);
  } catch (const Error& error) {
    // Somebody else was faster. He waits where he is until we look again.
    std::this_thread::sleep_for(kShortagePause);
  }
  spare_ = linux::Fd(::fcntl(stop_.get(), F_DUPFD_CLOEXEC, 0));
  return std::nullopt;
}

void Daemon::refuse(linux::Channel& channel) {
  const Failed full{.code = Code::exhausted,
                    .message = "the runtime has too many connections; try again"};
  channel.try_send(encode(Reply(full)));
}

void Daemon::run() {
  std::list<Worker> workers;
  // Else nobody would tell them, and their threads would be waited for in vain.
  const OnFailure end_all([this] { stop(); });
  while (wait_readable(listen_fd_, stop_.get())) {
    auto channel = accept();
    workers.remove_if([](const Worker& worker) { return worker.over.load(); });
    if (!channel) continue;
    const linux::Peer peer = linux::peer_of(channel->fd());
    if (peer.uid != 0 && peer.uid != owner_) {
      log::warning("refused a connection", {{"uid", peer.uid}, {"pid", peer.pid}});
      continue;
    }
    if (connections_ >= kMaxConnections) {
      refuse(*channel);
      continue;
    }
    ++connections_;
    Worker& worker = workers.emplace_back();
    worker.thread = std::jthread([this, &worker, mine = std::move(*channel)]() mutable {
      serve(std::move(mine));
      --connections_;
      worker.over = true;
    });
  }
}

void Daemon::serve(linux::Channel channel) {
  Session session;
  session.uid = linux::peer_of(channel.fd()).uid;
  session.channel = std::move(channel);
  try {
    while (true) {
      // A runtime that stops is not a client that left: what is tied to it lives on.
      if (!wait_readable(session.channel.fd(), stop_.get())) return;
      auto message = session.channel.receive();
      if (!message) break;
      answer(session, std::move(*message));
    }
  } catch (const std::exception& error) {
    // A client that breaks off is its own business.
    log::debug("connection closed", {{"error", error.what()}});
  }
  try {
    if (session.answers_names) runtime_.set_name_server(0);
  } catch (const Error& error) {
    log::error("sandboxes have no name server", {{"error", error.what()}});
  }
  for (const std::string& id : session.tied) {
    try {
      runtime_.destroy(id);
    } catch (const Error& error) {
      log::error("sandbox outlives its client", {{"id", id}, {"error", error.what()}});
    }
  }
}

void Daemon::answer(Session& session, linux::Message message) {
  Reply reply;
  bool ends = false;
  try {
    const Request request = parse_request(message.bytes);
    // In any case: what stays behind now is swept at the next start.
    ends = std::holds_alternative<ShutdownRequest>(request);
    reply = handle(request, session, std::move(message.fds));
  } catch (const Error& error) {
    reply = Failed{.code = error.code(), .message = error.what()};
  } catch (const std::exception& error) {
    reply = Failed{.code = Code::internal, .message = error.what()};
  }
  const std::vector<linux::Fd> going = std::exchange(session.fds, {});
  std::vector<int> fds;
  for (const linux::Fd& fd : going) fds.push_back(fd.get());
  session.channel.send(encode(reply), fds);
  if (ends) stop();
}

Hello Daemon::hello() const {
  const PoolCounts pool = runtime_.pool_counts();
  return {.protocol = kProtocolVersion,
          .version = HEARTH_VERSION,
          .pid = static_cast<std::uint32_t>(::getpid()),
          .cgroups = runtime_.describe_cgroups(),
          .adopted = runtime_.adopted(),
          .swept = runtime_.swept(),
          .network = runtime_.describe_network(),
          .warm = pool.ready,
          .warm_hits = pool.hits,
          .warm_misses = pool.misses};
}

Reply Daemon::handle(const Request& request, Session& session, std::vector<linux::Fd> fds) {
  if (std::holds_alternative<HelloRequest>(request)) return hello();
  if (const auto* shutdown = std::get_if<ShutdownRequest>(&request)) {
    if (shutdown->destroy_all) runtime_.destroy_all();
    return Done{};
  }
  if (std::holds_alternative<ListVolumesRequest>(request))
    return VolumeList{.all = runtime_.list_volumes()};
  if (const auto* remove = std::get_if<RemoveVolumeRequest>(&request)) {
    runtime_.remove_volume(remove->name);
    return Done{};
  }
  if (const auto* create = std::get_if<CreateVolumeRequest>(&request)) {
    runtime_.create_volume(create->name, create->bytes);
    return Done{};
  }
  if (const auto* services = std::get_if<ServicesRequest>(&request)) {
    runtime_.set_services(services->services);
    runtime_.set_name_server(services->name_server);
    session.answers_names = services->name_server != 0;
    return Done{};
  }
  const bool about_images = std::holds_alternative<HasLayerRequest>(request) ||
                            std::holds_alternative<AddLayerRequest>(request) ||
                            std::holds_alternative<AddFolderRequest>(request) ||
                            std::holds_alternative<PutImageRequest>(request) ||
                            std::holds_alternative<ListImagesRequest>(request) ||
                            std::holds_alternative<RemoveImageRequest>(request);
  return about_images ? handle_image(request, session, std::move(fds))
                      : handle_sandbox(request, session);
}

Reply Daemon::handle_sandbox(const Request& request, Session& session) {
  if (const auto* create = std::get_if<CreateRequest>(&request)) {
    Runtime::Created created = runtime_.create(create->spec);
    session.fds.push_back(std::move(created.guest).take_fd());
    if (create->spec.ends_with_client) session.tied.push_back(created.sandbox.id);
    return Sandboxes{.all = {std::move(created.sandbox)}};
  }
  if (const auto* connect = std::get_if<ConnectRequest>(&request)) {
    session.fds.push_back(runtime_.connect(connect->id).take_fd());
    return Done{};
  }
  if (const auto* destroy = std::get_if<DestroyRequest>(&request)) {
    runtime_.destroy(destroy->id);
    return Done{};
  }
  if (const auto* get = std::get_if<GetRequest>(&request))
    return Sandboxes{.all = {runtime_.get(get->id)}};
  if (const auto* pause = std::get_if<PauseRequest>(&request)) {
    runtime_.pause(pause->id);
    return Done{};
  }
  if (const auto* resume = std::get_if<ResumeRequest>(&request)) {
    runtime_.resume(resume->id);
    return Done{};
  }
  if (const auto* late = std::get_if<ConfigureRequest>(&request)) {
    runtime_.configure(late->id, late->belongings);
    return Done{};
  }
  if (const auto* replace = std::get_if<ReplaceFilesRequest>(&request)) {
    for (const MountSpec& tree : replace->trees) runtime_.replace_files(replace->id, tree);
    return Done{};
  }
  if (const auto* keep = std::get_if<KeepLogRequest>(&request)) {
    runtime_.keep_log(keep->id);
    return Done{};
  }
  if (const auto* open = std::get_if<OpenLogRequest>(&request)) {
    LogList list;
    for (LogFile& file : runtime_.open_log(open->id)) {
      list.starts.push_back(file.start);
      session.fds.push_back(std::move(file.fd));
    }
    return list;
  }
  if (const auto* policy = std::get_if<PolicyRequest>(&request)) {
    runtime_.set_policy(policy->id, policy->policy);
    return Done{};
  }
  if (const auto* commit = std::get_if<CommitRequest>(&request))
    return ImageList{.all = {runtime_.commit(commit->id, commit->name)}};
  if (const auto* fork = std::get_if<ForkRequest>(&request))
    return Sandboxes{.all = runtime_.fork(fork->id, fork->count)};
  return Sandboxes{.all = runtime_.list()};
}

Reply Daemon::handle_image(const Request& request, Session& session, std::vector<linux::Fd> fds) {
  image::Store& store = runtime_.store();
  const auto one_fd = [&fds] {
    if (fds.size() != 1) fail(Code::invalid, "a layer with {} descriptors", fds.size());
    return fds.front().get();
  };
  const auto hold = [&session](image::Lease lease) {
    const std::string id = lease.layers().front();
    session.held.push_back(std::move(lease));
    return Text{.text = id};
  };
  if (const auto* has = std::get_if<HasLayerRequest>(&request)) {
    if (!store.has_layer(has->diff_id)) return Text{};
    return hold(store.use({has->diff_id}));
  }
  if (const auto* add = std::get_if<AddLayerRequest>(&request))
    return hold(store.add_layer(one_fd(), add->blob, session.channel.fd()));
  if (std::holds_alternative<AddFolderRequest>(request)) {
    if (session.uid != 0)
      fail(Code::forbidden,
           "a folder is read with root's rights: only root may ask; others send a "
           "tar archive");
    return hold(store.add_folder(one_fd(), session.channel.fd()));
  }
  if (const auto* put = std::get_if<PutImageRequest>(&request)) {
    store.put_image(put->image);
    session.held.clear();
    return Done{};
  }
  if (const auto* remove = std::get_if<RemoveImageRequest>(&request))
    return Text{.text = runtime_.remove_image(remove->name) ? "yes" : ""};
  return ImageList{.all = runtime_.list_images()};
}

}  // namespace hearth::runtime
