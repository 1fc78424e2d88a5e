#include "runtime/host_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace hearth::runtime {
namespace {

using linux::Fd;

// What programs need of /etc and what every user of the machine may see anyway.
constexpr std::array<const char*, 28> kEtc = {
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "gai.conf",
    "inputrc",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "perl",
    "profile",
    "protocols",
    "python3",
    "python3.11",
    "python3.13",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
};

// Root becomes anybody, and nobody has a password.
constexpr std::string_view kSwitchUser =
    "auth sufficient pam_rootok.so\n"
    "auth required pam_deny.so\n"
    "account required pam_permit.so\n"
    "session required pam_permit.so\n";

struct Text {
  const char* path;
  std::string_view text;
};
constexpr std::array<Text, 12> kFiles = {{
    {"etc/pam.d/su", kSwitchUser},
    {"etc/pam.d/su-l", kSwitchUser},
    {"etc/pam.d/runuser", kSwitchUser},
    {"etc/pam.d/runuser-l", kSwitchUser},
    {"etc/passwd",
     "root:x:0:0:root:/root:/bin/bash\n"
     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
     "user:x:1000:1000:user:/home/user:/bin/bash\n"},
    {"etc/group",
     "root:x:0:\ntty:x:5:\nstaff:x:50:user\nusers:x:100:\nuser:x:1000:\nnogroup:x:65534:\n"},
    {"etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"},
    {"etc/resolv.conf", "# no network\n"},
    {"etc/nsswitch.conf",
     "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nprotocols: files\nservices: "
     "files\n"},
    {"etc/shells", "/bin/sh\n/bin/bash\n"},
    {"etc/hostname", "sandbox\n"},
    {"etc/environment", ""},
}};

// Of each home. Commands of the E2B API are login shells: what is in here costs every one of them,
// so it starts no program.
constexpr std::string_view kProfile =
    R"(# Read by login shells.
if [ -n "$BASH_VERSION" ] && [ -f "$HOME/.bashrc" ]; then
  . "$HOME/.bashrc"
fi

# Where programs go that were installed for one user.
for folder in "$HOME/bin" "$HOME/.local/bin"; do
  case ":$PATH:" in
    *":$folder:"*) ;;
    *) PATH="$folder:$PATH" ;;
  esac
done
unset folder
)";
constexpr std::string_view kBashrc =
    R"(# Read by interactive shells. What stands above the next lines is for login shells too.
case $- in
  *i*) ;;
  *) return ;;
esac

alias ls='ls --color=auto'
alias grep='grep --color=auto'
alias ll='ls -l'
)";

struct Folder {
  const char* path;
  unsigned mode;
  unsigned owner;
};
constexpr std::array<Folder, 27> kFolders = {{
    {"usr", 0755, 0},       {"etc", 0755, 0},          {"etc/ssl", 0755, 0},
    {"dev", 0755, 0},       {"proc", 0555, 0},         {"sys", 0555, 0},
    {"run", 0755, 0},       {"tmp", 01777, 0},         {"root", 0700, 0},
    {"home", 0755, 0},      {"home/user", 0755, 1000}, {"mnt", 0755, 0},
    {"media", 0755, 0},     {"opt", 0755, 0},          {"srv", 0755, 0},
    {"var", 0755, 0},       {"var/lib", 0755, 0},      {"var/log", 0755, 0},
    {"var/cache", 0755, 0}, {"var/tmp", 01777, 0},     {"var/spool", 0755, 0},
    {"run/lock", 01777, 0}, {"var/local", 0755, 0},    {"workspace", 0755, 1000},
    {"run/user", 0755, 0},  {"code", 0777, 1000},      {"etc/pam.d", 0755, 0},
}};

void make_folder(int dir_fd, const std::string& path, unsigned mode, unsigned owner = 0) {
  if (::mkdirat(dir_fd, path.c_str(), 0700) != 0) throw_errno("make folder '{}'", path);
  if (::fchmodat(dir_fd, path.c_str(), mode, 0) != 0) throw_errno("set the mode of '{}'", path);
  if (owner != 0 && ::fchownat(dir_fd, path.c_str(), owner, owner, 0) != 0) {
    throw_errno("set the owner of '{}'", path);
  }
}

void make_file(int dir_fd, const std::string& path, std::string_view text, unsigned owner = 0) {
  const Fd file = linux::open_at(dir_fd, path, O_CREAT | O_EXCL | O_WRONLY, 0644);
  linux::write_all(file.get(), text);
  if (owner != 0 && ::fchown(file.get(), owner, owner) != 0)
    throw_errno("set the owner of '{}'", path);
}

void furnish_home(int dir_fd, const std::string& home, unsigned owner) {
  make_file(dir_fd, home + "/.profile", kProfile, owner);
  make_file(dir_fd, home + "/.bashrc", kBashrc, owner);
}

// Only what everybody may read: this is how no secret gets in by accident.
bool is_public(const struct stat& status) {
  const unsigned needed = S_ISDIR(status.st_mode) ? 0005 : 0004;
  return (status.st_mode & needed) == needed;
}

std::string read_link(const std::string& path) {
  std::array<char, 4096> buffer{};
  const ssize_t size = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (size < 0) throw_errno("read link '{}'", path);
  return {buffer.data(), static_cast<std::size_t>(size)};
}

// Copies public files, folders and links; passes over everything else.
void copy_public(const std::string& from, int to_fd, const std::string& to) {
  struct stat status{};
  if (::lstat(from.c_str(), &status) != 0) {
    if (errno == ENOENT) return;  // this machine does not have it
    throw_errno("stat '{}'", from);
  }
  if (S_ISLNK(status.st_mode)) {
    if (::symlinkat(read_link(from).c_str(), to_fd, to.c_str()) != 0)
      throw_errno("make link '{}'", to);
    return;
  }
  if (!is_public(status)) return;
  if (S_ISREG(status.st_mode)) {
    constexpr std::size_t kMostBytes = std::size_t{16} << 20;
    make_file(to_fd, to, linux::read_file(from, kMostBytes));
    return;
  }
  if (!S_ISDIR(status.st_mode)) return;
  make_folder(to_fd, to, 0755);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    const std::string name = entry.path().filename();
    copy_public(from + '/' + name, to_fd, to + '/' + name);
  }
}

void make_folders_above(int mask_fd, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::string made;
  for (const auto& part : folder) {
    made += made.empty() ? part.string() : '/' + part.string();
    if (::mkdirat(mask_fd, made.c_str(), 0755) != 0 && errno != EEXIST)
      throw_errno("make '{}'", made);
  }
}

// A whiteout: an overlay shows nothing where an upper layer has one (device 0/0).
void make_whiteout(int mask_fd, const std::string& path) {
  make_folders_above(mask_fd, path);
  if (::mknodat(mask_fd, path.c_str(), S_IFCHR, makedev(0, 0)) != 0) throw_errno("hide '{}'", path);
}

class OpenDir {
 public:
  explicit OpenDir(Fd fd) : dir_(::fdopendir(fd.release())) {}
  OpenDir(const OpenDir&) = delete;
  OpenDir& operator=(const OpenDir&) = delete;
  ~OpenDir() {
    if (dir_ != nullptr) ::closedir(dir_);
  }
  const dirent* next() { return dir_ == nullptr ? nullptr : ::readdir(dir_); }
  int fd() const { return ::dirfd(dir_); }

 private:
  DIR* dir_;
};

// Keeps pip from installing (PEP 668), to protect a machine that a sandbox is not.
constexpr std::string_view kNotForPip = "EXTERNALLY-MANAGED";

// Hides what is below `path` (relative to /usr) and not public. Descriptors, not paths: 150,000
// files are looked at.
void mask_private(int usr_fd, const std::string& path, int mask_fd) {
  OpenDir folder(linux::open_at(usr_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  while (const dirent* entry = folder.next()) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || entry->d_type == DT_LNK) continue;
    struct stat status{};
    if (::fstatat(folder.fd(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string inner = path == "." ? std::string(name) : fmt::format("{}/{}", path, name);
    if (!is_public(status) || name == kNotForPip) {
      make_whiteout(mask_fd, inner);
    } else if (S_ISDIR(status.st_mode)) {
      mask_private(usr_fd, inner, mask_fd);
    }
  }
}

// /usr/local is for who installs programs: in a sandbox that is its user, without being root. Each
// folder is made at every start of a runtime, so only down to where programs are put:
// lib/python3.11/dist-packages.
constexpr int kInstallDepth = 3;

// `path` is relative to /usr.
void open_to_staff(int usr_fd, const std::string& path, int mask_fd, int depth = 0) {
  constexpr gid_t kStaff = 50;
  if (::mkdirat(mask_fd, path.c_str(), 0755) != 0 && errno != EEXIST)
    throw_errno("make '{}'", path);
  if (::fchownat(mask_fd, path.c_str(), 0, kStaff, 0) != 0 ||
      ::fchmodat(mask_fd, path.c_str(), 02775, 0) != 0) {
    throw_errno("open '{}' to who installs programs", path);
  }
  if (depth == kInstallDepth) return;
  OpenDir folder(linux::open_at(usr_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  while (const dirent* entry = folder.next()) {
    const std::string_view name = entry->d_name;
    struct stat status{};
    if (name == "." || name == ".." || entry->d_type == DT_LNK ||
        ::fstatat(folder.fd(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISDIR(status.st_mode) && is_public(status))
      open_to_staff(usr_fd, fmt::format("{}/{}", path, name), mask_fd, depth + 1);
  }
}

// `python` is what most programs call it; Debian leaves the name to a package of its own.
void add_python(int usr_fd, int mask_fd) {
  constexpr const char* kPython = "bin/python";
  const auto is_there = [&](const char* path) {
    return ::faccessat(usr_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  };
  if (!is_there("bin/python3") || is_there(kPython) || is_there("local/bin/python")) return;
  make_folders_above(mask_fd, kPython);
  if (::symlinkat("python3", mask_fd, kPython) != 0) throw_errno("make link '{}'", kPython);
}

// Where npm puts programs for everybody is where the sandbox's user may. Not in a home: what brings
// its own node objects to that.
void point_npm_to_local(int usr_fd, int mask_fd) {
  constexpr const char* kConfig = "etc/npmrc";
  struct stat status{};
  if (::faccessat(usr_fd, "lib/node_modules/npm", F_OK, 0) != 0) return;
  const bool is_hidden = ::fstatat(mask_fd, kConfig, &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_hidden) ::unlinkat(mask_fd, kConfig, 0);
  std::string text;
  if (!is_hidden && ::faccessat(usr_fd, kConfig, F_OK, 0) == 0)
    text = linux::read_file_at(usr_fd, kConfig) + '\n';
  if (text.find("prefix") != std::string::npos) return;  // somebody has chosen
  make_folders_above(mask_fd, kConfig);
  make_file(mask_fd, kConfig, text + "prefix=/usr/local\n");
}

void make_root_layer(int root_fd) {
  for (const Folder& folder : kFolders)
    make_folder(root_fd, folder.path, folder.mode, folder.owner);
  for (const Text& file : kFiles) make_file(root_fd, file.path, file.text);
  furnish_home(root_fd, "root", 0);
  furnish_home(root_fd, "home/user", 1000);
  for (const char* path : kEtc)
    copy_public(fmt::format("/etc/{}", path), root_fd, fmt::format("etc/{}", path));
  if (::symlinkat("/proc/mounts", root_fd, "etc/mtab") != 0) throw_errno("make link 'etc/mtab'");
  if (::symlinkat("/run", root_fd, "var/run") != 0) throw_errno("make link 'var/run'");
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    const std::string path = fmt::format("/{}", name);
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (!S_ISLNK(status.st_mode)) {
      fail(Code::unavailable,
           "{} is not a link into /usr, so the image 'host' cannot be made of this machine; Debian "
           "12 "
           "and newer are laid out that way (package usrmerge)",
           path);
    }
    if (::symlinkat(read_link(path).c_str(), root_fd, name) != 0)
      throw_errno("make link '{}'", name);
  }
}

}  // namespace

void make_host_image(int folder_fd) {
  make_folder(folder_fd, "root", 0755);
  make_folder(folder_fd, "mask", 0755);
  const Fd root = linux::open_at(folder_fd, "root", O_RDONLY | O_DIRECTORY);
  const Fd mask = linux::open_at(folder_fd, "mask", O_RDONLY | O_DIRECTORY);
  make_root_layer(root.get());
  const Fd usr = linux::open_file("/usr", O_RDONLY | O_DIRECTORY);
  mask_private(usr.get(), ".", mask.get());
  add_python(usr.get(), mask.get());
  point_npm_to_local(usr.get(), mask.get());
  if (::faccessat(usr.get(), "local", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    open_to_staff(usr.get(), "local", mask.get());
}

ImageLayers host_image_layers(const std::string& path) {
  return {.root = {path + "/root"}, .usr = {path + "/mask", "/usr"}};
}

}  // namespace hearth::runtime
