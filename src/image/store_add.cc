// How layers come into the store: from an archive, from a folder, from a sandbox.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/id.h"
#include "base/on_failure.h"
#include "image/store.h"
#include "image/unpack_helper.h"
#include "image/unpack_job.h"
#include "linux/mounts.h"

namespace hearth::image {
namespace {

using namespace std::chrono_literals;

// Generous: the slowest disk and the largest image. Nobody waits for ever.
constexpr Duration kPatience = 30min;

// As many as a layer's files can have.
constexpr std::uint32_t kIds = 65536;

// What one layer may unpack to where no quota says so.
constexpr std::uint64_t kMaxLayerBytes = std::uint64_t{64} << 30;
// A layer may always unpack to this much, and beyond it to so many times its own size: honest ones
// stay below 20 times, archives made to fill disks reach thousands.
constexpr std::uint64_t kUnsuspiciousBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxRatio = 200;
// What an archive is longer than the files in it: headers and padding, three blocks for each.
constexpr std::uint64_t kMaxArchiveOverhead = kMaxTreeEntries * 1536;

void check_blob(const LayerBlob& blob) {
  for (const std::string& digest : {blob.digest, blob.diff_id}) {
    if (!digest.empty() && !is_digest(digest)) fail(Code::invalid, "'{}' is no digest", digest);
  }
}

// The size of a file; nothing for a pipe.
std::optional<std::uint64_t> find_size(int blob_fd) {
  struct stat status{};
  if (::fstat(blob_fd, &status) != 0) throw_errno("stat a layer's archive");
  if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  if (!S_ISFIFO(status.st_mode)) fail(Code::invalid, "a layer's archive must be a file or a pipe");
  return std::nullopt;
}

std::uint64_t limit_for(std::optional<std::uint64_t> blob_size, std::uint64_t room) {
  const std::uint64_t most = std::min(room, kMaxLayerBytes);
  if (!blob_size) return most;
  // Clamped first: the size of a sparse file times anything is beyond 64 bits.
  const std::uint64_t size = std::min(*blob_size, kMaxLayerBytes);
  return std::min(most, kUnsuspiciousBytes + kMaxRatio * size);
}

// The folder as somebody with these ids sees it who may own everything in it.
linux::Fd mount_for(const HalfMade& half_made, linux::IdRange ids) {
  linux::Fd mount = linux::clone_mount(half_made.fs_path());
  const linux::Fd mapping = linux::make_user_namespace(ids);
  linux::set_mount_idmap(mount.get(), mapping.get());
  linux::set_mount_flags(mount.get(), MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  return mount;
}

void check_done(const Report& report) {
  if (!report.done) fail(report.code, "{}", report.message);
}

// Whichever failed, the other may complain of the pipe: the first for want of a reader, the second
// of an archive that is cut off. Who was interrupted has no message.
void check_both_done(const Report& first, const Report& second) {
  const bool first_complains = first.message.empty() || first.code == Code::unavailable;
  if (first_complains && !second.message.empty()) check_done(second);
  check_done(first);
  check_done(second);
}

// A helper that claims more was talked into it.
void check_bytes(const Report& report, std::uint64_t limit) {
  if (report.bytes > limit)
    fail(Code::internal, "the unpacker claims {} bytes, the limit being {}", report.bytes, limit);
}

}  // namespace

Lease Store::add_layer(int blob_fd, const LayerBlob& blob, int caller_fd) {
  check_blob(blob);
  if (blob.diff_id.empty()) return unpack(blob_fd, blob, caller_fd);
  if (auto lease = find_or_take_turn(blob.diff_id)) return std::move(*lease);
  const OnFailure turn([&] { end_turn(blob.diff_id); });  // at every end: it is never released
  return unpack(blob_fd, blob, caller_fd);
}

Lease Store::add_folder(int dir_fd, int caller_fd) {
  const bool overlay_marks = false;
  return copy(dir_fd, {.first = 0, .count = kIds}, overlay_marks, caller_fd);
}

Lease Store::add_upper(int upper_dir_fd, linux::IdRange owner, int caller_fd) {
  if (owner.count > kIds) fail(Code::invalid, "a layer has room for {} ids", kIds);
  const bool overlay_marks = true;
  return copy(upper_dir_fd, owner, overlay_marks, caller_fd);
}

std::optional<Lease> Store::find_or_take_turn(const std::string& diff_id) {
  std::unique_lock lock(mutex_);
  turn_ended_.wait(lock, [&] { return !turns_.contains(diff_id); });
  std::optional<Lease> lease = find_locked(diff_id);
  if (!lease) turns_.insert(diff_id);
  return lease;
}

std::optional<Lease> Store::find_layer(const std::string& diff_id) {
  const std::lock_guard lock(mutex_);
  return find_locked(diff_id);
}

void Store::end_turn(const std::string& diff_id) {
  {
    const std::lock_guard lock(mutex_);
    turns_.erase(diff_id);
  }
  turn_ended_.notify_all();
}

std::uint64_t Store::room() const {
  if (quota_bytes_ == 0) return kMaxLayerBytes;
  const std::lock_guard lock(mutex_);
  std::uint64_t needed = 0;
  for (const std::string& diff_id : needed_layers_locked()) {
    if (const auto layer = layers_.find(diff_id); layer != layers_.end())
      needed += layer->second.bytes;
  }
  return needed < quota_bytes_ ? quota_bytes_ - needed : 0;
}

Lease Store::unpack(int blob_fd, const LayerBlob& blob, int caller_fd) {
  const std::optional<std::uint64_t> size = find_size(blob_fd);
  if (!size && !blob.digest.empty())
    fail(Code::invalid, "the digest of an archive that comes by pipe cannot be checked beforehand");
  const std::uint64_t limit = limit_for(size, room());
  HalfMade half_made = folder_.begin();
  std::array<Report, 2> reports;
  {
    linux::Pipe pipe = linux::make_pipe();
    const linux::Fd mount = mount_for(half_made, helper_ids_);
    const Job decompress{.task = Job::Task::decompress,
                         .compression = blob.compression,
                         .digest = blob.digest,
                         .max_bytes = limit + kMaxArchiveOverhead};
    const Job apply{.task = Job::Task::apply, .max_bytes = limit};
    UnpackHelper first({.program = unpack_program_,
                        .ids = helper_ids_,
                        .input_fd = blob_fd,
                        .target_fd = pipe.write.get(),
                        .job = &decompress});
    // The second must not hold the pipe open that it waits on to end.
    pipe.write.reset();
    UnpackHelper second({.program = unpack_program_,
                         .ids = helper_ids_,
                         .input_fd = pipe.read.get(),
                         .target_fd = mount.get(),
                         .job = &apply});
    pipe.read.reset();
    const std::array<UnpackHelper*, 2> both{&first, &second};
    await_reports(both, reports, caller_fd, Deadline::after(kPatience));
  }
  check_both_done(reports[0], reports[1]);
  check_bytes(reports[1], limit);
  const std::string& diff_id = reports[0].diff_id;
  if (diff_id.empty()) fail(Code::internal, "the unpacker computed no digest");
  if (!blob.diff_id.empty() && diff_id != blob.diff_id)
    fail(Code::invalid, "the layer is {}, not {}", diff_id, blob.diff_id);
  return publish(std::move(half_made), {.diff_id = diff_id, .bytes = reports[1].bytes});
}

Lease Store::copy(int dir_fd, linux::IdRange owner, bool overlay_marks, int caller_fd) {
  const std::uint64_t limit = limit_for(std::nullopt, room());
  HalfMade half_made = folder_.begin();
  Report report;
  {
    const linux::Fd mount = mount_for(half_made, owner);
    const Job job{.task = Job::Task::copy, .max_bytes = limit, .overlay_marks = overlay_marks};
    UnpackHelper helper({.program = unpack_program_,
                         .ids = owner,
                         .input_fd = dir_fd,
                         .target_fd = mount.get(),
                         .job = &job});
    UnpackHelper* const helpers[] = {&helper};
    await_reports(helpers, {&report, 1}, caller_fd, Deadline::after(kPatience));
  }
  check_done(report);
  check_bytes(report, limit);
  return publish(std::move(half_made),
                 {.diff_id = "sha256:" + random_hex(32), .bytes = report.bytes});
}

Lease Store::publish(HalfMade half_made, const Finished& finished) {
  // Its name is known only now, and it is here already: no need to wait for the disk.
  if (auto lease = find_layer(finished.diff_id)) return std::move(*lease);
  folder_.seal(half_made, finished.bytes);
  std::optional<Lease> lease = try_publish(half_made, finished);
  if (!lease) {
    collect_garbage();
    lease = try_publish(half_made, finished);
  }
  if (!lease)
    fail(Code::exhausted, "the layer needs {} bytes, the images' quota is {}, of which {} are used",
         finished.bytes, quota_bytes_, usage().bytes);
  folder_.sync_layers();
  return std::move(*lease);
}

// Nothing when the quota has no room for it.
std::optional<Lease> Store::try_publish(HalfMade& half_made, const Finished& finished) {
  const std::lock_guard lock(mutex_);
  // Somebody who did not know its diff id beforehand either may have been faster.
  if (auto lease = find_locked(finished.diff_id)) return lease;
  if (quota_bytes_ != 0 && used_bytes_locked() + finished.bytes > quota_bytes_) return std::nullopt;
  folder_.publish(half_made, finished.diff_id);
  layers_[finished.diff_id].bytes = finished.bytes;
  return find_locked(finished.diff_id);
}

}  // namespace hearth::image
