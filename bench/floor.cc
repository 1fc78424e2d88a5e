#include "bench/floor.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "bench/small_server.h"

namespace hearth::bench {
namespace {

// What one object takes in the store, in whole blocks.
constexpr std::size_t kRecordBytes = 4096;

}  // namespace

Floor::Floor(std::size_t create_bytes, std::string program)
    : program_(std::move(program)),
      created_(answer_text(201, std::string(create_bytes, 'x'))),
      started_(answer_text(200, R"({"event":{"data":{"stdout":"Lg=="}}})")),
      record_(::open(std::filesystem::temp_directory_path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC,
                     0600)) {
  if (!record_) throw_errno("make a file without a name");
  ::signal(SIGCHLD, SIG_IGN);
  // From now on only its content changes, as in a log whose place was made ahead of time.
  keep_record();
}

void Floor::keep_record() const {
  const std::string record(kRecordBytes, 'x');
  if (::pwrite(record_.get(), record.data(), record.size(), 0) !=
      static_cast<ssize_t>(record.size()))
    throw_errno("keep a record");
}

void Floor::start_program() const {
  linux::Pipe pipe = linux::make_pipe();
  char* const arguments[] = {const_cast<char*>(program_.c_str()), nullptr};
  const pid_t pid = ::vfork();  // NOLINT(bugprone-unsafe-functions): it calls exec right away
  if (pid == 0) {
    if (::dup2(pipe.write.get(), STDOUT_FILENO) < 0) ::_exit(126);
    ::execve(arguments[0], arguments, environ);
    ::_exit(127);
  }
  if (pid < 0) throw_errno("start '{}'", program_);
  pipe.write.reset();
  char byte = 0;
  if (::read(pipe.read.get(), &byte, 1) != 1) fail(Code::internal, "'{}' wrote nothing", program_);
}

std::string_view Floor::answer(std::string_view request) {
  if (request.starts_with("POST /sandboxes ")) {
    keep_record();
    return created_;
  }
  start_program();
  return started_;
}

}  // namespace hearth::bench
