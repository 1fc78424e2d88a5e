#include "registry/download.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hearth::registry {
namespace {

// One blob from one source.
class Attempts {
 public:
  Attempts(Source& source, const Descriptor& blob, PartialFile& file, Progress& progress,
           RetryOptions options)
      : source_(source),
        blob_(blob),
        file_(file),
        progress_(progress),
        stop_(options.stop),
        retry_(std::move(options)) {}

  // Throws Error; what came so far stays in the file.
  void run() {
    bool is_continued = file_.size() > 0;
    while (true) {
      if (file_.size() < blob_.size) read_rest(is_continued);
      if (file_.digest() == blob_.digest) return;
      file_.restart();
      // What an earlier attempt left may have been the wrong part; once more, and all of it.
      if (!std::exchange(is_continued, false)) {
        fail(Code::invalid, "layer {} at {} is not what its digest says", blob_.digest,
             source_.name());
      }
    }
  }

 private:
  void read_rest(bool& is_continued) {
    while (file_.size() < blob_.size) {
      const std::uint64_t before = file_.size();
      try {
        source_.read_blob(blob_, before, [this](std::uint64_t offset, std::string_view bytes) {
          receive(offset, bytes);
        });
        if (file_.size() < blob_.size) {
          fail(Code::unavailable, "layer {} at {} is shorter than its manifest says", blob_.digest,
               source_.name());
        }
      } catch (const Error& error) {
        // Perhaps it is the continuing that the server does not like.
        if (error.code() == Code::invalid && before > 0 && std::exchange(is_continued, false)) {
          file_.restart();
          continue;
        }
        if (file_.size() > 0) is_continued = true;
        retry_.wait_or_rethrow(error, file_.size() > before);
      }
    }
  }

  void receive(std::uint64_t offset, std::string_view bytes) {
    if (stop_.stop_requested()) fail(Code::unavailable, "called off");
    if (offset == 0 && file_.size() > 0) file_.restart();
    HEARTH_ASSERT(offset == file_.size());
    file_.append(bytes);
    progress_.report({.digest = blob_.digest,
                      .step = Step::downloading,
                      .bytes = file_.size(),
                      .total = blob_.size});
  }

  Source& source_;
  const Descriptor& blob_;
  PartialFile& file_;
  Progress& progress_;
  std::stop_token stop_;
  Retry retry_;
};

}  // namespace

Downloads::Downloads(DownloadPlan plan, std::vector<Descriptor> blobs)
    : plan_(std::move(plan)), blobs_(std::move(blobs)), promises_(blobs_.size()) {
  const std::size_t count = std::min<std::size_t>(plan_.parallel, blobs_.size());
  for (std::size_t i = 0; i < count; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

Downloads::~Downloads() {
  // All at once; their destructors would do it one after the other.
  for (std::jthread& thread : threads_) thread.request_stop();
}

std::unique_ptr<PartialFile> Downloads::take(std::size_t number) {
  return promises_.at(number).get_future().get();
}

void Downloads::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::size_t number = next_++;
    if (number >= blobs_.size()) return;
    try {
      promises_[number].set_value(download(blobs_[number], stop));
    } catch (...) {
      promises_[number].set_exception(std::current_exception());
    }
  }
}

std::unique_ptr<PartialFile> Downloads::download(const Descriptor& blob,
                                                 const std::stop_token& stop) {
  auto file = std::make_unique<PartialFile>(plan_.folder_fd, blob.digest, blob.size);
  plan_.progress->report({.digest = blob.digest, .bytes = file->size(), .total = blob.size});
  RetryOptions retry = plan_.retry;
  retry.stop = stop;
  for (std::size_t i = 0;; ++i) {
    try {
      Attempts(*plan_.sources[i], blob, *file, *plan_.progress, retry).run();
      return file;
    } catch (const Error& error) {
      if (i + 1 >= plan_.sources.size() || stop.stop_requested()) throw;
      plan_.progress->note(fmt::format("asking the next registry: {}", error.what()));
    }
  }
}

}  // namespace hearth::registry
