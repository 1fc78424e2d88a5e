#include "unpack/tar_reader.h"

#include <gtest/gtest.h>

#include "unpack/unpack_testing.h"

namespace hearth::unpack {
namespace {

using image::pax_record;
using image::tar_checksummed;
using image::tar_end;
using image::tar_header;
using image::tar_of;
using image::tar_padding;
using image::tar_part;

struct ReadEntry {
  TarEntry entry;
  std::string data;
};

std::vector<ReadEntry> read(const std::string& archive) {
  const linux::Fd file = file_of(archive);
  ByteInput input(file.get());
  TarReader reader(input);
  std::vector<ReadEntry> entries;
  while (auto entry = reader.next()) {
    ReadEntry one{.entry = std::move(*entry)};
    char piece[100];
    while (const std::size_t got = reader.read_data(piece)) one.data.append(piece, got);
    entries.push_back(std::move(one));
  }
  return entries;
}

void expect_invalid(const std::string& archive, const std::string& why) {
  const auto error = error_of([&] { read(archive); });
  ASSERT_TRUE(error) << why;
  EXPECT_EQ(error->code(), Code::invalid);
  EXPECT_NE(std::string(error->what()).find(why), std::string::npos) << error->what();
}

// Offsets are those of GNU tar's header.
std::string with(std::string block, std::size_t at, std::string_view text) {
  block.replace(at, text.size(), text);
  return tar_checksummed(std::move(block));
}

TEST(TarReader, ReadsWhatIsThere) {
  const auto entries = read(tar_of({{.path = "a/", .type = '5', .mode = 0755, .uid = 3, .gid = 4},
                                    {.path = "a/b", .data = std::string(1000, 'b'), .mode = 04755},
                                    {.path = "l", .type = '2', .link = "a/b"},
                                    {.path = "h", .type = '1', .link = "a/b"}}));
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].entry.kind, TarEntry::Kind::folder);
  EXPECT_EQ(entries[0].entry.uid, 3U);
  EXPECT_EQ(entries[0].entry.gid, 4U);
  EXPECT_EQ(entries[1].data, std::string(1000, 'b'));
  EXPECT_EQ(entries[1].entry.mode, 04755U);
  EXPECT_EQ(entries[1].entry.mtime.seconds, 1'700'000'000);
  EXPECT_EQ(entries[2].entry.kind, TarEntry::Kind::symlink);
  EXPECT_EQ(entries[2].entry.link, "a/b");
  EXPECT_EQ(entries[3].entry.kind, TarEntry::Kind::hard_link);
}

TEST(TarReader, SkipsDataThatNobodyReads) {
  const linux::Fd file =
      file_of(tar_of({{.path = "a", .data = std::string(5000, 'a')}, {.path = "b"}}));
  ByteInput input(file.get());
  TarReader reader(input);
  EXPECT_EQ(reader.next()->path, "a");
  EXPECT_EQ(reader.next()->path, "b");
  EXPECT_FALSE(reader.next());
}

TEST(TarReader, NamesComeOutByteForByte) {
  // Decomposed, not UTF-8 at all, and longer than a header has room for.
  const std::string decomposed = "e\xcc\x81.txt";
  const std::string latin = "caf\xe9";
  const std::string large = std::string(200, 'x') + "/" + std::string(200, 'y');
  const auto entries = read(tar_of({{.path = "p", .pax = {{"path", decomposed}}},
                                    {.path = latin},
                                    {.path = "p", .pax = {{"path", large}, {"linkpath", large}}}}));
  EXPECT_EQ(entries[0].entry.path, decomposed);
  EXPECT_EQ(entries[1].entry.path, latin);
  EXPECT_EQ(entries[2].entry.path, large);
  EXPECT_EQ(entries[2].entry.link, large);
}

TEST(TarReader, ReadsLongNamesOfGnu) {
  const std::string large(300, 'x');
  const std::string body = large + std::string(1, '\0');
  const std::string archive = tar_part({.path = "././@LongLink", .type = 'L', .data = body}) +
                              tar_part({.path = "././@LongLink", .type = 'K', .data = body}) +
                              tar_part({.path = "cut off", .type = '2', .link = "cut off"}) +
                              tar_end();
  const auto entries = read(archive);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].entry.path, large);
  EXPECT_EQ(entries[0].entry.link, large);
}

TEST(TarReader, ReadsThePrefixOfPosixOnly) {
  const std::string posix = with(tar_header({.path = "name"}, 0), 345, "folder");
  EXPECT_EQ(read(posix + tar_end())[0].entry.path, "folder/name");
  const std::string gnu = with(posix, 257, std::string_view("ustar  \0", 8));
  EXPECT_EQ(read(gnu + tar_end())[0].entry.path, "name");
}

TEST(TarReader, ReadsNumbersOfEverySize) {
  // uid 100000 in base 256; an mtime before 1970.
  std::string block =
      with(tar_header({.path = "a"}, 0), 108, std::string_view("\x80\0\0\0\0\x01\x86\xa0", 8));
  block =
      with(block, 136, std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  const auto entries = read(block + tar_end());
  EXPECT_EQ(entries[0].entry.uid, 100'000U);
  EXPECT_EQ(entries[0].entry.mtime.seconds, -1);
  const auto pax = read(tar_of({{.path = "a",
                                 .data = "data",
                                 .pax = {{"uid", "70000"}, {"mtime", "-1.25"}, {"size", "4"}}}}));
  EXPECT_EQ(pax[0].entry.uid, 70'000U);
  EXPECT_EQ(pax[0].entry.mtime.seconds, -2);
  EXPECT_EQ(pax[0].entry.mtime.nanoseconds, 750'000'000U);
  EXPECT_EQ(pax[0].data, "data");
}

TEST(TarReader, RefusesNumbersThatAreNone) {
  const std::string block = tar_header({.path = "a"}, 0);
  expect_invalid(with(block, 124, "0000000009x") + tar_end(), "digit");
  expect_invalid(
      with(block, 124, std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)),
      "negative");
  expect_invalid(with(block, 124, std::string_view("\x80\x01\0\0\0\0\0\0\0\0\0\0", 12)),
                 "too large");
  expect_invalid(
      with(block, 124, std::string_view("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12)),
      "a file of");
  std::string wrong = block;
  wrong[0] = 'b';
  expect_invalid(wrong + tar_end(), "checksum");
  expect_invalid(std::string(512, 'x'), "");
}

TEST(TarReader, KeepsXattrs) {
  const std::string binary("\0\1=\n", 4);
  const auto entries =
      read(tar_of({{.path = "a", .pax = {{"SCHILY.xattr.user.x", binary}, {"comment", "ignored"}}},
                   {.path = "b"}}));
  EXPECT_EQ(entries[0].entry.xattrs.at("user.x"), binary);
  EXPECT_TRUE(entries[1].entry.xattrs.empty());
}

TEST(TarReader, RefusesExtendedHeadersThatAreNone) {
  for (const std::string text : {"5 a=b\n", "x a=b\n", "6 abc\n", "99 a=b\n", "7 a=bc", "0 =\n",
                                 "5 =b\n", "18446744073709551616 a=b\n", "\n"}) {
    expect_invalid(tar_part({.path = "x", .type = 'x', .data = text}) + tar_part({.path = "a"}),
                   "extended header");
  }
  expect_invalid(tar_of({{.path = "a", .pax = {{"size", "1e9"}}}}), "number");
  expect_invalid(tar_of({{.path = "a", .pax = {{"mtime", "soon"}}}}), "time");
}

TEST(TarReader, RefusesGiganticHeaders) {
  expect_invalid(tar_header({.path = "x", .type = 'x'}, std::uint64_t{1} << 33),
                 "extended header of");
  expect_invalid(tar_header({.path = "x", .type = 'L'}, (1 << 20) + 1), "extended header of");
  std::string many;
  for (int i = 0; i < 20; ++i)
    many += tar_part({.path = "x", .type = 'x', .data = pax_record("a", "b")});
  expect_invalid(many + tar_part({.path = "a"}), "more than 8 extended headers");
}

TEST(TarReader, IgnoresHeadersForAll) {
  const auto entries =
      read(tar_part({.path = "g", .type = 'g', .data = pax_record("path", "evil")}) +
           tar_part({.path = "a"}) + tar_end());
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].entry.path, "a");
}

TEST(TarReader, EndsWhereTheArchiveEnds) {
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read(tar_end()).empty());
  EXPECT_EQ(read(tar_part({.path = "a"})).size(), 1U);
  // What follows the end is nobody's.
  EXPECT_EQ(read(tar_of({{.path = "a"}}) + tar_of({{.path = "hidden"}})).size(), 1U);
  EXPECT_EQ(read(tar_of({{.path = "a"}}) + "garbage").size(), 1U);
  expect_invalid(tar_part({.path = "a"}) + std::string(512, '\0') + tar_part({.path = "b"}),
                 "zeros");
  expect_invalid(tar_part({.path = "a"}).substr(0, 100), "cut off");
  expect_invalid(tar_part({.path = "a", .data = "data"}).substr(0, 514), "cut off");
  expect_invalid(tar_part({.path = "a", .data = "data"}).substr(0, 600), "cut off");
  expect_invalid(tar_part({.path = "x", .type = 'x', .data = pax_record("path", "a")}),
                 "ends with");
}

TEST(TarReader, RefusesWhatItDoesNotKnow) {
  expect_invalid(tar_of({{.path = "a", .type = 'M'}}), "unknown type");
  EXPECT_EQ(read(tar_of({{.path = "a", .type = '3'}}))[0].entry.kind, TarEntry::Kind::device);
  EXPECT_EQ(read(tar_of({{.path = "a/", .type = '\0'}}))[0].entry.kind, TarEntry::Kind::folder);
  EXPECT_EQ(read(tar_of({{.path = "a/", .data = "x"}}))[0].data, "x");
  expect_invalid(tar_of({{.path = "a/", .type = '\0', .data = "x"}}), "folder with data");
}

TEST(TarReader, ReadsSparseFiles) {
  const std::vector<Extent> extents{{.offset = 512, .length = 3}, {.offset = 4096, .length = 2}};
  // Version 0.1.
  auto entries = read(tar_of({{.path = "tmp",
                               .data = "abcde",
                               .pax = {{"GNU.sparse.name", "real"},
                                       {"GNU.sparse.size", "8192"},
                                       {"GNU.sparse.map", "512,3,4096,2"}}}}));
  EXPECT_EQ(entries[0].entry.path, "real");
  EXPECT_EQ(entries[0].entry.size, 8192U);
  EXPECT_EQ(entries[0].entry.extents, extents);
  EXPECT_EQ(entries[0].data, "abcde");
  // Version 0.0.
  entries = read(tar_of({{.path = "real",
                          .data = "abcde",
                          .pax = {{"GNU.sparse.size", "8192"},
                                  {"GNU.sparse.offset", "512"},
                                  {"GNU.sparse.numbytes", "3"},
                                  {"GNU.sparse.offset", "4096"},
                                  {"GNU.sparse.numbytes", "2"}}}}));
  EXPECT_EQ(entries[0].entry.extents, extents);
  // Version 1.0.
  std::string map = "2\n512\n3\n4096\n2\n";
  map += tar_padding(map.size());
  entries = read(tar_of({{.path = "tmp",
                          .data = map + "abcde",
                          .pax = {{"GNU.sparse.major", "1"},
                                  {"GNU.sparse.minor", "0"},
                                  {"GNU.sparse.name", "real"},
                                  {"GNU.sparse.realsize", "8192"}}}}));
  EXPECT_EQ(entries[0].entry.extents, extents);
  EXPECT_EQ(entries[0].data, "abcde");
}

TEST(TarReader, RefusesSparseMapsThatMakeNoSense) {
  const auto sparse = [](const std::string& map, const std::string& size) {
    return tar_of({{.path = "a",
                    .data = "abcde",
                    .pax = {{"GNU.sparse.size", size}, {"GNU.sparse.map", map}}}});
  };
  expect_invalid(sparse("512,3,100,2", "8192"), "makes no sense");  // backwards
  expect_invalid(sparse("512,3,513,2", "8192"), "makes no sense");  // into each other
  expect_invalid(sparse("512,5", "514"), "makes no sense");         // beyond the end
  expect_invalid(sparse("18446744073709551615,5", "8192"), "makes no sense");
  expect_invalid(sparse("512,4", "8192"), "its map has 4");
  expect_invalid(sparse("512", "8192"), "half an entry");
  expect_invalid(sparse("512,5", "18446744073709551615"), "a file of");
  expect_invalid(tar_of({{.path = "a", .pax = {{"GNU.sparse.map", "0,0"}}}}), "without a size");
  expect_invalid(tar_of({{.path = "a",
                          .data = "99999999\n",
                          .pax = {{"GNU.sparse.major", "1"}, {"GNU.sparse.realsize", "1"}}}}),
                 "cut off");
}

}  // namespace
}  // namespace hearth::unpack
