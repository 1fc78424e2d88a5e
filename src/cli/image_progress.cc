#include "cli/image_progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/values.h"

namespace hearth::cli {
namespace {

using registry::LayerProgress;
using registry::Step;

// "sha256:0123456789ab..." -> "0123456789ab", as people know it from Docker.
std::string short_name(const std::string& digest) {
  constexpr std::string_view kPrefix = "sha256:";
  return digest.starts_with(kPrefix) ? digest.substr(kPrefix.size(), 12) : digest;
}

std::string size_text(const LayerProgress& layer) {
  return layer.total == 0 ? std::string() : " (" + format_size(layer.total) + ")";
}

class NoProgress final : public registry::Progress {
 public:
  void report(const LayerProgress& /*layer*/) override {}
  void note(const std::string& /*text*/) override {}
};

// One line when a layer begins, one when it is done.
class LineProgress final : public registry::Progress {
 public:
  explicit LineProgress(std::FILE* out) : out_(out) {}

  void report(const LayerProgress& layer) override {
    const std::lock_guard lock(mutex_);
    switch (layer.step) {
      case Step::present:
        return say(layer, "is here already");
      case Step::downloading:
        if (is_new(layer.digest)) say(layer, "downloading" + size_text(layer));
        return;
      case Step::unpacking:
        return say(layer, "unpacking");
      case Step::done:
        return say(layer, "done");
    }
  }
  void note(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    std::fprintf(out_, "%s\n", text.c_str());
  }

 private:
  bool is_new(const std::string& digest) {
    if (std::ranges::find(begun_, digest) != begun_.end()) return false;
    begun_.push_back(digest);
    return true;
  }
  void say(const LayerProgress& layer, const std::string& what) {
    std::fprintf(out_, "%s: %s\n", short_name(layer.digest).c_str(), what.c_str());
  }

  std::FILE* out_;
  std::mutex mutex_;  // guards begun_, and keeps lines whole
  std::vector<std::string> begun_;
};

// What is under way stands at the bottom and is drawn again and again; what is over scrolls away
// above it.
class BarProgress final : public registry::Progress {
 public:
  explicit BarProgress(std::FILE* out) : out_(out) {}
  BarProgress(const BarProgress&) = delete;
  BarProgress& operator=(const BarProgress&) = delete;
  ~BarProgress() override { erase(); }

  void report(const LayerProgress& layer) override {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(active_, layer.digest, &LayerProgress::digest);
    const bool is_over = layer.step == Step::present || layer.step == Step::done;
    const bool is_step = known == active_.end() || known->step != layer.step;
    if (known != active_.end()) {
      *known = layer;
      if (is_over) active_.erase(known);
    } else if (!is_over) {
      active_.push_back(layer);
    }
    if (is_over) {
      const char* what = layer.step == Step::present ? "is here already" : "done";
      draw(short_name(layer.digest) + ": " + what + size_text(layer) + '\n');
    } else if (is_step || is_time()) {
      draw({});
    }
  }
  void note(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    draw(text + '\n');
  }

 private:
  bool is_time() {
    constexpr auto kBetweenFrames = std::chrono::milliseconds(100);
    return std::chrono::steady_clock::now() - drawn_ >= kBetweenFrames;
  }

  static std::string line_of(const LayerProgress& layer) {
    const std::string name = short_name(layer.digest);
    if (layer.step == Step::unpacking) return name + ": unpacking" + size_text(layer) + '\n';
    constexpr std::size_t kWidth = 30;
    const double part =
        layer.total == 0 ? 0 : static_cast<double>(layer.bytes) / static_cast<double>(layer.total);
    const auto full = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * kWidth);
    return fmt::format("{}: [{}{}] {} of {}\n", name, std::string(full, '#'),
                       std::string(kWidth - full, ' '), format_size(layer.bytes),
                       format_size(layer.total));
  }

  void erase() {
    if (lines_ > 0) std::fprintf(out_, "\x1b[%zuA\x1b[J", lines_);
    lines_ = 0;
    std::fflush(out_);
  }
  void draw(const std::string& above) {
    std::string text;
    for (const LayerProgress& layer : active_) text += line_of(layer);
    erase();
    std::fputs((above + text).c_str(), out_);
    std::fflush(out_);
    lines_ = active_.size();
    drawn_ = std::chrono::steady_clock::now();
  }

  std::FILE* out_;
  std::mutex mutex_;  // guards what follows
  std::vector<LayerProgress> active_;
  std::size_t lines_ = 0;  // of ours at the bottom of the terminal
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace

ProgressKind progress_kind(std::FILE* out, bool quiet) {
  if (quiet) return ProgressKind::none;
  const char* terminal = std::getenv("TERM");
  const bool can_move = terminal != nullptr && std::string_view(terminal) != "dumb";
  return can_move && ::isatty(::fileno(out)) != 0 ? ProgressKind::bars : ProgressKind::lines;
}

std::unique_ptr<registry::Progress> make_progress(ProgressKind kind, std::FILE* out) {
  switch (kind) {
    case ProgressKind::lines:
      return std::make_unique<LineProgress>(out);
    case ProgressKind::bars:
      return std::make_unique<BarProgress>(out);
    case ProgressKind::none:
      break;
  }
  return std::make_unique<NoProgress>();
}

}  // namespace hearth::cli
