// What the tests of this room share: a sink in memory, a folder that goes with the test, failures,
// tar archives written by hand.
#pragma once

#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/id.h"
#include "registry/digest.h"
#include "registry/manifest.h"
#include "registry/sink.h"

namespace hearth::registry {

class TemporaryFolder {
 public:
  TemporaryFolder()
      : folder_(std::filesystem::temp_directory_path() / ("hearth-" + random_hex(8))) {
    std::filesystem::create_directory(folder_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

inline std::string read_all(int fd) {
  std::string all;
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while ((count = ::read(fd, buffer.data(), buffer.size())) > 0) {
    all.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return all;
}

struct MemorySink final : Sink {
  bool has_layer(const std::string& diff_id) override { return present.contains(diff_id); }
  std::string add_layer(int blob_fd, const image::LayerBlob& blob) override {
    contents.push_back(read_all(blob_fd));
    blobs.push_back(blob);
    const std::string diff_id = blob.diff_id.empty() ? sha256_of(contents.back()) : blob.diff_id;
    present.insert(diff_id);
    return diff_id;
  }
  std::string add_folder(int) override {
    present.insert(sha256_of("folder"));
    return sha256_of("folder");
  }
  void put_image(const image::Image& image) override { images.push_back(image); }

  std::set<std::string> present;
  std::vector<std::string> contents;
  std::vector<image::LayerBlob> blobs;
  std::vector<image::Image> images;
};

// What it throws, having kept no image.
inline Error failure_of(const std::function<void()>& body, const MemorySink& sink) {
  try {
    body();
    ADD_FAILURE() << "it worked";
  } catch (const Error& error) {
    EXPECT_TRUE(sink.images.empty());
    return error;
  }
  return {Code::internal, ""};
}

inline bool says(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

struct QuietProgress final : Progress {
  void report(const LayerProgress& layer) override {
    const std::lock_guard lock(mutex);
    steps.push_back(layer.step);
  }
  void note(const std::string& text) override {
    const std::lock_guard lock(mutex);
    notes += text + '\n';
  }

  std::mutex mutex;  // guards both
  std::vector<Step> steps;
  std::string notes;
};

// The documents of an image with these layers, which are their own diff ids.
inline std::string make_config(const std::vector<std::string>& layers,
                               const std::string& architecture = this_platform().architecture) {
  std::string ids;
  for (const std::string& layer : layers) {
    ids += fmt::format("{}\"{}\"", ids.empty() ? "" : ",", sha256_of(layer));
  }
  return fmt::format(
      R"({{"architecture":"{}","os":"linux","config":{{"Cmd":["sh"]}},"rootfs":{{"type":"layers","diff_ids":[{}]}}}})",
      architecture, ids);
}

inline std::string make_descriptor(const std::string& type, const std::string& blob,
                                   const std::string& more = "") {
  return fmt::format(R"({{"mediaType":"{}","digest":"{}","size":{}{}}})", type, sha256_of(blob),
                     blob.size(), more);
}

inline std::string make_manifest(const std::string& config,
                                 const std::vector<std::string>& layers) {
  std::string list;
  for (const std::string& layer : layers) {
    list += (list.empty() ? "" : ",") +
            make_descriptor("application/vnd.oci.image.layer.v1.tar", layer);
  }
  return fmt::format(R"({{"schemaVersion":2,"config":{},"layers":[{}]}})",
                     make_descriptor("application/vnd.oci.image.config.v1+json", config), list);
}

// One entry of a ustar archive; `type` as there ('0' file, '2' symbolic link, '5' folder).
inline std::string tar_entry(const std::string& name, const std::string& content, char type = '0',
                             const std::string& link = "") {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", content.size()));
  put(136, "00000000000");
  put(148, "        ");
  header[156] = type;
  put(157, link);
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

}  // namespace hearth::registry
