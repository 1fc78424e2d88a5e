#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wire.h"
#include "store/mark_internal.h"
#include "store/sum_internal.h"

namespace hearth::store {
namespace {

constexpr std::string_view kMagic = "hearth store mark 1";
constexpr std::size_t kMostBytes = 4096;

}  // namespace

std::string Mark::read_boot_id() {
  std::string id = linux::read_file("/proc/sys/kernel/random/boot_id");
  if (id.ends_with('\n')) id.pop_back();
  return id;
}

Mark::Mark(const std::string& store_path, std::string boot_id)
    : path_(path_of(store_path)),
      boot_id_(std::move(boot_id)),
      file_(linux::open_file(path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0600)) {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw_errno("lock '{}'", path_);
    fail(Code::conflict, "store '{}' is in use: somebody holds the lock of '{}'", store_path,
         path_);
  }
  const std::string bytes =
      linux::read_file("/proc/self/fd/" + std::to_string(file_.get()), kMostBytes);
  was_there_ = !bytes.empty();
  if (was_there_) read(bytes);
}

void Mark::read(const std::string& bytes) {
  try {
    wire::Reader in(bytes);
    if (in.text() != kMagic) fail(Code::invalid, "not a mark");
    const std::string boot_id = in.text();
    acknowledged_ = in.u64();
    synced_ = in.u64();
    const std::uint64_t sum = in.u64();
    in.end();
    if (sum != Sum().text(boot_id).number(acknowledged_).number(synced_).value()) {
      fail(Code::invalid, "its sum is wrong");
    }
    if (boot_id != boot_id_) acknowledged_ = synced_;
  } catch (const Error& error) {
    fail(Code::internal, "'{}' is damaged: {}", path_, error.what());
  }
}

std::string Mark::render() const {
  const std::uint64_t sum = Sum().text(boot_id_).number(acknowledged_).number(synced_).value();
  wire::Writer out;
  out.text(kMagic).text(boot_id_).u64(acknowledged_).u64(synced_).u64(sum);
  return std::move(out).take();
}

void Mark::begin(Revision revision) {
  acknowledged_ = revision;
  const std::string bytes = render();
  const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), 0);
  if (written < 0) throw_errno("write '{}'", path_);
  if (static_cast<std::size_t>(written) != bytes.size()) {
    fail(Code::exhausted, "write '{}': only {} of {} bytes", path_, written, bytes.size());
  }
  if (was_there_) return;
  // From here on its size never changes: an update is one sector, whole or not there.
  if (::fsync(file_.get()) != 0) throw_errno("fsync '{}'", path_);
}

void Mark::advance(Revision acknowledged, bool synced) noexcept {
  acknowledged_ = acknowledged;
  if (synced) synced_ = acknowledged;
  const std::string bytes = render();
  [[maybe_unused]] const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), 0);
}

void Mark::advance_synced() noexcept {
  advance(acknowledged_, /*synced=*/true);
  [[maybe_unused]] const int result = ::fdatasync(file_.get());
}

}  // namespace hearth::store
