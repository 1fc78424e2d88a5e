// A store in a folder of its own with the real helper: for the kernel tests of this room. Not for
// anything else.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "image/store.h"
#include "image/tar_testing.h"
#include "linux/kernel_testing.h"
#include "linux/sealed_memfd.h"

namespace hearth::image {

// Far from those of sandboxes and users.
inline constexpr linux::IdRange kTestIds{.first = 1'900'000'000, .count = 65536};

// Sanitizers cannot live behind the helper's filter: their builds test the store with the helper as
// it is released, if they are told where one is.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr const char* kProgramFolder = "HEARTH_RELEASED_BIN";
#else
inline constexpr const char* kProgramFolder = "HEARTH_BIN";
#endif

inline std::string unpack_program() {
  const char* folder = ::getenv(kProgramFolder);
  return std::string(folder == nullptr ? "" : folder) + "/hearth-unpack";
}

inline linux::Fd blob(std::string_view bytes) {
  return linux::make_sealed_memfd("blob", bytes);
}

inline struct stat status_of(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) throw_errno("stat '{}'", path);
  return status;
}

inline std::string xattr_of(const std::string& path, const char* name) {
  char value[256];
  const ssize_t size = ::lgetxattr(path.c_str(), name, value, sizeof value);
  return size < 0 ? "(none)" : std::string(value, static_cast<std::size_t>(size));
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_NEEDS(CAP_SYS_ADMIN);
    if (::access(unpack_program().c_str(), X_OK) != 0)
      GTEST_SKIP() << "needs hearth-unpack in the folder that " << kProgramFolder << " names";
    char name[] = "/tmp/hearth-store-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw_errno("make a scratch folder");
    path_ = name;
    open_store();
  }

  void TearDown() override {
    store_.reset();
    if (!path_.empty()) std::filesystem::remove_all(path_);
  }

  // Again, as after a restart.
  void open_store(std::uint64_t quota_bytes = 0) {
    store_.reset();
    folder_ = linux::open_file(path_, O_RDONLY | O_DIRECTORY);
    store_ = std::make_unique<Store>(StoreOptions{.folder_fd = folder_.get(),
                                                  .unpack_program = unpack_program(),
                                                  .helper_ids = kTestIds,
                                                  .quota_bytes = quota_bytes});
  }

  Lease add(const std::vector<TarPart>& parts) {
    return store_->add_layer(blob(tar_of(parts)).get(), {});
  }

  std::size_t count(const char* folder) const {
    const std::filesystem::directory_iterator entries(path_ + "/" + folder);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  // Where a leased layer's files are.
  std::string files(const Lease& lease) const {
    return path_ + "/layers/" + lease.layers().front().substr(7) + "/fs/";
  }

  std::string path_;
  linux::Fd folder_;
  std::unique_ptr<Store> store_;
};

}  // namespace hearth::image
