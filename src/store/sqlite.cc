#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>

#include "base/error.h"
#include "linux/fd.h"
#include "store/sqlite_internal.h"
#include "store/write_ahead_file_internal.h"

namespace hearth::store {
namespace {

Code code_of(int result, int system_error) {
  switch (result & 0xff) {
    case SQLITE_FULL:
      return Code::exhausted;
    case SQLITE_IOERR:
      // Beyond a limit on file sizes or a quota, SQLite knows only that writing failed.
      if (system_error == EFBIG || system_error == EDQUOT || system_error == ENOSPC) {
        return Code::exhausted;
      }
      return Code::internal;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::conflict;
    case SQLITE_NOTADB:
      return Code::invalid;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return system_error == 0 ? Code::invalid : code_from_errno(system_error);
    default:
      return Code::internal;
  }
}

// What the system said, for an error of the database file or of its write-ahead log.
int system_error_of(sqlite3* db) {
  int error = ::sqlite3_system_errno(db);
  if (error != 0) return error;
  for (const int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    if (::sqlite3_file_control(db, "main", which, &file) != SQLITE_OK) continue;
    if (file == nullptr || file->pMethods == nullptr) continue;
    file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error);
    if (error != 0) return error;
  }
  return 0;
}

// SQLite would make it for everybody to read; what it makes beside it is as this is. One that is
// there is not even opened: closing it would drop the locks that another connection of this process
// has on it (POSIX, fcntl).
void make_for_owner(const std::string& path) {
  const linux::Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made && errno != EEXIST) throw_errno("open '{}'", path);
}

}  // namespace

Connection::Connection(const std::string& path) : path_(path) {
  make_for_owner(path);
  // One thread at a time is the callers' business.
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (::sqlite3_open_v2(path.c_str(), &db_, kFlags, write_ahead_vfs()) != SQLITE_OK) {
    try {
      fail_now("open");
    } catch (...) {
      ::sqlite3_close(db_);
      throw;
    }
  }
  // Whatever is in the file, it is data: nothing in its schema may run anything.
  ::sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  ::sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
}

Connection::~Connection() {
  ::sqlite3_close(db_);
}

void Connection::execute(const char* sql) {
  if (::sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail_now(sql);
}

std::int64_t Connection::number(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? static_cast<std::int64_t>(statement.number(0)) : 0;
}

void Connection::roll_back() noexcept {
  // Some failures have done it already.
  if (::sqlite3_get_autocommit(db_) == 0) {
    ::sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Connection::set_checkpoint_on_close(bool on) {
  ::sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 0 : 1, nullptr);
}

void Connection::fail_now(std::string_view what) const {
  const int result = ::sqlite3_extended_errcode(db_);
  const std::string why = ::sqlite3_errmsg(db_);
  const bool is_about_files = (result & 0xff) == SQLITE_IOERR || (result & 0xff) == SQLITE_CANTOPEN;
  const int system_error = is_about_files ? system_error_of(db_) : 0;
  fail(code_of(result, system_error), "{} in '{}': {}{}", what, path_, why,
       system_error == 0 ? "" : " (" + errno_text(system_error) + ")");
}

Statement::Statement(Connection& connection, std::string_view sql) : connection_(connection) {
  if (::sqlite3_prepare_v2(connection.get(), sql.data(), static_cast<int>(sql.size()), &statement_,
                           nullptr) != SQLITE_OK) {
    connection.fail_now(sql);
  }
}

Statement::~Statement() {
  ::sqlite3_finalize(statement_);
}

Statement& Statement::bind(int index, std::uint64_t number) {
  if (::sqlite3_bind_int64(statement_, index, static_cast<sqlite3_int64>(number)) != SQLITE_OK) {
    connection_.fail_now("bind a number");
  }
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  // A null pointer would be NULL, which is not the empty text.
  const char* data = text.empty() ? "" : text.data();
  if (::sqlite3_bind_blob64(statement_, index, data, text.size(), SQLITE_STATIC) != SQLITE_OK) {
    connection_.fail_now("bind a text");
  }
  return *this;
}

bool Statement::step() {
  const int result = ::sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  const std::string_view sql = ::sqlite3_sql(statement_);
  connection_.fail_now(sql.substr(0, sql.find(' ')));
}

void Statement::reset() {
  ::sqlite3_reset(statement_);
  ::sqlite3_clear_bindings(statement_);
}

std::uint64_t Statement::number(int column) const {
  return static_cast<std::uint64_t>(::sqlite3_column_int64(statement_, column));
}

std::string_view Statement::text(int column) const {
  const void* data = ::sqlite3_column_blob(statement_, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data),
          static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column))};
}

}  // namespace hearth::store
