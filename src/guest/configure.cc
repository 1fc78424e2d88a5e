#include "guest/configure.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/id.h"
#include "guest/users.h"
#include "linux/fd.h"

namespace hearth::guest {
namespace {

void check_path(const char* what, const std::string& path) {
  if (!path.starts_with('/') || path.find('\0') != std::string::npos)
    fail(Code::invalid, "{} '{}' is no absolute path", what, path);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

void make_folders(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
      throw_errno("make the folder '{}'", folder);
  }
}

// A file under a name of its own until put() gives it the wanted one; gone if it never does.
class NewFile {
 public:
  NewFile(const ConfiguredFile& wanted, const User& owner)
      : path_(wanted.path), temporary_(folder_of(wanted.path) + "/.hearth-" + random_hex(8)) {
    check_path("the file", path_);
    if (path_.ends_with('/')) fail(Code::invalid, "'{}' is a folder's name", path_);
    make_folders(path_);
    const linux::Fd file(
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) throw_errno("write '{}'", path_);
    made_ = true;
    try {
      linux::write_all(file.get(), wanted.content);
      if (::fchown(file.get(), owner.uid, owner.gid) != 0 ||
          ::fchmod(file.get(), wanted.mode & 07777) != 0) {
        throw_errno("set owner and mode of '{}'", path_);
      }
    } catch (...) {
      ::unlink(temporary_.c_str());
      throw;
    }
  }
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        made_(std::exchange(other.made_, false)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (made_) ::unlink(temporary_.c_str());
  }

  void put() {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_errno("replace '{}'", path_);
    made_ = false;
  }

 private:
  std::string path_;
  std::string temporary_;
  bool made_ = false;
};

void check_environment(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.find('\0') != std::string::npos)
      fail(Code::invalid, "'{}' is not NAME=value", entry.substr(0, equals));
  }
}

// The later one of two with the same name counts (command_line.cc), but nobody needs both.
void merge_environment(std::vector<std::string>& into, const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(into, [&](const std::string& each) { return each.starts_with(name); });
    into.push_back(entry);
  }
}

}  // namespace

void configure(const Configuration& configuration, Core& core) {
  check_environment(configuration.environment);
  if (!configuration.directory.empty())
    check_path("the working directory", configuration.directory);
  const std::string user = configuration.user.empty() ? core.settings().user : configuration.user;
  find_user_here(user);  // throws when there is nobody of that name

  std::vector<ConfiguredFile> wanted = configuration.files;
  for (ConfiguredFile& file : wanted) {
    if (file.user.empty()) file.user = user;
  }
  const auto add_to_etc = [&](const char* path, const std::string& text) {
    if (!text.empty())
      wanted.push_back({.path = path, .content = text, .mode = 0644, .user = "0:0"});
  };
  add_to_etc("/etc/hosts", configuration.hosts);
  add_to_etc("/etc/resolv.conf", configuration.resolv_conf);

  std::vector<NewFile> files;
  for (const ConfiguredFile& file : wanted) files.emplace_back(file, find_user_here(file.user));
  for (NewFile& file : files) file.put();
  core.change_settings([&](Settings& settings) {
    merge_environment(settings.environment, configuration.environment);
    settings.user = user;
    if (!configuration.directory.empty()) settings.directory = configuration.directory;
    if (configuration.drops_token) settings.token.clear();
    if (!configuration.token.empty()) settings.token = configuration.token;
  });
}

}  // namespace hearth::guest
