#include <archive.h>
#include <archive_entry.h>

#include <vector>

#include "base/error.h"
#include "linux/fd.h"
#include "registry/tar_reader_internal.h"

namespace hearth::registry {
namespace {

constexpr std::size_t kBlock = 256 << 10;
constexpr std::size_t kMaxName = 4096;

std::string text_of(const char* text) {
  std::string result = text == nullptr ? "" : text;
  if (result.size() > kMaxName)
    fail(Code::invalid, "the archive has names of more than {} bytes", kMaxName);
  return result;
}

std::string without_dot(std::string name) {
  while (name.starts_with("./")) name.erase(0, 2);
  while (name.ends_with('/')) name.pop_back();
  return name;
}

}  // namespace

void TarReader::Free::operator()(::archive* reader) const {
  ::archive_read_free(reader);
}

TarReader::TarReader() : reader_(::archive_read_new()) {
  if (!reader_) fail(Code::internal, "libarchive cannot be used");
}

TarReader::TarReader(int fd, Wrapping wrapping) : TarReader() {
  ::archive_read_support_format_tar(reader_.get());
  if (wrapping == Wrapping::compressed) {
    ::archive_read_support_filter_gzip(reader_.get());
    ::archive_read_support_filter_zstd(reader_.get());
  }
  open(fd);
}

TarReader TarReader::of_compressed_bytes(int fd) {
  TarReader reader;
  ::archive_read_support_format_raw(reader.reader_.get());
  ::archive_read_support_filter_gzip(reader.reader_.get());
  ::archive_read_support_filter_zstd(reader.reader_.get());
  ::archive_read_support_filter_xz(reader.reader_.get());
  ::archive_read_support_filter_bzip2(reader.reader_.get());
  reader.open(fd);
  return reader;
}

void TarReader::open(int fd) {
  if (::archive_read_open_fd(reader_.get(), fd, kBlock) != ARCHIVE_OK) throw_failure("open");
}

void TarReader::throw_failure(const char* doing) const {
  const char* why = ::archive_error_string(reader_.get());
  fail(Code::invalid, "{} the archive: {}", doing, why == nullptr ? "it is broken" : why);
}

bool TarReader::next(Entry& entry) {
  ::archive_entry* header = nullptr;
  const int result = ::archive_read_next_header(reader_.get(), &header);
  if (result == ARCHIVE_EOF) return false;
  // Warnings are about names in odd encodings, which none of those that we look for have.
  if (result != ARCHIVE_OK && result != ARCHIVE_WARN) throw_failure("read");
  entry = {.name = without_dot(text_of(::archive_entry_pathname(header))),
           .link = text_of(::archive_entry_symlink(header)),
           .same_as = without_dot(text_of(::archive_entry_hardlink(header))),
           .is_file = ::archive_entry_filetype(header) == AE_IFREG};
  if (::archive_entry_sparse_count(header) > 0) {
    fail(Code::invalid, "the archive has sparse files in it, which nobody packs images with");
  }
  if (::archive_entry_size(header) > 0) {
    entry.size = static_cast<std::uint64_t>(::archive_entry_size(header));
  }
  const auto position = ::archive_read_header_position(reader_.get());
  entry.position = position > 0 ? static_cast<std::uint64_t>(position) : 0;
  return true;
}

std::string TarReader::read(std::size_t limit) {
  std::string text;
  std::vector<char> buffer(kBlock);
  while (true) {
    const auto count = ::archive_read_data(reader_.get(), buffer.data(), buffer.size());
    if (count < 0) throw_failure("read");
    if (count == 0) return text;
    if (static_cast<std::size_t>(count) > limit - text.size()) {
      fail(Code::exhausted, "a document in the archive is larger than {} bytes", limit);
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

void TarReader::copy_to(int fd, std::uint64_t limit) {
  std::vector<char> buffer(kBlock);
  std::uint64_t copied = 0;
  while (true) {
    const auto count = ::archive_read_data(reader_.get(), buffer.data(), buffer.size());
    if (count < 0) throw_failure("read");
    if (count == 0) return;
    if (static_cast<std::uint64_t>(count) > limit - copied) {
      fail(Code::exhausted, "the archive has more than {} bytes in it", limit);
    }
    linux::write_all(fd, {buffer.data(), static_cast<std::size_t>(count)});
    copied += static_cast<std::uint64_t>(count);
  }
}

}  // namespace hearth::registry
