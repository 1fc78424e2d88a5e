// The messages of filesystem.Filesystem that are about watching.
#pragma once

#include "envd/filesystem_messages.h"

namespace hearth::envd {

// WatchDirRequest and CreateWatcherRequest.
struct WatchRequest {
  std::string path;
  bool recursive = false;
  bool include_entry = false;
  bool allow_network_mounts = false;
  static void fields(auto& self, auto& visit) {
    visit(1, "path", self.path);
    visit(2, "recursive", self.recursive);
    visit(3, "includeEntry", self.include_entry);
    visit(4, "allowNetworkMounts", self.allow_network_mounts);
  }
};

struct FilesystemEvent {
  std::string name;
  EventType type = EventType::unspecified;
  std::optional<EntryInfo> entry;
  static void fields(auto& self, auto& visit) {
    visit(1, "name", self.name);
    visit(2, "type", self.type);
    visit(3, "entry", self.entry);
  }
};

struct WatchDirResponse {
  std::optional<Empty> start;
  std::optional<FilesystemEvent> filesystem;
  std::optional<Empty> keepalive;
  static void fields(auto& self, auto& visit) {
    visit(1, "start", self.start);
    visit(2, "filesystem", self.filesystem);
    visit(3, "keepalive", self.keepalive);
  }
};

// CreateWatcherResponse, GetWatcherEventsRequest and RemoveWatcherRequest.
struct WatcherId {
  std::string watcher_id;
  static void fields(auto& self, auto& visit) { visit(1, "watcherId", self.watcher_id); }
};

struct WatcherEventsResponse {
  std::vector<FilesystemEvent> events;
  static void fields(auto& self, auto& visit) { visit(1, "events", self.events); }
};

}  // namespace hearth::envd
