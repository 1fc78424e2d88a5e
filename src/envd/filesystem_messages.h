// The messages of filesystem.Filesystem; see process_messages.h for how they are written.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "envd/process_messages.h"

namespace hearth::envd {

enum class FileType : std::int32_t { unspecified = 0, file = 1, directory = 2, symlink = 3 };
template <>
struct EnumNames<FileType> {
  static constexpr std::array<EnumName, 4> all() {
    return {{{0, "FILE_TYPE_UNSPECIFIED"},
             {1, "FILE_TYPE_FILE"},
             {2, "FILE_TYPE_DIRECTORY"},
             {3, "FILE_TYPE_SYMLINK"}}};
  }
};

enum class EventType : std::int32_t {
  unspecified = 0,
  create = 1,
  write = 2,
  remove = 3,
  rename = 4,
  chmod = 5
};
template <>
struct EnumNames<EventType> {
  static constexpr std::array<EnumName, 6> all() {
    return {{{0, "EVENT_TYPE_UNSPECIFIED"},
             {1, "EVENT_TYPE_CREATE"},
             {2, "EVENT_TYPE_WRITE"},
             {3, "EVENT_TYPE_REMOVE"},
             {4, "EVENT_TYPE_RENAME"},
             {5, "EVENT_TYPE_CHMOD"}}};
  }
};

// Of Stat, MakeDir and Remove.
struct PathRequest {
  std::string path;
  static void fields(auto& self, auto& visit) { visit(1, "path", self.path); }
};

struct MoveRequest {
  std::string source;
  std::string destination;
  static void fields(auto& self, auto& visit) {
    visit(1, "source", self.source);
    visit(2, "destination", self.destination);
  }
};

struct ListDirRequest {
  std::string path;
  std::uint32_t depth = 0;
  static void fields(auto& self, auto& visit) {
    visit(1, "path", self.path);
    visit(2, "depth", self.depth);
  }
};

struct EntryInfo {
  std::string name;
  FileType type = FileType::unspecified;
  std::string path;
  std::int64_t size = 0;
  std::uint32_t mode = 0;
  std::string permissions;
  std::string owner;
  std::string group;
  std::optional<Time> modified_time;
  std::optional<std::string> symlink_target;
  std::map<std::string, std::string> metadata;
  bool is_symlink = false;
  static void fields(auto& self, auto& visit) {
    visit(1, "name", self.name);
    visit(2, "type", self.type);
    visit(3, "path", self.path);
    visit(4, "size", self.size);
    visit(5, "mode", self.mode);
    visit(6, "permissions", self.permissions);
    visit(7, "owner", self.owner);
    visit(8, "group", self.group);
    visit(9, "modifiedTime", self.modified_time);
    visit(10, "symlinkTarget", self.symlink_target);
    visit(11, "metadata", self.metadata);
    visit(12, "isSymlink", self.is_symlink);
  }
};

// Of Stat, MakeDir and Move.
struct EntryResponse {
  std::optional<EntryInfo> entry;
  static void fields(auto& self, auto& visit) { visit(1, "entry", self.entry); }
};

struct ListDirResponse {
  std::vector<EntryInfo> entries;
  static void fields(auto& self, auto& visit) { visit(1, "entries", self.entries); }
};

}  // namespace hearth::envd
