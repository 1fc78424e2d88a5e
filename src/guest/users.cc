#include "guest/users.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>

#include "base/error.h"
#include "base/guarded.h"
#include "linux/fd.h"

namespace hearth::guest {
namespace {

// What the sandbox may make us read.
constexpr std::size_t kMaxFile = std::size_t{1} << 20;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::uint32_t> parse_id(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  // The last one means "leave it" to the kernel.
  return value == UINT32_MAX ? std::nullopt : std::optional(value);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A line of /etc/passwd: name:password:uid:gid:comment:home:shell.
std::optional<User> parse_passwd_line(std::string_view line) {
  const auto fields = split(line, ':');
  if (fields.size() < 6) return std::nullopt;
  const auto uid = parse_id(fields[2]);
  const auto gid = parse_id(fields[3]);
  if (!uid || !gid) return std::nullopt;
  User user{.uid = *uid, .gid = *gid, .groups = {}, .name = std::string(fields[0])};
  if (!fields[5].empty()) user.home = fields[5];
  if (fields.size() > 6 && !fields[6].empty()) user.shell = fields[6];
  return user;
}

std::optional<User> look_up(std::string_view passwd, std::string_view wanted) {
  const auto uid = is_number(wanted) ? parse_id(wanted) : std::nullopt;
  for (const std::string_view line : split(passwd, '\n')) {
    auto user = parse_passwd_line(line);
    if (user && (user->name == wanted || (uid && user->uid == *uid))) return user;
  }
  return std::nullopt;
}

std::uint32_t find_group(std::string_view group, std::string_view wanted) {
  for (const std::string_view line : split(group, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 3 || fields[0] != wanted) continue;
    if (const auto gid = parse_id(fields[2])) return *gid;
  }
  if (is_number(wanted)) {
    if (const auto gid = parse_id(wanted)) return *gid;
    fail(Code::invalid, "'{}' is no group id", wanted);
  }
  fail(Code::invalid, "there is no group '{}' in the sandbox", wanted);
}

// Every group whose member list has the name.
std::vector<std::uint32_t> groups_of(std::string_view group, const User& user) {
  std::vector<std::uint32_t> groups{user.gid};
  for (const std::string_view line : split(group, '\n')) {
    const auto fields = split(line, ':');
    if (user.name.empty() || fields.size() < 4) continue;
    const auto members = split(fields[3], ',');
    const auto gid = parse_id(fields[2]);
    if (!gid || std::ranges::find(members, user.name) == members.end()) continue;
    if (std::ranges::find(groups, *gid) == groups.end()) groups.push_back(*gid);
  }
  return groups;
}

std::string read_hostile_file(const char* path) {
  // Not a FIFO that never answers, not a device: the sandbox decides what lies there.
  const linux::Fd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text(std::min(kMaxFile, static_cast<std::size_t>(status.st_size)), '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// The text of a file, read again whenever it may have changed: every command asks.
class KeptFile {
 public:
  explicit KeptFile(const char* path) : path_(path) {}

  const std::string& text() {
    struct stat now{};
    if (::stat(path_, &now) != 0) now = {};
    if (settled_ && same(now, seen_)) return text_;
    text_ = read_hostile_file(path_);
    seen_ = now;
    timespec clock{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &clock);
    // A file changed a moment ago may change again without its times showing it.
    settled_ = clock.tv_sec - now.st_ctim.tv_sec > 1;
    return text_;
  }

 private:
  static bool same(const struct stat& one, const struct stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino &&
           one.st_size == other.st_size && one.st_ctim.tv_sec == other.st_ctim.tv_sec &&
           one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
  }

  const char* path_;
  struct stat seen_{};
  bool settled_ = false;
  std::string text_;
};

}  // namespace

User find_user(std::string_view passwd, std::string_view group, std::string_view wanted) {
  const std::size_t colon = wanted.find(':');
  const std::string_view name = wanted.substr(0, colon);
  User user;
  if (const auto listed = look_up(passwd, name)) {
    user = *listed;
  } else if (is_number(name)) {
    const auto uid = parse_id(name);
    if (!uid) fail(Code::invalid, "'{}' is no user id", name);
    user.uid = *uid;
  } else if (name == "root") {
    user.name = "root";  // an image without /etc/passwd has a root all the same
  } else {
    fail(Code::invalid, "there is no user '{}' in the sandbox", name);
  }
  if (colon != std::string_view::npos) {
    user.gid = find_group(group, wanted.substr(colon + 1));
    user.groups = {user.gid};
  } else {
    user.groups = groups_of(group, user);
  }
  return user;
}

namespace {

// Both files, for one thread at a time.
struct UserFiles {
  KeptFile passwd{"/etc/passwd"};
  KeptFile group{"/etc/group"};
};
Guarded<UserFiles>& user_files() {
  static Guarded<UserFiles> files;
  return files;
}

// The name in a line of either file whose third field is the id.
std::string find_name(std::string_view text, std::uint32_t id) {
  std::string number = std::to_string(id);
  for (const std::string_view line : split(text, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() >= 3 && fields[2] == number && !fields[0].empty())
      return std::string(fields[0]);
  }
  return number;
}

}  // namespace

User find_user_here(std::string_view wanted) {
  return user_files().with(
      [&](UserFiles& files) { return find_user(files.passwd.text(), files.group.text(), wanted); });
}

std::vector<std::uint32_t> memberships_here(const User& user) {
  return user_files().with([&](UserFiles& files) { return groups_of(files.group.text(), user); });
}

std::string user_name_here(std::uint32_t uid) {
  return user_files().with([&](UserFiles& files) { return find_name(files.passwd.text(), uid); });
}

std::string group_name_here(std::uint32_t gid) {
  return user_files().with([&](UserFiles& files) { return find_name(files.group.text(), gid); });
}

}  // namespace hearth::guest
