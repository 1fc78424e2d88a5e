// Paths of strangers, below a folder with links of every kind in it.
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "inside/confined_path.h"

using namespace hearth;

namespace {

namespace fs = std::filesystem;

class Playground {
 public:
  Playground() {
    char path[] = "/tmp/hearth-confined-fuzz-XXXXXX";
    HEARTH_ASSERT(::mkdtemp(path) != nullptr);
    path_ = path;
    const fs::path root = path_ / "r";
    fs::create_directories(root / "a" / "b");
    std::ofstream(root / "f") << "f";
    fs::create_symlink("..", root / "u");
    fs::create_symlink("/", root / "t");
    fs::create_symlink("a/b", root / "l");
    fs::create_symlink(root / "a", root / "a" / "s");
    fs::create_symlink("c", root / "c");
    fs::create_symlink("../n/m", root / "a" / "d");
  }
  ~Playground() { fs::remove_all(path_); }
  Playground(const Playground&) = delete;
  Playground& operator=(const Playground&) = delete;

  std::string root() const { return (path_ / "r").string(); }

 private:
  fs::path path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Playground playground;
  static const inside::ConfinedRoot root(playground.root(),
                                         {.uid = ::geteuid(), .gid = ::getegid()});
  const std::string_view path(reinterpret_cast<const char*>(data), size);
  try {
    const inside::Place place = root.locate(path);
    HEARTH_ASSERT(place.existing <= place.names.size());
    std::string real = playground.root();
    for (const std::string& name : place.names) {
      HEARTH_ASSERT(!name.empty() && name != "." && name != ".." &&
                    name.find('/') == std::string::npos);
      real += "/" + name;
    }
    // The kernel, which follows everything, ends in the same place.
    const bool is_there = place.kind != inside::Place::Kind::nothing;
    if (is_there) HEARTH_ASSERT(fs::canonical(real) == real);
  } catch (const Error& error) {
    HEARTH_ASSERT(error.code() == Code::forbidden || error.code() == Code::not_found ||
                  error.code() == Code::invalid);
  }
  return 0;
}
