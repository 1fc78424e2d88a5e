// No sandbox at all: what everything is held against.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "bench/command_work.h"
#include "bench/subject.h"
#include "bench/workshop.h"

namespace hearth::bench {
namespace {

class ForkExecCycles final : public Work {
 public:
  explicit ForkExecCycles(const Workshop& workshop) : program_(workshop.noop()) {}

  double do_once() override {
    const double time = time_vfork_exec(program_, witness_.fd());
    witness_.take_byte();
    return time;
  }

 private:
  std::string program_;
  Witness witness_;
};

class ForkExecExecs final : public Work {
 public:
  explicit ForkExecExecs(const Workshop& workshop)
      : program_(workshop.noop()), null_(linux::open_file("/dev/null", O_RDWR)) {}

  double do_once() override { return time_vfork_exec(program_, null_.get()); }

 private:
  std::string program_;
  linux::Fd null_;
};

class ForkExec final : public Subject {
 public:
  explicit ForkExec(const Workshop& workshop) : workshop_(workshop) {}

  std::unique_ptr<Work> make_cycles() override {
    return std::make_unique<ForkExecCycles>(workshop_);
  }
  std::unique_ptr<Work> make_execs() override { return std::make_unique<ForkExecExecs>(workshop_); }

 private:
  const Workshop& workshop_;
};

class Native : public Subject {
 public:
  Native(const Workshop& workshop, const std::string& folder)
      : words_({workshop.small_files(), folder, std::to_string(kFilesAtOnce)}) {}

  std::unique_ptr<Work> make_file_writes() override {
    return std::make_unique<RateCommand>(words_);
  }

 private:
  std::vector<std::string> words_;
};

// A folder in memory, gone with this object.
class MemoryFolder {
 public:
  explicit MemoryFolder(const std::string& name) : path_("/dev/shm/" + name) {
    if (::mkdir(path_.c_str(), 0700) != 0) throw_errno("make folder '{}'", path_);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The folder is made first and goes last.
class NativeMemory final : private MemoryFolder, public Native {
 public:
  explicit NativeMemory(const Workshop& workshop)
      : MemoryFolder(workshop.new_name()), Native(workshop, path()) {}
};

}  // namespace

std::unique_ptr<Subject> make_fork_exec(const Workshop& workshop) {
  return std::make_unique<ForkExec>(workshop);
}

std::unique_ptr<Subject> make_native(const Workshop& workshop) {
  return std::make_unique<Native>(workshop, workshop.make_folder("native-files"));
}

std::unique_ptr<Subject> make_native_memory(const Workshop& workshop) {
  return std::make_unique<NativeMemory>(workshop);
}

}  // namespace hearth::bench
