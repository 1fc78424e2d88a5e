// The store's files as a whole: opening, copying, restoring.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/on_failure.h"
#include "linux/fd.h"
#include "store/checkpoints_internal.h"
#include "store/late_news_internal.h"
#include "store/log_file_internal.h"
#include "store/mark_internal.h"
#include "store/state_internal.h"
#include "store/store.h"

namespace hearth::store {
namespace {

// Half-made files: one that is there was left by a crash.
std::string part_of(const std::string& path) {
  return path + "-part";
}
std::string wal_of(const std::string& path) {
  return path + "-wal";
}

void remove_store_file(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code ignored;
    std::filesystem::remove(path + suffix, ignored);
  }
}

void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const linux::Fd fd = linux::open_file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (::fsync(fd.get()) != 0) throw_errno("fsync '{}'", folder);
}

void refuse_existing(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) {
    fail(Code::already_exists, "'{}' is there: move it away first", path);
  }
}

void put_in_place(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_errno("rename '{}' to '{}'", from, to);
  sync_folder_of(to);
}

void copy_file(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error) {
    fail(code_from_errno(error.value()), "copy '{}' to '{}': {}", from, to,
         errno_text(error.value()));
  }
  if (::chmod(to.c_str(), 0600) != 0) throw_errno("chmod '{}'", to);
}

}  // namespace

Store::Store(Options options)
    : clock_(options.clock != nullptr ? *options.clock : system_clock_),
      mark_(std::make_unique<Mark>(options.path)),
      file_(std::make_unique<LogFile>(options.path)) {
  const LogFile::Ends ends = file_->ends();
  if (ends.newest < mark_->acknowledged()) {
    fail(Code::internal,
         "store '{}' is damaged: revision {} was acknowledged, but the newest that can be read is "
         "{}",
         options.path, mark_->acknowledged(), ends.newest);
  }
  if (!mark_->was_there() && ends.newest > kFirstRevision) {
    fail(Code::internal, "store '{}' has no mark: '{}' is gone, so nobody knows what is missing",
         options.path, Mark::path_of(options.path));
  }
  state_ = std::make_unique<State>(State::Limits{.keep_for = options.keep_for,
                                                 .keep_changes = options.keep_changes,
                                                 .keep_bytes = options.keep_bytes},
                                   ends.oldest, ends.oldest);
  late_news_ = std::make_unique<LateNews>(*state_);
  load(*file_, *state_);
  mark_->begin(ends.newest);
  if (!mark_->was_there()) sync_folder_of(options.path);
  checkpoints_ =
      std::make_unique<Checkpoints>(options.path, file_mutex_, [this] { mark_->advance_synced(); });
}

void Store::load(LogFile& file, State& state) {
  // How old the history is, nobody wrote down: it is kept for as long as if it were new.
  const Time now = clock_.now();
  const LogFile::Ends ends = file.ends();
  file.read([&](const LogFile::Row& row) {
    const Revision revision = row.object->revision;
    const ObjectPtr previous = state.find(row.object->key);
    if (revision > ends.oldest) {
      const bool follows = revision == state.revision() + 1;
      if (!follows || (row.kind == ChangeKind::added) != (previous == nullptr)) {
        fail(Code::internal, "store '{}' is damaged: revision {} does not follow from those before",
             file.path(), revision);
      }
      const auto change = std::make_shared<const Change>(Change{
          .kind = row.kind, .revision = revision, .object = row.object, .previous = previous});
      for (const Revision old : state.publish({change}, now)) garbage_.push_back(old);
      return;
    }
    if (previous) {
      garbage_.push_back(previous->revision);
      state.unload(previous);
    }
    if (row.kind == ChangeKind::deleted) {
      garbage_.push_back(revision);
    } else {
      state.load(row.object);
    }
  });
  if (state.revision() != ends.newest) {
    fail(Code::internal, "store '{}' is damaged: it ends at revision {} instead of {}", file.path(),
         state.revision(), ends.newest);
  }
}

void Store::backup(const std::string& path) {
  refuse_existing(path);
  const std::string part = part_of(path);
  remove_store_file(part);
  OnFailure clean_up([&] { remove_store_file(part); });
  std::optional<LogFile::Copy> copy;
  {
    const std::lock_guard file(file_mutex_);
    copy.emplace(*file_, part);
  }
  for (bool more = true; more;) {
    const std::lock_guard file(file_mutex_);
    more = copy->step();
    if (!more) copy->finish();
  }
  copy.reset();
  put_in_place(part, path);
  clean_up.release();
}

void restore(const std::string& backup, const std::string& path) {
  std::optional<Mark> source;  // what is copied may not be running
  if (::access(Mark::path_of(backup).c_str(), F_OK) == 0) source.emplace(backup);
  refuse_existing(path);
  Mark mark(path);
  if (mark.was_there()) refuse_existing(Mark::path_of(path));

  const std::string part = part_of(path);
  remove_store_file(part);
  OnFailure clean_up([&] { remove_store_file(part); });
  copy_file(backup, part);
  // To SQLite it would be a new store.
  if (std::filesystem::is_empty(part)) fail(Code::invalid, "'{}' is empty: no backup", backup);
  if (::access(wal_of(backup).c_str(), F_OK) == 0) copy_file(wal_of(backup), wal_of(part));
  Revision newest = kFirstRevision;
  {
    LogFile file(part);
    newest = file.ends().newest;
    file.read([](const LogFile::Row&) {});
    file.checkpoint();
  }
  std::filesystem::remove(wal_of(part));
  std::filesystem::remove(wal_of(path));  // of a store that was there once: not this one's
  mark.begin(newest);
  put_in_place(part, path);
  clean_up.release();
}

}  // namespace hearth::store
