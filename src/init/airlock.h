// The airlock: from a fresh clone in new namespaces to the first program of a sandbox.
//
// A Plan is prepared by the parent, with everything that needs allocation or privileges done. The
// child walks through it with bare system calls: it takes the identity of the sandbox's root,
// builds the file system step by step, makes it the root, and executes the program. It runs in its
// parent's memory (linux/clone.h has the rules) and so does as little as possible here; whatever
// can wait until the program runs belongs into the program.
//
//   parent                                child
//   clone into namespaces
//   writes the id maps
//   one byte on the boot socket    ──▶    begins
//                                  ◀──    Failure, if a step fails; then it exits
//                                         executes the program, which speaks next
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::init {

struct Step {
  enum class Kind : std::uint8_t {
    folder,       // mkdir target, mode `flags`
    file,         // make an empty file at target, to mount on
    symlink,      // target -> source
    mount,        // mount(source, target, type, flags, options)
    attach,       // attach the detached mount `fd` at target
    enter_tmpfs,  // mount a new tmpfs on the working folder and go there; options: "key=value,..."
    enter_root,   // make target the root folder and let go of the old one
  };

  Kind kind = Kind::folder;
  std::string source;
  std::string target;
  std::string type;
  std::string options;
  std::uint64_t flags = 0;
  int fd = -1;
};

struct Plan {
  std::vector<Step> steps;
  int program_fd = -1;               // executed at the end
  std::vector<std::string> command;  // its arguments
  // Become descriptors 0, 1, 2, ... of the program; -1 is refused. Everything else is closed.
  std::vector<int> fds;
  int boot_fd = -1;    // where the byte to begin comes from and failures go
  int parent_fd = -1;  // the other end of it: as long as the child holds one too, it never closes
};

// What goes over the boot socket when a step fails. `step` counts from 0; the two below are those
// that no list has.
struct Failure {
  static constexpr std::uint32_t kIdentity = 0xffff'fff0;
  static constexpr std::uint32_t kExecute = 0xffff'fff1;
  static constexpr std::uint32_t kDescriptors = 0xffff'fff2;

  std::uint32_t step = 0;
  std::int32_t error = 0;
};

// A plan in the form that the child can use. The child must be handed its address.
class Airlock {
 public:
  explicit Airlock(Plan plan);
  Airlock(const Airlock&) = delete;
  Airlock& operator=(const Airlock&) = delete;
  ~Airlock() = default;

  // For linux::CloneRequest: never returns. `airlock` is an Airlock*.
  static void enter(void* airlock);

  // What the parent says of a failure: "mount overlay on 'root': EINVAL: ...".
  std::string describe(const Failure& failure) const;

 private:
  Plan plan_;
  std::vector<char*> arguments_;
};

}  // namespace hearth::init
