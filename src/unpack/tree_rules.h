// What may become part of a layer: rules that archives and copied folders share. No system calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::unpack {

inline constexpr const char* kOpaqueXattr = "user.overlay.opaque";
inline constexpr std::string_view kOpaqueValue = "y";

// The parts of a path in an archive, the root being none: "./a//b/" and "/a/b" are {"a", "b"}.
// Throws Error(invalid), naming the path: "..", NULs, too long, too deep, no name at all.
std::vector<std::string> split_path(const std::string& path);

// "a/b"; "." for the root.
std::string join_path(const std::vector<std::string>& parts);

// What the last part of a path asks for besides being a name (OCI image specification, layers).
struct Whiteout {
  enum class Kind {
    none,
    removed,  // `name` of the layers below is not there
    opaque,   // nothing of the layers below is in this folder
  };
  Kind kind = Kind::none;
  std::string name;
};
// Throws Error(invalid) for marks that are none (".wh.", ".wh...", ".wh..wh.x"), also in the middle
// of a path.
Whiteout parse_whiteout(const std::vector<std::string>& parts);

// True for extended attributes that a layer keeps: user.* and file capabilities. Not those of
// overlayfs, with which an image could make the kernel look elsewhere.
bool is_kept_xattr(std::string_view name);

// Counts what a layer takes up, against its limits. Throws Error(exhausted).
class Budget {
 public:
  Budget(std::uint64_t max_bytes, std::uint64_t max_entries);

  void add_entry();
  void add_folder();
  // Data, in the order it is written.
  void add_data(std::uint64_t bytes);
  // Files take whole blocks.
  void end_file(std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_; }

 private:
  void add(std::uint64_t bytes);

  std::uint64_t max_bytes_;
  std::uint64_t max_entries_;
  std::uint64_t bytes_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace hearth::unpack
