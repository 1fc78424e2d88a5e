// The small file beside a store that says how far its writes were acknowledged, and is its lock.
//
// SQLite ends its write-ahead log at the first frame that does not add up: right for one that was
// being written when the power went, but damage in the middle would silently take acknowledged
// writes with it. So after each commit, and before anybody hears of it, the mark notes the
// revision. At start, a file that ends before the mark has lost something.
//
// A mark costs a write of a few bytes into the page cache, no fsync. While the machine has not been
// started anew, that is exact for every write. After a power cut, writes that were not fsynced may
// be gone, and only those that were are held against the file; the mark itself may then be older
// than the file, never newer.
#pragma once

#include <string>

#include "linux/fd.h"
#include "store/object.h"

namespace hearth::store {

class Mark {
 public:
  // Takes the lock and reads; a file that is not there is made, but stays empty until begin().
  // Throws Error: conflict (somebody has it), internal (damaged).
  // `boot_id`: of the kernel that runs, for tests to say otherwise.
  explicit Mark(const std::string& store_path, std::string boot_id = read_boot_id());

  // False: there was none, or one that nothing was noted in.
  bool was_there() const { return was_there_; }
  // What the store must have, at least.
  Revision acknowledged() const { return acknowledged_; }

  // The store was read, and has this. Throws Error.
  void begin(Revision revision);

  // A commit; `synced`: so far, everything is on the disk itself. Does not throw: the commit stands
  // whatever happens here, and a mark that is behind only notices less.
  void advance(Revision acknowledged, bool synced) noexcept;
  // What was acknowledged so far is on the disk itself by now, and so will be this.
  void advance_synced() noexcept;

  static std::string read_boot_id();
  static std::string path_of(const std::string& store_path) { return store_path + "-mark"; }

 private:
  std::string render() const;
  void read(const std::string& bytes);

  std::string path_;
  std::string boot_id_;
  linux::Fd file_;
  bool was_there_ = false;
  Revision acknowledged_ = kFirstRevision;
  Revision synced_ = kFirstRevision;
};

}  // namespace hearth::store
