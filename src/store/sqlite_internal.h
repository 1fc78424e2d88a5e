// SQLite as RAII: a connection, a prepared statement, and errors that name the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace hearth::store {

class Connection {
 public:
  // Makes the file, for its owner only, if it is not there.
  explicit Connection(const std::string& path);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  sqlite3* get() const { return db_; }
  const std::string& path() const { return path_; }

  void execute(const char* sql);
  // The first column of the first row; 0 where there is none.
  std::int64_t number(const char* sql);
  // Does not throw: the failure that made it necessary is the one to report.
  void roll_back() noexcept;
  // Whether the write-ahead log is copied into the file when this closes.
  void set_checkpoint_on_close(bool on);

  // For the result of the call just made: exhausted for a full disk, internal for damage.
  [[noreturn]] void fail_now(std::string_view what) const;

 private:
  std::string path_;
  sqlite3* db_ = nullptr;
};

// Texts are bound without a copy: they must live until reset().
class Statement {
 public:
  Statement(Connection& connection, std::string_view sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  Statement& bind(int index, std::uint64_t number);
  Statement& bind(int index, std::string_view text);
  bool step();  // true: there is a row
  void reset();

  std::uint64_t number(int column) const;
  std::string_view text(int column) const;  // until the next step()

 private:
  Connection& connection_;
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace hearth::store
