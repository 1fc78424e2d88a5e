// Backups of the Kubernetes API's objects, and back.
//
// An engine's folder belongs to its user, who need not be root: nothing in there is made or opened
// for writing as root, and what root shall keep is only written elsewhere.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/on_failure.h"
#include "cli/endpoints.h"
#include "cli/engine_user.h"
#include "cli/kube.h"
#include "cli/state_folder.h"
#include "linux/fd.h"
#include "linux/files.h"
#include "model/json.h"
#include "model/status.h"
#include "net/client.h"
#include "store/store.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

// Everything of a cluster; a bound only because every wait has one.
constexpr Duration kDownloadPatience = std::chrono::hours(1);
constexpr Duration kSilence = std::chrono::minutes(1);
constexpr std::uint64_t kMostBytes = 1ULL << 40;
constexpr std::size_t kMostRefusalBytes = 64 << 10;
constexpr std::size_t kPieceBytes = 256 << 10;
// What a store has beside its file.
constexpr std::array kSuffixes = {"", "-wal", "-shm", "-mark"};

std::string objects_of(const std::string& state_dir) {
  return fmt::format("{}/{}/kube/objects.db", state_dir, kEngineFolder);
}

// While it lives, what root does is done as the engine's user.
class ActingAs {
 public:
  explicit ActingAs(EngineUser user) : active_(::geteuid() == 0 && user.uid != 0) {
    if (!active_) return;
    if (::setegid(user.gid) != 0 || ::seteuid(user.uid) != 0)
      throw_errno("act as user {}", user.uid);
  }
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;
  ~ActingAs() {
    if (active_) HEARTH_ASSERT(::seteuid(0) == 0 && ::setegid(0) == 0);
  }

 private:
  const bool active_;
};

void copy_bytes(int from_fd, int to_fd) {
  std::string piece(kPieceBytes, '\0');
  while (true) {
    const ssize_t got = ::read(from_fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("copy a backup");
    if (got == 0) return;
    linux::write_all(to_fd, std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
}

// A file that appears under its name when it is whole, and only if there is none.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), part_(path + ".part") {
    if (std::error_code ignored; fs::exists(fs::symlink_status(path, ignored)))
      fail(Code::already_exists, "'{}' is there already; choose another name", path);
    ::unlink(part_.c_str());
    file_ = linux::open_file(part_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() { ::unlink(part_.c_str()); }

  int fd() const { return file_.get(); }
  void put_in_place() {
    if (::fsync(file_.get()) != 0) throw_errno("write '{}'", path_);
    if (::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0)
      throw_errno("write '{}'", path_);
  }

 private:
  const std::string path_;
  const std::string part_;
  linux::Fd file_;
};

net::Endpoint endpoint_of(const std::string& url, const std::string& authority) {
  constexpr std::string_view kScheme = "https://";
  const std::size_t colon = url.rfind(':');
  if (!url.starts_with(kScheme) || colon <= kScheme.size())
    fail(Code::invalid, "'{}' in {} is no URL of an engine", url, kEndpointsFile);
  net::Endpoint endpoint;
  endpoint.host = url.substr(kScheme.size(), colon - kScheme.size());
  if (endpoint.host.starts_with('['))
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  const auto port = net::parse_number(std::string_view(url).substr(colon + 1));
  endpoint.port = static_cast<std::uint16_t>(port.value_or(0));
  net::TlsClientOptions tls;
  tls.ca.text = authority;
  endpoint.tls = net::make_tls_context(tls);
  return endpoint;
}

[[noreturn]] void tell_refusal(unsigned status, const std::string& body) {
  std::string message = body;
  try {
    message = model::status_from_json(model::parse_json(body).value, status).message;
  } catch (const Error&) {
    // Not one of ours; as it is.
  }
  fail(net::code_from_status(status), "the engine refuses to hand out a backup ({}): {}", status,
       message);
}

// From an engine that runs.
void download(const std::string& state_dir, const std::string& url, int to_fd) {
  const linux::Fd folder =
      linux::open_file(state_dir + "/" + kEngineFolder, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  const auto read = [&](const char* name) {
    const linux::Fd file = linux::open_at(folder.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    return linux::read_file(fmt::format("/proc/self/fd/{}", file.get()));
  };
  std::string token = read(kAdminTokenFile);
  token.erase(token.find_last_not_of(" \n") + 1);
  net::Client client(endpoint_of(url, read("pki/ca.crt")));
  net::Request request;
  request.target = "/hearth/backup";
  request.headers.set("Authorization", "Bearer " + token);
  std::string refusal;
  const net::Response head = client.fetch_into(
      std::move(request),
      [&](const net::Response& answer, std::string_view piece) {
        if (answer.status == 200)
          linux::write_all(to_fd, piece);
        else if (refusal.size() + piece.size() <= kMostRefusalBytes)
          refusal += piece;
      },
      {.timeout = kDownloadPatience, .max_body_bytes = kMostBytes, .silence = kSilence});
  if (head.status != 200) tell_refusal(head.status, refusal);
}

// Of objects that no engine serves. Under the lock.
void copy_objects(const std::string& state_dir, int to_fd) {
  const std::string objects = objects_of(state_dir);
  const std::string copy = fs::path(objects).parent_path() / "backup.tmp";
  linux::Fd file;
  {
    const ActingAs user(find_engine_owner(state_dir).value_or(EngineUser{}));
    if (!fs::exists(objects)) fail(Code::not_found, "there are no objects in '{}'", state_dir);
    const OnFailure clean_up([&] { fs::remove(copy); });  // nobody needs its name
    fs::remove(copy);
    store::Store(store::Options{.path = objects}).backup(copy);
    file = linux::open_file(copy, O_RDONLY | O_NOFOLLOW);
  }
  copy_bytes(file.get(), to_fd);
}

bool download_if_served(const std::string& state_dir, int to_fd) {
  const auto endpoints = find_endpoints(state_dir);
  if (!endpoints || endpoints->kube.empty()) return false;
  try {
    download(state_dir, endpoints->kube, to_fd);
    return true;
  } catch (const Error& error) {
    // An engine that was killed leaves word of where it was. One that lives holds the lock.
    if (error.code() != Code::unavailable) throw;
    return false;
  }
}

// A backup where the engine's user can read it; as itself, if we are that user.
class Readable {
 public:
  Readable(const std::string& file, const std::string& folder, EngineUser user)
      : copy_(folder + "/restore.tmp") {
    if (::geteuid() == user.uid) {
      path_ = file;
      return;
    }
    // As with any other backup: not of a store that is being written.
    if (fs::exists(file + "-mark")) {
      mark_ = linux::open_file(file + "-mark", O_RDONLY | O_NOFOLLOW);
      if (::flock(mark_.get(), LOCK_SH | LOCK_NB) != 0)
        fail(Code::conflict, "'{}' is a store in use, not a backup", file);
    }
    path_ = copy_;
    for (const char* suffix : {"", "-wal"}) {
      if (*suffix != '\0' && !fs::exists(file + suffix)) continue;
      const linux::Fd from = linux::open_file(file + suffix, O_RDONLY);
      const ActingAs acting(user);
      remove(suffix);
      copy_bytes(
          from.get(),
          linux::open_file(copy_ + suffix, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600).get());
    }
  }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;
  ~Readable() {
    if (path_ == copy_)
      for (const char* suffix : kSuffixes) remove(suffix);
  }

  const std::string& path() const { return path_; }

 private:
  void remove(const char* suffix) const {
    std::error_code ignored;
    fs::remove(copy_ + suffix, ignored);
  }

  const std::string copy_;
  std::string path_;
  linux::Fd mark_;
};

// Where the store that is there can be put aside.
std::string free_name(const std::string& objects) {
  std::string name = objects + ".before-restore";
  for (int count = 2; fs::exists(name); ++count)
    name = fmt::format("{}.before-restore-{}", objects, count);
  return name;
}

// Both are whole stores.
void exchange(const std::string& fresh, const std::string& objects) {
  const std::string aside = free_name(objects);
  for (const char* suffix : kSuffixes)
    if (fs::exists(objects + suffix)) fs::rename(objects + suffix, aside + suffix);
  for (const char* suffix : {"-mark", ""}) fs::rename(fresh + suffix, objects + suffix);
}

void restore_objects(const RestoreOptions& options, EngineUser user) {
  const std::string objects = objects_of(options.state_dir);
  const std::string folder = fs::path(objects).parent_path();
  std::optional<Readable> backup;
  {
    const ActingAs acting(user);
    if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
      throw_errno("make folder '{}'", folder);
    if (!options.replace && fs::exists(objects))
      fail(Code::already_exists, "there are objects in '{}'; --replace puts them aside",
           options.state_dir);
  }
  backup.emplace(options.file, folder, user);
  const ActingAs acting(user);
  const std::string fresh = objects + ".restored";
  const auto remove_fresh = [&] {
    for (const char* suffix : kSuffixes) fs::remove(fresh + suffix);
  };
  remove_fresh();
  OnFailure clean_up(remove_fresh);
  store::restore(backup->path(), fresh);
  exchange(fresh, objects);
  clean_up.release();
  backup.reset();
}

}  // namespace

int backup(const BackupOptions& options) {
  if (!fs::exists(options.state_dir + "/" + kEngineFolder))
    fail(Code::not_found, "there are no objects in '{}'", options.state_dir);
  NewFile file(options.file);
  if (!download_if_served(options.state_dir, file.fd())) {
    const linux::Fd lock = lock_state_folder(options.state_dir);
    if (::ftruncate(file.fd(), 0) != 0 || ::lseek(file.fd(), 0, SEEK_SET) != 0)
      throw_errno("empty '{}'", options.file);
    copy_objects(options.state_dir, file.fd());
  }
  const off_t bytes = ::lseek(file.fd(), 0, SEEK_CUR);
  file.put_in_place();
  std::fputs(fmt::format("wrote {} ({} bytes)\n", options.file, bytes).c_str(), stdout);
  return 0;
}

int restore(const RestoreOptions& options) {
  if (::access(options.file.c_str(), R_OK) != 0) throw_errno("read '{}'", options.file);
  make_state_folder(options.state_dir);
  const linux::Fd lock = lock_state_folder(options.state_dir);
  const auto owner = find_engine_owner(options.state_dir);
  const EngineUser user = owner ? *owner : find_engine_user({});
  claim_state_folder(options.state_dir, user);
  try {
    restore_objects(options, user);
  } catch (const Error& error) {
    fail(error.code(), "'{}' was not restored: {}", options.file, error.what());
  }
  std::fputs(
      fmt::format("restored {}; the next engine on {} serves it\n", options.file, options.state_dir)
          .c_str(),
      stdout);
  return 0;
}

}  // namespace hearth::cli
