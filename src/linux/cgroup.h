// Our corner of every cgroup hierarchy the host has: v1, v2 and hybrid alike.
//
// A CgroupTree is the folder `name` in each hierarchy we use; a Cgroup is one unit below it, in all
// of them at once, with two kinds of processes: those that are limited, and those that serve them
// and are not.
//   v2 controllers   one folder with two in it, "limited" and "serving"
//   hybrid           v1 limits whoever joins; v2 is for being born into, killing and freezing, and
//                    both kinds live in one folder of it; see cgroup_spares_internal.h
//
// Leaves belong to the kernel, not to these objects: they outlive the process that made them, so
// that its next life can find() them. All calls block briefly; a CgroupTree may be used by many
// threads at once, as long as one id is used by one of them at a time. Everything throws Error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "linux/cgroup_layout.h"
#include "linux/fd.h"

namespace hearth::linux {

// Move-only. Destruction leaves the leaf where it is: CgroupTree::remove() takes it away.
class Cgroup {
 public:
  Cgroup() = default;  // none

  // For clone3 with CLONE_INTO_CGROUP: where limited processes are born; -1 without v2. Being born
  // there costs nothing; writing a pid to cgroup.procs waits for an RCU grace period (11 ms on a
  // machine that idled, Linux 6.18).
  int v2_dir_fd() const;

  // The same for those that serve.
  int serving_dir_fd() const;
  // Whether it is v2 that limits: then being in serving_dir_fd() is not enough.
  bool v2_limits() const;

  // For a thread to join what v1 limits: it writes "0" to each file, which are `tasks`: a thread
  // that moves itself does not wait for the grace period that cgroup.procs costs (58 us instead of
  // 10.7 ms). Opened anew at every call; whoever holds one may join, whatever his rights.
  std::vector<Fd> open_join_files() const;

  // Whom 0 leaves as he is.
  void set_limits(const CgroupLimits& limits);

  // Lets everything pass to and from `device`: what waits for a slow disk does not die.
  void lift_io_limits(const std::string& device);

  // Returns when every process stands still. Throws Error(timeout), thawed again, when one of them
  // will not within two seconds (uninterruptible sleep), and Error(unavailable) on a v1 host
  // without the freezer. Both are idempotent.
  void freeze();
  void thaw();
  bool frozen() const;

  CgroupUsage usage() const;

 private:
  friend class CgroupTree;

  struct Leaf {
    CgroupHierarchy hierarchy;
    Fd dir;
    Fd limited;  // only where v2 limits
    Fd serving;  //

    int limited_dir() const { return limited ? limited.get() : dir.get(); }
  };

  explicit Cgroup(std::vector<Leaf> leaves);
  static void divide(Leaf& leaf, uid_t owner);
  static void apply(const Leaf& leaf, const std::vector<CgroupSetting>& settings);
  void replace_limits(const CgroupLimits& limits);
  const Leaf* find_v2() const;
  const Leaf* find_leaf(std::string_view controller) const;

  std::vector<Leaf> leaves_;
};

class CgroupSpares;
class CgroupTree {
 public:
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;
  CgroupTree(CgroupTree&&) noexcept;
  CgroupTree& operator=(CgroupTree&&) = delete;
  ~CgroupTree();

  // Creates what is missing of the folder `name` ("hearth/1a2b3c4d") and, on v2, hands controllers
  // down to it as far as the host lets us. Throws Error(unavailable) when there is no hierarchy to
  // write to, Error(invalid) for a name that leaves its place ("..", "/x").
  static CgroupTree open(const std::string& name);

  bool limits_memory() const { return has_controller("memory"); }
  bool limits_cpu() const { return has_controller("cpu"); }
  bool limits_pids() const { return has_controller("pids"); }
  // Whether any of it is v2's doing.
  bool v2_limits() const;

  // For people: "v1 blkio,cpu,memory,pids + v2 (no controllers)".
  std::string describe() const;

  // One leaf per hierarchy with its limits set, or nothing at all. Throws Error(already_exists) for
  // an id that is present in any hierarchy and Error(unavailable), naming the controller, for a
  // limit that this host cannot enforce. `owner` is the user who may let processes be born from the
  // serving part into the limited one, and nothing else.
  Cgroup create(const std::string& id, const CgroupLimits& limits, uid_t owner = 0);

  // Throws as create() does.
  void require_controllers(const CgroupLimits& limits) const;

  // The leaf that an earlier life made. Nothing unless it is there in every hierarchy; what is left
  // of a half-made one still shows in list() and can be removed.
  std::optional<Cgroup> find(const std::string& id) const;

  // The ids of leaves present in any hierarchy, sorted.
  std::vector<std::string> list() const;

  // Kills what still runs in the leaf and removes it everywhere. An unknown id is success. Throws
  // Error(timeout) when something does not die within a second; repeat to continue.
  void remove(const std::string& id);

  // Removes the corner, and what was made above it if nobody else lives there. Throws
  // Error(conflict) while leaves are left.
  void remove_tree();

 private:
  struct Corner {
    CgroupHierarchy hierarchy;
    Fd dir;  // our folder

    bool can_be_kept() const { return !hierarchy.v2 && !hierarchy.on_demand; }
  };

  CgroupTree(std::string name, std::vector<Corner> corners);
  bool has_controller(std::string_view controller) const;
  void remove_from(std::vector<const Corner*> left, const std::string& id);

  std::string name_;
  std::vector<Corner> corners_;
  std::unique_ptr<CgroupSpares> spares_;  // of what can_be_kept(); or none
};

}  // namespace hearth::linux
