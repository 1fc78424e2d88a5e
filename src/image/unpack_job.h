// What the store and its helper (cmd/hearth-unpack) say to each other: one job there, one report
// back. The helper reads hostile archives, so its reports are read as if a stranger wrote them.
//
// A layer takes two helpers with a pipe between them. The first decompresses and computes digests,
// the second applies the archive to the folder. It is the second that could be talked into
// something by a clever archive, and it has no say in which layer this is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image/image.h"

namespace hearth::image {

// Descriptors of a helper.
inline constexpr int kJobChannelFd = 3;
inline constexpr int kJobInputFd = 4;   // blob, archive or folder
inline constexpr int kJobTargetFd = 5;  // a pipe (decompress), or a detached mount for the files

// Folders in folders. Removing a layer has to come back from the deepest (linux/files.cc).
inline constexpr int kMaxTreeDepth = 160;
// Files, folders, links, whiteouts of one layer.
inline constexpr std::uint64_t kMaxTreeEntries = 2'000'000;

struct Job {
  // Crosses process boundaries as a number: do not renumber.
  enum class Task : std::uint8_t { decompress = 1, apply = 2, copy = 3 };

  Task task = Task::decompress;
  Compression compression = Compression::none;  // decompress
  std::string digest;           // decompress: of the input, checked before it is parsed; or empty
  std::uint64_t max_bytes = 0;  // of what goes out, of what goes to disk
  bool overlay_marks = false;   // copy: whiteouts and opaque folders are meant
};

struct Report {
  Code code = Code::internal;  // if not done
  bool done = false;
  std::string message;      // if not done
  std::string diff_id;      // decompress
  std::uint64_t bytes = 0;  // decompress: that came out; else: that the layer takes up
};

std::string encode(const Job& job);
Job parse_job(std::string_view bytes);
std::string encode(const Report& report);
// Also makes the message fit to be shown: no control characters, not too long.
Report parse_report(std::string_view bytes);

}  // namespace hearth::image
