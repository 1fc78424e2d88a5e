// Files that are not as we left them: noticed, named, and never served.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "linux/fd.h"
#include "store/mark_internal.h"
#include "store/testing_internal.h"

namespace hearth::store {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// As somebody with the sqlite3 program would.
void tamper(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(::sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << ::sqlite3_errmsg(db);
  ::sqlite3_close(db);
}

class DamageTest : public StoreTest {
 protected:
  void make_store() {
    Store store(options());
    for (int i = 0; i < 50; ++i) put(store, pod("p" + std::to_string(i)), std::string(100, 'x'));
    put(store, pod("p7"), "changed");
    remove(store, pod("p8"));
  }

  // The files as kill -9 would leave them: nothing is copied out of the write-ahead log.
  void copy_running(const std::string& to) const {
    for (const char* suffix : {"", "-wal", "-mark"}) copy_one(path(), to, suffix);
  }
  static void copy_one(const std::string& from, const std::string& to, const char* suffix) {
    std::filesystem::copy_file(from + suffix, to + suffix,
                               std::filesystem::copy_options::overwrite_existing);
  }

  void expect_refused(const std::string& store_path, Code code,
                      const std::vector<std::string>& parts) const {
    const Error error = error_of([&] { Store({.path = store_path}); });
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    // And it stays so.
    EXPECT_THROW(Store({.path = store_path}), Error);
  }
};

TEST_F(DamageTest, ARowThatWasChangedIsNamed) {
  for (const char* change :
       {"text=x'78'", "tags=x'0000000000000000'", "name=x'6161'", "ns=x''", "resource=x'61'",
        "kind=2", "created=11", "oldest=0", "others=8", "total=8", "sum=sum+1"}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    make_store();
    tamper(path(), std::string("UPDATE log SET ") + change + " WHERE revision=12");
    expect_refused(path(), Code::internal, {path(), "damaged", "revision 12"});
  }
}

TEST_F(DamageTest, RowsThatAreGoneAreMissed) {
  make_store();
  tamper(path(), "DELETE FROM log WHERE revision=12");
  expect_refused(path(), Code::internal, {path(), "damaged"});
}

TEST_F(DamageTest, RowsThatAreGoneFromTheEndAreMissed) {
  make_store();
  tamper(path(), "DELETE FROM log WHERE revision>30");
  expect_refused(path(), Code::internal, {path(), "revision 53 was acknowledged", "30"});
}

// Wherever one bit of the file is turned: it is noticed, or it was in a place that nothing is in.
TEST_F(DamageTest, AnyBitOfTheFile) {
  make_store();
  const Words before = [&] {
    Store store(options());
    return texts(store.list({.resource = "pods"}));
  }();
  const std::string good = read_all(path());
  int noticed = 0;
  for (std::size_t at = 0; at < good.size(); at += 101) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    const std::string copy = folder_ + "/copy";
    write_all(copy, bad);
    copy_one(path(), copy, "-mark");
    std::filesystem::remove(copy + "-wal");
    try {
      Store store({.path = copy});
      EXPECT_EQ(texts(store.list({.resource = "pods"})), before) << at;
      EXPECT_EQ(store.revision(), 53u) << at;
    } catch (const Error&) {
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 20);
}

TEST_F(DamageTest, AFileThatIsCutOffIsNoticed) {
  make_store();
  const std::string good = read_all(path());
  std::filesystem::remove(path() + "-wal");  // has everything once more
  for (const std::size_t size : {good.size() - 1, good.size() / 2, std::size_t{4096},
                                 std::size_t{100}, std::size_t{1}, std::size_t{0}}) {
    write_all(path(), good.substr(0, size));
    EXPECT_THROW(Store{options()}, Error) << size;
  }
  std::filesystem::remove(path());
  expect_refused(path(), Code::internal, {path(), "revision 53 was acknowledged"});
}

TEST_F(DamageTest, WhatIsOnlyInTheWriteAheadLogIsThere) {
  const std::string copy = folder_ + "/copy";
  {
    Store store(options());
    put(store, pod("a"), "x");
    copy_running(copy);
  }
  EXPECT_EQ(Store({.path = copy}).find(pod("a"))->text, "x");
}

// Where the frames of a write-ahead log end: behind them are the zeros it was made of.
std::size_t end_of_frames(const std::string& wal) {
  return wal.find_last_not_of('\0') + 1;
}

// kill -9 in the middle of a commit: nobody was told, so nothing is lost.
TEST_F(DamageTest, AWriteThatWasTornOffWasNeverThere) {
  const std::string copy = folder_ + "/copy";
  {
    Store store(options());
    put(store, pod("a"), "x");
    copy_one(path(), copy, "-mark");
    put(store, pod("b"), std::string(20'000, 'y'));
    copy_one(path(), copy, "");
    copy_one(path(), copy, "-wal");
  }
  const std::string wal = read_all(copy + "-wal");
  write_all(copy + "-wal", wal.substr(0, end_of_frames(wal) - 3000));
  Store store({.path = copy});
  EXPECT_EQ(store.find(pod("a"))->text, "x");
  EXPECT_EQ(store.find(pod("b")), nullptr);
  EXPECT_EQ(put(store, pod("b"), "z")->revision, 3u);
}

// The same with somebody told: that is damage. SQLite alone would not notice.
TEST_F(DamageTest, AnAcknowledgedWriteThatWasTornOffIsMissed) {
  const std::string copy = folder_ + "/copy";
  {
    Store store(options());
    put(store, pod("a"), "x");
    put(store, pod("b"), std::string(20'000, 'y'));
    copy_running(copy);
  }
  const std::string wal = read_all(copy + "-wal");
  write_all(copy + "-wal", wal.substr(0, end_of_frames(wal) - 3000));
  expect_refused(copy, Code::internal, {copy, "revision 3 was acknowledged", "is 2"});
}

TEST_F(DamageTest, AWriteAheadLogDamagedInTheMiddleIsMissed) {
  const std::string copy = folder_ + "/copy";
  {
    Store store(options());
    for (int i = 0; i < 20; ++i) put(store, pod("p" + std::to_string(i)), "x");
    copy_running(copy);
  }
  std::string wal = read_all(copy + "-wal");
  wal[end_of_frames(wal) / 2] ^= 1;
  write_all(copy + "-wal", wal);
  expect_refused(copy, Code::internal, {copy, "revision 21 was acknowledged"});
  EXPECT_EQ(read_all(copy + "-wal"), wal);  // what was found stays as it was found

  // What can still be read, can be had.
  const std::string rescued = folder_ + "/rescued";
  restore(copy, rescued);
  Store store({.path = rescued});
  EXPECT_GT(store.revision(), 2u);
  EXPECT_LT(store.revision(), 21u);
  EXPECT_EQ(store.find(pod("p0"))->text, "x");
}

TEST_F(DamageTest, RestoreIgnoresTheLogOfWhatWasThereBefore) {
  make_store();
  const std::string copy = folder_ + "/copy";
  {
    Store store(options());
    store.backup(copy);
    put(store, pod("later"), "x");
  }
  std::filesystem::remove(path());
  std::filesystem::remove(Mark::path_of(path()));
  restore(copy, path());
  Store store(options());
  EXPECT_EQ(store.revision(), 53u);
  EXPECT_EQ(store.find(pod("later")), nullptr);
}

TEST_F(DamageTest, RestoreRefusesWhatIsDamaged) {
  make_store();
  tamper(path(), "UPDATE log SET text=x'78' WHERE revision=12");
  const std::string to = folder_ + "/to";
  const Error error = error_of([&] { restore(path(), to); });
  EXPECT_NE(std::string(error.what()).find("revision 12"), std::string::npos) << error.what();
  EXPECT_FALSE(std::filesystem::exists(to));
  EXPECT_FALSE(std::filesystem::exists(to + "-part"));
}

TEST_F(DamageTest, OtherFilesAreRefused) {
  write_all(path(), "this is a letter to somebody, and long enough to be looked at by a database");
  expect_refused(path(), Code::invalid, {path()});

  const std::string other = folder_ + "/other";
  tamper(other, "CREATE TABLE log(revision)");
  expect_refused(other, Code::invalid, {other, "no store"});
  expect_refused(folder_ + "/none/here", Code::not_found, {folder_});
}

TEST_F(DamageTest, ANewerFormatIsRefused) {
  make_store();
  tamper(path(), "PRAGMA user_version=2");
  expect_refused(path(), Code::invalid, {path(), "format 2"});
}

TEST_F(DamageTest, TheMarkMustBeThereAndWhole) {
  make_store();
  const std::string mark = Mark::path_of(path());
  std::string bytes = read_all(mark);
  bytes[bytes.size() - 9] ^= 1;
  write_all(mark, bytes);
  expect_refused(path(), Code::internal, {mark, "damaged"});
  std::filesystem::remove(mark);
  expect_refused(path(), Code::internal, {path(), mark});
}

TEST_F(DamageTest, OneProcessAtATime) {
  auto store = std::make_unique<Store>(options());
  put(*store, pod("a"), "x");
  EXPECT_EQ(error_of([&] { Store{options()}; }).code(), Code::conflict);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      Store second(options());
    } catch (const Error& error) {
      ::_exit(error.code() == Code::conflict ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  store.reset();
  EXPECT_EQ(Store(options()).find(pod("a"))->text, "x");
}

TEST_F(DamageTest, TheMarkTellsAPowerCutFromAKill) {
  {
    Mark mark(path(), "boot one");
    EXPECT_FALSE(mark.was_there());
    EXPECT_EQ(mark.acknowledged(), kFirstRevision);
    mark.begin(kFirstRevision);
    mark.advance(5, /*synced=*/true);
    mark.advance(8, /*synced=*/false);
  }
  {
    // The same boot: the page cache was there all the time, so all of it must be.
    Mark mark(path(), "boot one");
    EXPECT_TRUE(mark.was_there());
    EXPECT_EQ(mark.acknowledged(), 8u);
  }
  {
    // Another: what was not fsynced may be gone.
    Mark mark(path(), "boot two");
    EXPECT_EQ(mark.acknowledged(), 5u);
    mark.begin(6);
  }
  EXPECT_EQ(Mark(path(), "boot two").acknowledged(), 6u);
  EXPECT_EQ(Mark(path(), "boot three").acknowledged(), 5u);
}

}  // namespace
}  // namespace hearth::store
