#include "apiserver/backups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/on_failure.h"
#include "model/status.h"
#include "net/stream.h"

namespace hearth::apiserver {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kName = "backup.tmp";
constexpr std::size_t kPieceBytes = 256 << 10;
constexpr int kRetrySeconds = 1;

// With what SQLite and Store::backup() put beside it.
void remove_remains(const std::string& path) {
  const std::filesystem::path file(path);
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path()))
    if (entry.path().filename().string().starts_with(kName)) std::filesystem::remove(entry.path());
}

}  // namespace

Backups::Backups(store::Store& store, std::string folder)
    : store_(store), path_(std::move(folder) + "/" + std::string(kName)) {
  remove_remains(path_);
}

linux::Fd Backups::copy() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock)
    throw model::StatusError({.code = 429,
                              .reason = "TooManyRequests",
                              .message = "another backup is being made, please try again later",
                              .retry_after_seconds = kRetrySeconds});
  OnFailure clean_up([&] { remove_remains(path_); });
  store_.backup(path_);
  linux::Fd file = linux::open_file(path_, O_RDONLY | O_NOFOLLOW);
  if (::unlink(path_.c_str()) != 0) throw_errno("remove '{}'", path_);
  clean_up.release();
  return file;
}

asio::awaitable<void> Backups::send(linux::Fd file, net::Stream& stream, net::Workers& workers) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) throw_errno("look at a backup");
  net::Response head{200, {{"Content-Type", "application/octet-stream"}}, ""};
  head.headers.add("Content-Length", std::to_string(status.st_size));
  head.headers.add("Cache-Control", "no-store");
  co_await stream.write_head(std::move(head));
  std::string piece(kPieceBytes, '\0');
  while (true) {
    const ssize_t got =
        co_await workers.run([&] { return ::read(file.get(), piece.data(), piece.size()); });
    if (got < 0) throw_errno("read a backup");
    if (got == 0) break;
    co_await stream.write(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
  }
}

}  // namespace hearth::apiserver
