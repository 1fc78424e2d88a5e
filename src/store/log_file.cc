#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "linux/fd.h"
#include "store/log_file_internal.h"
#include "store/sum_internal.h"
#include "store/write_ahead_file_internal.h"

namespace hearth::store {
namespace {

constexpr std::int64_t kApplicationId = 0x48727468;  // "Hrth"
constexpr std::int64_t kFormat = 1;

// 16 MiB of pages of 4 KiB. Copying the write-ahead log into the file costs two fsyncs, so rarely;
// at start it is read and summed up by SQLite, so not too rarely.
constexpr int kCheckpointFrames = 4096;
// Where writers have to wait for that: they may be faster than it is.
constexpr int kMostFrames = 2 * kCheckpointFrames;
constexpr int kPageBytes = 4096;

// Each is a few milliseconds for which writers wait.
constexpr int kPagesPerStep = 512;

// Small columns first: those behind a long text would be looked for through all of it.
constexpr char kSchema[] =
    "CREATE TABLE log(revision INTEGER PRIMARY KEY, created INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, oldest INTEGER NOT NULL, others INTEGER NOT NULL,"
    " total INTEGER NOT NULL, sum INTEGER NOT NULL, resource BLOB NOT NULL, ns BLOB NOT NULL,"
    " name BLOB NOT NULL, tags BLOB NOT NULL, text BLOB NOT NULL) STRICT";
constexpr char kColumns[] =
    "revision, created, kind, oldest, others, total, sum, resource, ns, name, tags, text";

// What is in a row besides its object.
struct Vouch {
  ChangeKind kind{};
  Revision oldest = 0;
  std::uint64_t others = 0;  // how many other rows there are
  std::uint64_t total = 0;   // of their sums
};

std::uint64_t sum_of(const Object& object, const Vouch& vouch) {
  return Sum()
      .number(object.revision)
      .number(object.created)
      .number(static_cast<std::uint64_t>(vouch.kind))
      .number(vouch.oldest)
      .number(vouch.others)
      .number(vouch.total)
      .text(object.key.resource)
      .text(object.key.ns)
      .text(object.key.name)
      .text(object.tags.packed())
      .text(object.text)
      .value();
}

// fsync of a file that does not grow is a third of one that does, so the write-ahead log has its
// full size once the first fsync is asked for: zeros, which SQLite takes for the end of it. It is
// written over again and again, and stays when the store is closed. Without room for that, it grows
// as it always would.
void reserve_write_ahead(const std::string& path) {
  constexpr off_t kFrameHeader = 24;
  constexpr off_t kEnough = kCheckpointFrames * (kPageBytes + kFrameHeader);
  const linux::Fd file = linux::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) throw_errno("stat '{}'", path);
  const std::string zeros(1 << 20, '\0');
  for (off_t at = status.st_size; at < kEnough;) {
    const ssize_t written = ::pwrite(file.get(), zeros.data(), zeros.size(), at);
    if (written <= 0) return;
    at += written;
  }
}

// For one commit: every other sync that SQLite asks for is for a checkpoint, and a real one.
class SyncedCommits {
 public:
  SyncedCommits(sqlite3* db, bool sync) : db_(db) { sync_commits(db_, sync); }
  SyncedCommits(const SyncedCommits&) = delete;
  SyncedCommits& operator=(const SyncedCommits&) = delete;
  ~SyncedCommits() { sync_commits(db_, true); }

 private:
  sqlite3* db_;
};

ChangeKind kind_of(std::uint64_t number, const std::string& path, Revision revision) {
  if (number < 1 || number > 3) {
    fail(Code::internal, "store '{}' is damaged: revision {} has kind {}", path, revision, number);
  }
  return static_cast<ChangeKind>(number);
}

}  // namespace

LogFile::LogFile(const std::string& path) : connection_(path) {
  // Until everything was verified, what is in the write-ahead log stays there.
  connection_.set_checkpoint_on_close(false);
  make_or_check();
  begin_ = std::make_unique<Statement>(connection_, "BEGIN");
  commit_ = std::make_unique<Statement>(connection_, "COMMIT");
  insert_ = std::make_unique<Statement>(
      connection_, fmt::format("INSERT INTO log({}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", kColumns));
  remove_ =
      std::make_unique<Statement>(connection_, "DELETE FROM log WHERE revision=? RETURNING sum");
}

LogFile::~LogFile() = default;

void LogFile::make_or_check() {
  const std::int64_t application = connection_.number("PRAGMA application_id");
  const std::int64_t format = connection_.number("PRAGMA user_version");
  const bool is_new = application == 0 && format == 0 &&
                      connection_.number("SELECT count(*) FROM sqlite_schema") == 0;
  if (!is_new && application != kApplicationId) {
    fail(Code::invalid, "'{}' is a database, but no store", connection_.path());
  }
  if (!is_new && format != kFormat) {
    fail(Code::invalid, "store '{}' has format {}, and this program knows only {}",
         connection_.path(), format, kFormat);
  }
  connection_.execute("PRAGMA journal_mode=WAL");
  connection_.execute("PRAGMA wal_autocheckpoint=0");
  // The write-ahead log is written over again and again: fsync of a file that does not grow is
  // cheaper.
  int persist = 1;
  ::sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
  ::sqlite3_wal_hook(
      connection_.get(),
      [](void* self, sqlite3*, const char*, int frames) {
        static_cast<LogFile*>(self)->frames_ = frames;
        return SQLITE_OK;
      },
      this);
  // Which commits are indeed brought to the disk, append() says.
  connection_.execute("PRAGMA synchronous=FULL");
  if (!is_new) return;
  connection_.execute("BEGIN");
  connection_.execute(fmt::format("PRAGMA application_id={}", kApplicationId).c_str());
  connection_.execute(fmt::format("PRAGMA user_version={}", kFormat).c_str());
  connection_.execute(kSchema);
  connection_.execute("COMMIT");
}

LogFile::Ends LogFile::ends() {
  Statement last(connection_, "SELECT revision, oldest FROM log ORDER BY revision DESC LIMIT 1");
  if (!last.step()) return {};
  return {.newest = last.number(0), .oldest = last.number(1)};
}

void LogFile::read(const std::function<void(const Row&)>& each) {
  const std::string& path = connection_.path();
  Vouch newest;
  Statement rows(connection_, fmt::format("SELECT {} FROM log ORDER BY revision", kColumns));
  std::uint64_t count = 0;
  std::uint64_t total = 0;
  std::uint64_t last_sum = 0;
  while (rows.step()) {
    const Revision revision = rows.number(0);
    Object object{.key = {.resource = std::string(rows.text(7)),
                          .ns = std::string(rows.text(8)),
                          .name = std::string(rows.text(9))},
                  .revision = revision,
                  .created = rows.number(1),
                  .text = std::string(rows.text(11)),
                  .tags = {}};
    try {
      object.tags = Tags::parse_packed(std::string(rows.text(10)));
    } catch (const Error& error) {
      fail(Code::internal, "store '{}' is damaged: revision {}: {}", path, revision, error.what());
    }
    newest = {.kind = kind_of(rows.number(2), path, revision),
              .oldest = rows.number(3),
              .others = rows.number(4),
              .total = rows.number(5)};
    last_sum = rows.number(6);
    if (last_sum != sum_of(object, newest)) {
      fail(Code::internal, "store '{}' is damaged: revision {} has a wrong sum", path, revision);
    }
    ++count;
    total += last_sum;
    each({.kind = newest.kind, .object = std::make_shared<const Object>(std::move(object))});
  }
  if (count > 0 && (newest.others != count - 1 || newest.total != total - last_sum)) {
    fail(
        Code::internal,
        "store '{}' is damaged: revision {} vouches for {} other rows, but there are {}, or others",
        path, ends().newest, newest.others, count - 1);
  }
  rows_ = count;
  total_ = total;
  connection_.set_checkpoint_on_close(true);
}

void LogFile::append(const Batch& batch) {
  if (batch.sync && !std::exchange(reserved_, true)) {
    reserve_write_ahead(connection_.path() + "-wal");
  }
  const SyncedCommits synced(connection_.get(), batch.sync);
  const std::uint64_t rows = rows_;
  const std::uint64_t total = total_;
  begin_->step();
  begin_->reset();
  try {
    for (const Revision revision : batch.garbage) remove(revision);
    for (const ChangePtr& change : batch.changes) insert(*change, batch.oldest);
    commit_->step();
    commit_->reset();
  } catch (...) {
    commit_->reset();
    insert_->reset();
    remove_->reset();
    rows_ = rows;
    total_ = total;
    connection_.roll_back();
    throw;
  }
}

void LogFile::insert(const Change& change, Revision oldest) {
  const Object& object = *change.object;
  const Vouch vouch{.kind = change.kind, .oldest = oldest, .others = rows_, .total = total_};
  const std::uint64_t sum = sum_of(object, vouch);
  insert_->bind(1, object.revision)
      .bind(2, object.created)
      .bind(3, static_cast<std::uint64_t>(change.kind))
      .bind(4, vouch.oldest)
      .bind(5, vouch.others)
      .bind(6, vouch.total)
      .bind(7, sum)
      .bind(8, object.key.resource)
      .bind(9, object.key.ns)
      .bind(10, object.key.name)
      .bind(11, object.tags.packed())
      .bind(12, object.text);
  insert_->step();
  insert_->reset();
  ++rows_;
  total_ += sum;
}

void LogFile::remove(Revision revision) {
  remove_->bind(1, revision);
  if (!remove_->step()) {
    fail(Code::internal, "store '{}' is damaged: revision {} is gone", connection_.path(),
         revision);
  }
  total_ -= remove_->number(0);
  --rows_;
  remove_->reset();
}

bool LogFile::is_long() const {
  return frames_ >= kCheckpointFrames;
}

bool LogFile::is_too_long() const {
  return frames_ >= kMostFrames;
}

void LogFile::checkpoint() {
  if (::sqlite3_wal_checkpoint_v2(connection_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr,
                                  nullptr) != SQLITE_OK) {
    connection_.fail_now("checkpoint");
  }
}

LogFile::Copy::Copy(LogFile& from, const std::string& path)
    : to_(path), backup_(::sqlite3_backup_init(to_.get(), "main", from.connection_.get(), "main")) {
  if (backup_ == nullptr) to_.fail_now("begin a copy");
}

LogFile::Copy::~Copy() {
  ::sqlite3_backup_finish(backup_);
}

bool LogFile::Copy::step() {
  const int result = ::sqlite3_backup_step(backup_, kPagesPerStep);
  if (result == SQLITE_OK) return true;
  if (result == SQLITE_DONE) return false;
  ::sqlite3_backup_finish(std::exchange(backup_, nullptr));  // tells the connection why
  to_.fail_now("copy");
}

void LogFile::Copy::finish() {
  if (::sqlite3_backup_finish(std::exchange(backup_, nullptr)) != SQLITE_OK) to_.fail_now("copy");
  to_.execute("PRAGMA journal_mode=DELETE");
}

}  // namespace hearth::store
