// Archives as strangers write them, unpacked for real into a scratch folder. Nothing may crash, and
// nothing may change outside that folder: it lies in another one whose content is known.
//
// The first byte says how the rest is compressed, and whether the checksums of headers are put
// right first: a fuzzer would never hit them.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "image/tar_testing.h"
#include "linux/fd.h"
#include "linux/files.h"
#include "linux/sealed_memfd.h"
#include "unpack/decompress.h"
#include "unpack/tree_writer.h"

using namespace hearth;

namespace {

constexpr std::uint64_t kMaxBytes = 1 << 20;
constexpr std::uint64_t kMaxEntries = 200;

// OUTER/canary, OUTER/root; removed at the end of the process.
class Scratch {
 public:
  Scratch() {
    // In memory where that is possible: thousands of folders a second.
    std::string name = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    name += "/hearth-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw_errno("make a scratch folder");
    path_ = name;
    outer_ = linux::open_file(path_, O_RDONLY | O_DIRECTORY);
    linux::replace_file_at(outer_.get(), "canary", "alive");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(path_); }

  linux::Fd fresh_root() {
    linux::remove_all_at(outer_.get(), "root");
    if (::mkdirat(outer_.get(), "root", 0755) != 0) throw_errno("make a root");
    return linux::open_at(outer_.get(), "root", O_RDONLY | O_DIRECTORY);
  }

  void check() {
    HEARTH_ASSERT((linux::list_folder(outer_.get()) == std::vector<std::string>{"canary", "root"}));
    HEARTH_ASSERT(linux::read_file_at(outer_.get(), "canary") == "alive");
    struct stat canary{};
    HEARTH_ASSERT(::fstatat(outer_.get(), "canary", &canary, 0) == 0);
    HEARTH_ASSERT(canary.st_nlink == 1 && canary.st_uid == ::geteuid());
    HEARTH_ASSERT((canary.st_mode & 07777) == 0600);
  }

 private:
  std::string path_;
  linux::Fd outer_;
};

constexpr std::uint8_t kRepair = 0x80;

// Every block that says it is a header.
std::string repaired(std::string archive) {
  constexpr std::size_t kMagic = 257;
  for (std::size_t at = 0; at + unpack::kTarBlock <= archive.size(); at += unpack::kTarBlock) {
    if (archive.compare(at + kMagic, 5, "ustar") != 0) continue;
    archive.replace(at, unpack::kTarBlock,
                    image::tar_checksummed(archive.substr(at, unpack::kTarBlock)));
  }
  return archive;
}

void unpack_archive(std::string_view bytes, int root_fd) {
  const linux::Fd archive = linux::make_sealed_memfd("archive", bytes);
  unpack::ByteInput input(archive.get());
  unpack::apply_archive(input, root_fd, kMaxBytes, kMaxEntries);
}

std::string inflate(image::Compression compression, std::string_view bytes) {
  std::string out;
  const auto decompressor =
      unpack::Decompressor::make(compression, [&](std::span<const char> more) {
        if (out.size() + more.size() > kMaxBytes) fail(Code::exhausted, "enough");
        out.append(more.data(), more.size());
      });
  decompressor->add(bytes);
  decompressor->finish();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Scratch scratch;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto compression = static_cast<image::Compression>((data[0] & ~kRepair) % 3);
  const linux::Fd root = scratch.fresh_root();
  try {
    std::string archive = inflate(compression, bytes);
    if ((data[0] & kRepair) != 0) archive = repaired(std::move(archive));
    unpack_archive(archive, root.get());
  } catch (const Error& error) {
    // Who is not root may not give files away.
    HEARTH_ASSERT(error.code() == Code::invalid || error.code() == Code::exhausted ||
                  ::geteuid() != 0);
  }
  scratch.check();
  return 0;
}
