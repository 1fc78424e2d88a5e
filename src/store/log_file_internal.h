// The log on disk: one row for each write that is still of use to somebody.
//
// The newest row of a key is its state; the rows after `oldest` are the history, without a gap.
// Rows are removed only in a transaction that adds some, so the newest row can vouch for the whole
// file: it carries `oldest`, and how many other rows there are and what their sums add up to. Each
// row has a sum over all of itself. So a row that is damaged, missing, old or made up is noticed.
//
// One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/object.h"
#include "store/sqlite_internal.h"

struct sqlite3_backup;

namespace hearth::store {

class LogFile {
 public:
  // Makes it if it is not there. Throws Error: invalid (no store, or of a newer format).
  explicit LogFile(const std::string& path);
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  const std::string& path() const { return connection_.path(); }

  struct Ends {
    Revision newest = kFirstRevision;
    Revision oldest = kFirstRevision;
  };
  // As the newest row has them; read() verifies it.
  Ends ends();

  struct Row {
    ChangeKind kind{};
    ObjectPtr object;
  };
  // Calls `each` for every row, in order of revision, after verifying it; then verifies the whole.
  // Until this has succeeded, nothing in the files is changed. Throws Error(internal) that names
  // the file and the revision.
  void read(const std::function<void(const Row&)>& each);

  struct Batch {
    const std::vector<ChangePtr>& changes;
    const std::vector<Revision>& garbage;  // rows to remove, in the order in which they may go
    Revision oldest = 0;
    bool sync = false;  // to the disk itself, before it returns
  };
  // All or nothing.
  void append(const Batch& batch);

  // The write-ahead log: time for a checkpoint.
  bool is_long() const;
  bool is_too_long() const;  // it should not wait for that
  // Copies all of it into the file, now. Throws Error.
  void checkpoint();

  // A copy of all of it into a new file, by steps; other work may happen between two.
  class Copy {
   public:
    Copy(LogFile& from, const std::string& path);
    ~Copy();
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;
    bool step();    // true: there is more to do
    void finish();  // afterwards it is one file, and on the disk

   private:
    Connection to_;
    sqlite3_backup* backup_;
  };

 private:
  friend class Copy;
  void make_or_check();
  void insert(const Change& change, Revision oldest);
  void remove(Revision revision);

  Connection connection_;
  std::unique_ptr<Statement> begin_;
  std::unique_ptr<Statement> commit_;
  std::unique_ptr<Statement> insert_;
  std::unique_ptr<Statement> remove_;
  std::uint64_t rows_ = 0;
  std::uint64_t total_ = 0;  // of the rows' sums
  bool reserved_ = false;    // the write-ahead log has the size it needs
  int frames_ = 0;           // in the write-ahead log
};

}  // namespace hearth::store
