#include "cli/debian.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "linux/program.h"
#include "registry/scratch.h"

namespace hearth::cli {
namespace {

// Debian policy 5.6.1, and nothing that mmdebstrap could take for an option.
bool is_package_name(const std::string& text) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' ||
           c == ':';
  };
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, is_good);
}

bool is_mirror(const std::string& text) {
  const bool has_scheme =
      text.starts_with("http://") || text.starts_with("https://") || text.starts_with("file:/");
  return has_scheme && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

std::vector<std::string> mmdebstrap_command(const DebianOptions& options, bool is_root) {
  if (!is_package_name(options.suite)) {
    fail(Code::invalid, "--debian: '{}' is no release; take one such as bookworm", options.suite);
  }
  std::string include;
  for (const std::string& package : options.include) {
    if (!is_package_name(package)) {
      fail(Code::invalid, "--include: '{}' is no name of a package", package);
    }
    include += (include.empty() ? "" : ",") + package;
  }
  if (!options.mirror.empty() && !is_mirror(options.mirror)) {
    fail(Code::invalid, "--mirror: '{}' is no URL of a Debian archive", options.mirror);
  }
  // A sandbox's /dev is made for it.
  std::vector<std::string> command = {"mmdebstrap", is_root ? "--mode=root" : "--mode=unshare",
                                      "--variant=minbase", "--format=tar", "--skip=output/dev"};
  if (!include.empty()) command.push_back("--include=" + include);
  command.insert(command.end(), {options.suite, "-"});
  if (!options.mirror.empty()) command.push_back(options.mirror);
  return command;
}

linux::Fd make_debian_archive(const DebianOptions& options, const std::string& scratch,
                              bool quiet) {
  const std::vector<std::string> command = mmdebstrap_command(options, ::geteuid() == 0);
  const linux::Fd folder = registry::open_scratch(scratch);
  linux::Fd archive = registry::make_unnamed_file(folder.get());
  try {
    const linux::Pidfd program = linux::start_program(
        command, {.output_fd = archive.get(), .error_fd = quiet ? -1 : STDERR_FILENO});
    // No deadline: it downloads a distribution, and Ctrl-C reaches it as it reaches us.
    program.wait_for_end(Deadline::never());
    const auto status = program.reap();
    if (!status || !(*status == linux::ExitStatus{})) {
      fail(Code::unavailable, "mmdebstrap could not make '{}'{}", options.suite,
           quiet ? "; without --quiet it says why" : "");
    }
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    fail(Code::not_found, "--debian needs mmdebstrap: apt-get install mmdebstrap");
  }
  if (::lseek(archive.get(), 0, SEEK_SET) != 0) throw_errno("seek in the archive");
  return archive;
}

}  // namespace hearth::cli
