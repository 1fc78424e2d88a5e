#include "guest/contained.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "guest/server.h"
#include "linux/resource_limits.h"

namespace hearth::guest {
namespace {

constexpr std::string_view kSurfacesFlag = "--surfaces=";
constexpr std::string_view kTakenFlag = "--taken-ports=";
constexpr char kProgramName[] = "hearth-guest";

std::vector<std::uint16_t> parse_ports(std::string_view list) {
  std::vector<std::uint16_t> ports;
  while (!list.empty()) {
    const std::string_view word = list.substr(0, list.find(','));
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), port);
    if (error != std::errc() || end != word.data() + word.size() || port == 0)
      fail(Code::invalid, "--taken-ports: '{}' is no port", word);
    ports.push_back(port);
    list.remove_prefix(std::min(word.size() + 1, list.size()));
  }
  return ports;
}

// Where nobody named any. 8080 is a popular port: sandboxd has it only where it is nobody else's.
std::vector<SurfacePort> surfaces_beside(bool has_command,
                                         const std::vector<std::uint16_t>& taken) {
  std::vector<SurfacePort> surfaces = every_surface();
  std::erase_if(surfaces, [&](const SurfacePort& each) {
    return (has_command && each.surface == Surface::sandboxd) ||
           std::ranges::find(taken, each.port) != taken.end();
  });
  return surfaces;
}

struct Environment {
  std::vector<std::string> entries;  // NAME=value
  std::string token;
};

Environment take_environment() {
  Environment taken;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    if (text.substr(0, equals) == kTokenVariable)
      taken.token = text.substr(equals + 1);
    else
      taken.entries.emplace_back(text);
  }
  return taken;
}

std::string current_folder() {
  char* const path = ::getcwd(nullptr, 0);
  if (path == nullptr) return "/";
  std::string text(path);
  std::free(path);
  return text;
}

// Another container of the pod may have a port that nobody told of. What was asked for by name
// must be there; the rest is left off.
std::vector<Door> open_what_is_free(const ContainedOptions& options) {
  if (options.chosen) return make_doors(options.surfaces);
  std::vector<Door> doors;
  for (const SurfacePort& each : options.surfaces) {
    try {
      doors.push_back(std::move(make_doors({each}).front()));
    } catch (const Error& error) {
      std::fprintf(stderr, "hearth-guest: no surface '%s': %s\n",
                   std::string(to_string(each.surface)).c_str(), error.what());
    }
  }
  return doors;
}

// A container's first process may have a terminal, which belongs to its session. The command gets a
// session of its own, and the terminal with it if we let go.
bool let_go_of_terminal() {
  if (::isatty(0) == 0 || ::getsid(0) != ::getpid()) return false;
  // Whoever leaves a terminal is told that it hung up.
  const auto before = ::signal(SIGHUP, SIG_IGN);
  const bool is_free = ::ioctl(0, TIOCNOTTY) == 0;
  ::signal(SIGHUP, before);
  return is_free;
}

ContainerCommand make_command(std::vector<std::string> words,
                              const std::vector<std::string>& environment) {
  ContainerCommand command;
  command.request.command = std::move(words);
  // All of it: the container's own HOME counts, say.
  command.request.environment = environment;
  for (const int fd : {0, 1, 2}) {
    linux::Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) copy = linux::open_file("/dev/null", O_RDWR);
    command.stdio.push_back(std::move(copy));
  }
  command.terminal = let_go_of_terminal();
  return command;
}

std::vector<int> signals_for(bool has_command) {
  std::vector<int> signals = {SIGTERM, SIGINT, SIGQUIT};
  if (has_command) signals.insert(signals.end(), {SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT});
  return signals;
}

int exit_code_of(const Outcome& outcome) {
  if (outcome.end) {
    const linux::ExitStatus& status = outcome.end->status;
    return status.signal != 0 ? 128 + status.signal : status.code;
  }
  if (!outcome.failure) return 0;
  std::fprintf(stderr, "hearth-guest: %s\n", outcome.failure->message.c_str());
  return outcome.failure->code == Code::not_found ? 127 : 126;
}

// As many bytes as there are.
void copy_file(int from, int to) {
  while (true) {
    const ssize_t copied = ::sendfile(to, from, nullptr, std::size_t{1} << 24);
    if (copied < 0) throw_errno("copy the guest");
    if (copied == 0) return;
  }
}

}  // namespace

ContainedOptions parse_contained(std::span<const std::string_view> words) {
  ContainedOptions options;
  std::vector<std::uint16_t> taken;
  const auto separator = std::ranges::find(words, "--");
  for (auto word = words.begin(); word != separator; ++word) {
    if (word->starts_with(kSurfacesFlag)) {
      options.surfaces = parse_surfaces(word->substr(kSurfacesFlag.size()), "--surfaces");
      options.chosen = true;
    } else if (word->starts_with(kTakenFlag)) {
      taken = parse_ports(word->substr(kTakenFlag.size()));
    } else {
      fail(Code::invalid, "'{}' is neither --surfaces=LIST nor --taken-ports=LIST", *word);
    }
  }
  if (separator != words.end()) {
    options.command.assign(separator + 1, words.end());
    if (options.command.empty()) fail(Code::invalid, "there is no command behind --");
  }
  if (!options.chosen) options.surfaces = surfaces_beside(!options.command.empty(), taken);
  return options;
}

int serve_contained(ContainedOptions options, OpenDoors open_doors) {
  Environment environment = take_environment();
  // Commands of the same user could read the token from our memory.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ServerOptions server_options;
  // What commands get is what the container had.
  server_options.limits = {linux::own_limit(RLIMIT_NOFILE)};
  linux::raise_own_limit(RLIMIT_NOFILE);
  server_options.doors = open_what_is_free(options);
  server_options.open_doors = std::move(open_doors);
  server_options.signals = signals_for(!options.command.empty());
  Core core({.environment = environment.entries,
             .user = fmt::format("{}:{}", ::geteuid(), ::getegid()),
             .directory = current_folder(),
             .token = std::move(environment.token)});
  Spawner spawner({});
  if (!options.command.empty())
    server_options.command = make_command(std::move(options.command), environment.entries);
  Server server(std::move(server_options), core, spawner);
  server.run();
  return exit_code_of(server.outcome());
}

void install_self(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) throw_errno("make '{}'", folder);
  const linux::Fd place = linux::open_file(folder, O_RDONLY | O_DIRECTORY);
  const linux::Fd self = linux::open_file("/proc/self/exe", O_RDONLY);
  // Two of us may do the same at once, or one that was killed half-way.
  const std::string half = fmt::format(".{}.{}", kProgramName, ::getpid());
  ::unlinkat(place.get(), half.c_str(), 0);
  linux::Fd copy(
      ::openat(place.get(), half.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
  if (!copy) throw_errno("write to '{}'", folder);
  copy_file(self.get(), copy.get());
  if (::fchmod(copy.get(), 0755) != 0) throw_errno("let everybody execute the guest");
  copy.reset();
  if (::renameat(place.get(), half.c_str(), place.get(), kProgramName) != 0)
    throw_errno("put the guest into '{}'", folder);
}

}  // namespace hearth::guest
