#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>

#include "base/error.h"
#include "linux/fd.h"
#include "store/write_ahead_file_internal.h"

namespace hearth::store {
namespace {

constexpr char kName[] = "hearth";

// A commit of some sixty objects. What is longer takes more than one call.
constexpr std::size_t kMostGathered = 256 << 10;

// Of sqlite3_file_control: those below are SQLite's.
constexpr int kSyncCommits = 4800;

class WriteAheadFile {
 public:
  WriteAheadFile(linux::Fd fd, bool is_new, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)), folder_is_due_(is_new) {}

  int read(void* to, int size, off_t at);
  int write(const void* from, int size, off_t at);
  int sync();
  int truncate(off_t size);
  int size(sqlite3_int64& size);
  // What is gathered, to the kernel.
  int flush();

  void set_sync_commits(bool sync) { sync_commits_ = sync; }
  int last_errno() const { return errno_; }

 private:
  int write_out(const char* from, std::size_t size, off_t at);
  int sync_folder();
  int note(int result) {
    errno_ = errno;
    return result;
  }

  linux::Fd fd_;
  std::string path_;
  std::array<char, kMostGathered> gathered_;  // NOLINT(*-member-init): only what is filled is used
  std::size_t used_ = 0;
  off_t start_ = 0;  // where in the file `gathered_` belongs
  bool sync_commits_ = true;
  bool has_header_ = false;     // written since the last sync
  bool folder_is_due_ = false;  // to be synced, for the file's name
  int errno_ = 0;
};

int WriteAheadFile::read(void* to, int size, off_t at) {
  if (const int result = flush(); result != SQLITE_OK) return result;
  auto* next = static_cast<char*>(to);
  std::size_t left = static_cast<std::size_t>(size);
  while (left > 0) {
    const ssize_t got = ::pread(fd_.get(), next, left, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return note(SQLITE_IOERR_READ);
    if (got == 0) {
      std::memset(next, 0, left);  // as the interface wants it
      return SQLITE_IOERR_SHORT_READ;
    }
    next += got;
    at += got;
    left -= static_cast<std::size_t>(got);
  }
  return SQLITE_OK;
}

int WriteAheadFile::write(const void* from, int size, off_t at) {
  const auto bytes = static_cast<std::size_t>(size);
  if (at == 0) has_header_ = true;
  const bool follows = at == start_ + static_cast<off_t>(used_);
  if (!follows || used_ + bytes > gathered_.size()) {
    if (const int result = flush(); result != SQLITE_OK) return result;
    start_ = at;
  }
  if (bytes > gathered_.size()) {
    start_ = at + size;
    return write_out(static_cast<const char*>(from), bytes, at);
  }
  std::memcpy(gathered_.data() + used_, from, bytes);
  used_ += bytes;
  return SQLITE_OK;
}

int WriteAheadFile::flush() {
  if (used_ == 0) return SQLITE_OK;
  // Whatever comes of it: SQLite takes back a commit that failed, and writes it anew.
  const std::size_t size = std::exchange(used_, 0);
  const off_t at = std::exchange(start_, start_ + static_cast<off_t>(size));
  return write_out(gathered_.data(), size, at);
}

int WriteAheadFile::write_out(const char* from, std::size_t size, off_t at) {
  while (size > 0) {
    const ssize_t written = ::pwrite(fd_.get(), from, size, at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return note(errno == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE);
    if (written == 0) return SQLITE_FULL;
    from += written;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return SQLITE_OK;
}

int WriteAheadFile::sync() {
  if (const int result = flush(); result != SQLITE_OK) return result;
  // Frames that reach the disk before the header that they belong to would be taken for others.
  if (!sync_commits_ && !has_header_) return SQLITE_OK;
  if (::fdatasync(fd_.get()) != 0) return note(SQLITE_IOERR_FSYNC);
  has_header_ = false;
  return folder_is_due_ ? sync_folder() : SQLITE_OK;
}

int WriteAheadFile::sync_folder() {
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const linux::Fd fd(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return note(SQLITE_IOERR_DIR_FSYNC);
  folder_is_due_ = false;
  return SQLITE_OK;
}

int WriteAheadFile::truncate(off_t size) {
  if (const int result = flush(); result != SQLITE_OK) return result;
  return ::ftruncate(fd_.get(), size) == 0 ? SQLITE_OK : note(SQLITE_IOERR_TRUNCATE);
}

int WriteAheadFile::size(sqlite3_int64& size) {
  if (const int result = flush(); result != SQLITE_OK) return result;
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return note(SQLITE_IOERR_FSTAT);
  size = status.st_size;
  return SQLITE_OK;
}

// What SQLite has of it: memory that it allocates, beginning with its own struct.
struct Handle {
  sqlite3_file base;
  WriteAheadFile* file;
};

WriteAheadFile& file_of(sqlite3_file* handle) {
  return *reinterpret_cast<Handle*>(handle)->file;
}

int close_file(sqlite3_file* handle) {
  WriteAheadFile* file = &file_of(handle);
  const int result = file->flush();
  delete file;  // NOLINT(cppcoreguidelines-owning-memory): owned by SQLite's handle
  return result;
}

int control_file(sqlite3_file* handle, int what, void* argument) {
  switch (what) {
    case kSyncCommits:
      file_of(handle).set_sync_commits(*static_cast<const bool*>(argument));
      return SQLITE_OK;
    case SQLITE_FCNTL_LAST_ERRNO:
      *static_cast<int*>(argument) = file_of(handle).last_errno();
      return SQLITE_OK;
    default:
      return SQLITE_NOTFOUND;
  }
}

// Locks and shared memory are the database file's business.
const sqlite3_io_methods kMethods = {
    .iVersion = 1,
    .xClose = close_file,
    .xRead = [](sqlite3_file* handle, void* to, int size,
                sqlite3_int64 at) { return file_of(handle).read(to, size, at); },
    .xWrite = [](sqlite3_file* handle, const void* from, int size,
                 sqlite3_int64 at) { return file_of(handle).write(from, size, at); },
    .xTruncate = [](sqlite3_file* handle,
                    sqlite3_int64 size) { return file_of(handle).truncate(size); },
    .xSync = [](sqlite3_file* handle, int) { return file_of(handle).sync(); },
    .xFileSize = [](sqlite3_file* handle,
                    sqlite3_int64* size) { return file_of(handle).size(*size); },
    .xLock = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xUnlock = [](sqlite3_file*, int) { return SQLITE_OK; },
    .xCheckReservedLock =
        [](sqlite3_file*, int* is_reserved) {
          *is_reserved = 0;
          return SQLITE_OK;
        },
    .xFileControl = control_file,
    .xSectorSize = [](sqlite3_file*) { return 4096; },
    .xDeviceCharacteristics = [](sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; },
};

// Locks the database against other processes for good, which lets connections of this one share the
// index of the write-ahead log in plain memory, without a file for it or a system call for a lock.
sqlite3_vfs* plain_vfs() {
  return ::sqlite3_vfs_find("unix-excl");
}

int open_write_ahead(const char* path, Handle& handle) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  linux::Fd fd(::open(path, kFlags));
  const bool is_new = !fd && errno == ENOENT;
  if (is_new) fd.reset(::open(path, kFlags | O_CREAT, 0600));
  if (!fd) return SQLITE_CANTOPEN;
  try {
    handle.file = new WriteAheadFile(std::move(fd), is_new, path);
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
  handle.base.pMethods = &kMethods;
  return SQLITE_OK;
}

int open_any(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  sqlite3_vfs* plain = plain_vfs();
  if ((flags & SQLITE_OPEN_WAL) == 0) return plain->xOpen(plain, path, file, flags, out_flags);
  file->pMethods = nullptr;  // until it is open
  if (out_flags != nullptr) *out_flags = flags;
  return open_write_ahead(path, *reinterpret_cast<Handle*>(file));
}

// All but opening is as it was: those functions do not look at which VFS they are asked for.
sqlite3_vfs make_vfs() {
  sqlite3_vfs vfs = *plain_vfs();
  vfs.pNext = nullptr;
  vfs.zName = kName;
  vfs.szOsFile = std::max<int>(vfs.szOsFile, sizeof(Handle));
  vfs.xOpen = open_any;
  return vfs;
}

}  // namespace

const char* write_ahead_vfs() {
  static sqlite3_vfs vfs = make_vfs();
  static const int result = ::sqlite3_vfs_register(&vfs, /*makeDflt=*/0);
  if (result != SQLITE_OK) fail(Code::internal, "SQLite refuses our files: {}", result);
  return kName;
}

void sync_commits(sqlite3* db, bool sync) {
  sqlite3_file* file = nullptr;
  ::sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
  if (file == nullptr || file->pMethods != &kMethods) {
    fail(Code::internal, "this database has no write-ahead log of ours");
  }
  control_file(file, kSyncCommits, &sync);
}

}  // namespace hearth::store
