// filesystem.Filesystem: watching, told at once or fetched later.
#include <poll.h>

#include "envd/service_internal.h"

namespace hearth::envd {
namespace {

EventType event_type(inside::Change change) {
  switch (change) {
    case inside::Change::create:
      return EventType::create;
    case inside::Change::write:
      return EventType::write;
    case inside::Change::remove:
      return EventType::remove;
    case inside::Change::rename:
      return EventType::rename;
    case inside::Change::chmod:
      return EventType::chmod;
  }
  return EventType::unspecified;
}

// Events of one watched folder, with what is known about their files.
class Teller {
 public:
  Teller(std::string path, bool include_entry) : path_(std::move(path)), entries_(include_entry) {}

  FilesystemEvent tell(inside::WatchEvent event) {
    FilesystemEvent told{
        .name = std::move(event.name), .type = event_type(event.change), .entry = std::nullopt};
    const bool is_there = told.type == EventType::create || told.type == EventType::write ||
                          told.type == EventType::chmod;
    if (entries_ && is_there) {
      try {
        const std::string path = told.name == "." ? path_ : path_ + '/' + told.name;
        told.entry = entry_info(inside::describe(path, names_));
      } catch (const Error&) {
        // Gone again.
      }
    }
    return told;
  }

 private:
  std::string path_;
  bool entries_;
  inside::Names names_;
};

void check_mount(const std::string& path, bool allow_network_mounts) {
  if (inside::is_network_mount(path) && !allow_network_mounts)
    fail(Code::invalid, "path {} is on a network mount, which cannot be watched reliably", path);
}

// Lost events are the server's failure, and not that the client asks too often.
[[noreturn]] void throw_lost(const Error& error) {
  throw RpcError(RpcCode::internal, error.what());
}

}  // namespace

void Service::watch_dir(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<WatchRequest>(exchange, call);
  const Place place = place_of(call.user, request.path);
  check_mount(place.path, request.allow_network_mounts);
  inside::Watcher watcher(place.path, request.recursive);
  Teller teller(place.path, request.include_entry);
  const Deadline deadline = call.timeout ? Deadline::after(*call.timeout) : Deadline::never();

  RpcStream stream(exchange, call.codec);
  stream.send(WatchDirResponse{.start = Empty{}});
  Deadline idle = Deadline::after(call.keepalive);
  while (true) {
    pollfd waits[] = {{.fd = watcher.fd(), .events = POLLIN, .revents = 0},
                      {.fd = exchange.fd(), .events = POLLRDHUP, .revents = 0}};
    const int left = deadline.poll_milliseconds();
    const int until_idle = idle.poll_milliseconds();
    ::poll(waits, 2, left < 0 || until_idle < left ? until_idle : left);
    if (waits[0].revents != 0) {
      try {
        watcher.drain([&](inside::WatchEvent event) {
          stream.send(WatchDirResponse{.filesystem = teller.tell(std::move(event))});
        });
      } catch (const Error& error) {
        if (error.code() == Code::exhausted) throw_lost(error);
        throw;
      }
      idle = Deadline::after(call.keepalive);
    }
    if ((waits[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return exchange.abandon();
    if (deadline.passed()) fail(Code::timeout, "the watch's deadline passed");
    if (!idle.passed()) continue;
    stream.send(WatchDirResponse{.keepalive = Empty{}});
    idle = Deadline::after(call.keepalive);
  }
}

void Service::create_watcher(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<WatchRequest>(exchange, call);
  const Place place = place_of(call.user, request.path);
  check_mount(place.path, request.allow_network_mounts);
  answer(
      exchange, call,
      WatcherId{.watcher_id = watchers_.add(place.path, request.recursive, request.include_entry)});
}

void Service::get_watcher_events(serve::Exchange& exchange, const Call& call) {
  const auto request = receive<WatcherId>(exchange, call);
  WatcherEventsResponse response;
  try {
    inside::Watchers::Fetched fetched = watchers_.fetch(request.watcher_id);
    Teller teller(fetched.path, fetched.include_entry);
    for (inside::WatchEvent& event : fetched.events)
      response.events.push_back(teller.tell(std::move(event)));
  } catch (const Error& error) {
    if (error.code() == Code::exhausted) throw_lost(error);
    throw;
  }
  answer(exchange, call, response);
}

void Service::remove_watcher(serve::Exchange& exchange, const Call& call) {
  watchers_.remove(receive<WatcherId>(exchange, call).watcher_id);
  answer(exchange, call, Empty{});
}

}  // namespace hearth::envd
