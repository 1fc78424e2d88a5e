// The store with the real helper on the real kernel: what comes in, what is kept, what goes.
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include <thread>

#include "image/store_testing.h"
#include "linux/channel.h"
#include "linux/files.h"
#include "linux/mounts.h"

namespace hearth::image {
namespace {

constexpr const char* kNoDigest =
    "sha256:0000000000000000000000000000000000000000000000000000000000000000";

Image image_of(const std::string& name, const Lease& lease, char id = 'a') {
  Image image;
  image.name = name;
  image.id = "sha256:" + std::string(64, id);
  image.layers = lease.layers();
  return image;
}

TEST_F(StoreTest, AnArchiveBecomesALayerWithItsOwnersAndModes) {
  const Lease lease =
      add({{.path = "./", .type = '5', .mode = 0751},
           {.path = "etc/passwd", .data = "root\n", .uid = 0},
           {.path = "home/user", .type = '5', .mode = 0700, .uid = 1000, .gid = 999},
           {.path = "bin/su", .data = "x", .mode = 04755, .uid = 65535}});
  const std::string root = files(lease);
  EXPECT_EQ(status_of(root).st_mode & 07777, 0751U);
  EXPECT_EQ(status_of(root + "home/user").st_uid, 1000U);
  EXPECT_EQ(status_of(root + "home/user").st_gid, 999U);
  EXPECT_EQ(status_of(root + "bin/su").st_mode & 07777, 04755U);
  EXPECT_EQ(status_of(root + "bin/su").st_uid, 65535U);
  EXPECT_EQ(linux::read_file(root + "etc/passwd"), "root\n");
  EXPECT_TRUE(store_->has_layer(lease.layers().front()));
  EXPECT_EQ(count("tmp"), 0U);
}

TEST_F(StoreTest, TheDigestIsCheckedBeforeAndTheDiffIdAfter) {
  const linux::Fd archive = blob(tar_of({{.path = "a", .data = "a"}}));
  const auto wrong_digest =
      error_of([&] { store_->add_layer(archive.get(), {.digest = kNoDigest}); });
  ASSERT_TRUE(wrong_digest);
  EXPECT_EQ(wrong_digest->code(), Code::invalid);
  EXPECT_NE(std::string(wrong_digest->what()).find(kNoDigest), std::string::npos);
  const auto wrong_diff =
      error_of([&] { store_->add_layer(archive.get(), {.diff_id = kNoDigest}); });
  ASSERT_TRUE(wrong_diff);
  EXPECT_EQ(wrong_diff->code(), Code::invalid);
  EXPECT_EQ(count("layers") + count("tmp"), 0U);

  // The plain archive's digest is its diff id; from where the file stands.
  ::lseek(archive.get(), 0, SEEK_SET);
  const Lease lease = store_->add_layer(archive.get(), {});
  ::lseek(archive.get(), 0, SEEK_SET);
  const std::string& id = lease.layers().front();
  EXPECT_EQ(store_->add_layer(archive.get(), {.digest = id, .diff_id = id}).layers().front(), id);
  const auto not_a_digest = error_of([&] { store_->add_layer(archive.get(), {.digest = "x"}); });
  EXPECT_EQ(not_a_digest->code(), Code::invalid);
}

TEST_F(StoreTest, ABrokenArchiveSaysWhatIsWrongAndLeavesNothing) {
  const auto traversal = error_of([&] { add({{.path = "a/../../x", .data = "a"}}); });
  ASSERT_TRUE(traversal);
  EXPECT_EQ(traversal->code(), Code::invalid);
  EXPECT_NE(std::string(traversal->what()).find("'a/../../x'"), std::string::npos);
  const auto device = error_of([&] { add({{.path = "dev/sda", .type = '4'}}); });
  EXPECT_EQ(device->code(), Code::invalid);
  const linux::Fd no_gzip = blob("this is no gzip stream");
  const auto gzip =
      error_of([&] { store_->add_layer(no_gzip.get(), {.compression = Compression::gzip}); });
  EXPECT_EQ(gzip->code(), Code::invalid);
  EXPECT_NE(std::string(gzip->what()).find("gzip"), std::string::npos);
  EXPECT_EQ(count("layers") + count("tmp"), 0U);
}

TEST_F(StoreTest, ImagesAreFoundByNameAndIdAndSurviveARestart) {
  const Lease lease = add({{.path = "a", .data = "a"}});
  store_->put_image(image_of("docker.io/library/python:3.12", lease));
  store_->put_image(image_of("local/other@sha256:1", lease, 'b'));
  open_store();
  EXPECT_EQ(store_->list().size(), 2U);
  ASSERT_TRUE(store_->find("docker.io/library/python:3.12"));
  EXPECT_GT(store_->find("docker.io/library/python:3.12")->bytes, 0U);
  EXPECT_EQ(store_->find("aaaaaa")->name, "docker.io/library/python:3.12");
  EXPECT_EQ(store_->find("sha256:" + std::string(64, 'b'))->name, "local/other@sha256:1");
  EXPECT_FALSE(store_->find("aaaaa"));
  EXPECT_FALSE(store_->find("cccccc"));
  EXPECT_TRUE(store_->remove("local/other@sha256:1"));
  EXPECT_FALSE(store_->remove("local/other@sha256:1"));
  open_store();
  EXPECT_EQ(store_->list().size(), 1U);

  Image more = image_of("x", lease);
  more.id.back() = 'b';
  store_->put_image(more);
  EXPECT_EQ(error_of([&] { store_->find("aaaaaaa"); })->code(), Code::conflict);
}

TEST_F(StoreTest, AnImageNeedsANameAnIdAndItsLayers) {
  const Lease lease = add({{.path = "a", .data = "a"}});
  const auto code = [&](const Image& image) {
    return error_of([&] { store_->put_image(image); })->code();
  };
  EXPECT_EQ(code(image_of("../x", lease)), Code::invalid);
  EXPECT_EQ(code(image_of("", lease)), Code::invalid);
  EXPECT_EQ(code(image_of("x", lease, 'X')), Code::invalid);
  EXPECT_EQ(code(image_of("x", Lease())), Code::invalid);
  Image missing = image_of("x", lease);
  missing.layers.emplace_back(kNoDigest);
  EXPECT_EQ(code(missing), Code::not_found);
  EXPECT_EQ(count("images"), 0U);
}

TEST_F(StoreTest, GarbageIsWhatNobodyNamesOrHolds) {
  Lease named = add({{.path = "named", .data = "1"}});
  Lease held = add({{.path = "held", .data = "2"}});
  Lease garbage = add({{.path = "garbage", .data = "3"}});
  const std::string garbage_id = garbage.layers().front();
  store_->put_image(image_of("x", named));
  EXPECT_TRUE(store_->collect_garbage().layers.empty());
  named = Lease();
  garbage = Lease();
  const Lease again = store_->use(held.layers());
  held = Lease();
  const Collected collected = store_->collect_garbage();
  EXPECT_EQ(collected.layers, std::vector{garbage_id});
  EXPECT_GT(collected.bytes, 0U);
  EXPECT_EQ(count("layers"), 2U);
  EXPECT_EQ(count("tmp"), 0U);
  EXPECT_EQ(error_of([&] { store_->use({garbage_id}); })->code(), Code::not_found);
  store_->remove("x");
  EXPECT_EQ(store_->collect_garbage().layers.size(), 1U);
  EXPECT_TRUE(store_->has_layer(again.layers().front()));
}

TEST_F(StoreTest, WhatACrashLeftIsSweptAndNeverALayer) {
  const Lease lease = add({{.path = "a", .data = "a"}});
  std::filesystem::create_directories(path_ + "/tmp/half/fs/deep/er");
  std::filesystem::create_directories(path_ + "/tmp/" + std::string(32, 'b'));
  // Cannot come about by itself: renamed before it was whole.
  std::filesystem::create_directories(path_ + "/layers/" + std::string(64, 'c') + "/fs");
  open_store();
  EXPECT_EQ(store_->swept(), 2U);
  EXPECT_TRUE(store_->has_layer(lease.layers().front()));
  EXPECT_FALSE(store_->has_layer("sha256:" + std::string(64, 'c')));
  open_store();
  EXPECT_EQ(count("tmp"), 0U);
}

TEST_F(StoreTest, ManyMayAddTheSameLayerAtOnce) {
  const std::string archive = tar_of({{.path = "a", .data = std::string(1 << 20, 'a')}});
  const std::string id = store_->add_layer(blob(archive).get(), {}).layers().front();
  store_->collect_garbage();
  ASSERT_FALSE(store_->has_layer(id));
  std::vector<Lease> leases(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < leases.size(); ++i) {
      threads.emplace_back([&, i] {
        // Half of them do not know beforehand what it is.
        leases[i] = store_->add_layer(blob(archive).get(), {.diff_id = i % 2 == 0 ? id : ""});
      });
    }
  }
  for (const Lease& lease : leases) EXPECT_EQ(lease.layers(), std::vector{id});
  EXPECT_EQ(count("layers"), 1U);
  EXPECT_EQ(count("tmp"), 0U);
}

TEST_F(StoreTest, TheQuotaHoldsAndGarbageMakesRoom) {
  open_store(1 << 20);
  const Lease first = add({{.path = "a", .data = std::string(400 << 10, 'a')}});
  Lease second = add({{.path = "b", .data = std::string(400 << 10, 'b')}});
  const auto add_third = [&] { return add({{.path = "c", .data = std::string(400 << 10, 'c')}}); };
  const auto full = error_of(add_third);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code(), Code::exhausted);
  EXPECT_EQ(count("layers"), 2U);
  EXPECT_EQ(count("tmp"), 0U);
  second = Lease();
  EXPECT_NO_THROW(add_third());
  EXPECT_LE(store_->usage().bytes, store_->usage().quota_bytes);
  EXPECT_TRUE(store_->has_layer(first.layers().front()));
}

TEST_F(StoreTest, AFullDiskLeavesNothing) {
  store_.reset();
  const linux::Mount disk = linux::make_mount(
      {.type = "tmpfs", .source = "small", .path = path_, .options = "size=2m,mode=0700"});
  open_store();
  const auto full =
      error_of([&] { add({{.path = "a", .data = std::string(std::size_t{4} << 20, 'a')}}); });
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code(), Code::exhausted);
  EXPECT_EQ(count("layers") + count("tmp"), 0U);
  EXPECT_NO_THROW(add({{.path = "a", .data = std::string(1 << 20, 'a')}}));
  store_.reset();
  folder_.reset();
}

TEST_F(StoreTest, AFolderIsImportedWithoutDevicesAndSockets) {
  const std::string source = path_ + "/source";
  std::filesystem::create_directories(source + "/dev");
  std::filesystem::create_directories(source + "/secret");
  ::mknod((source + "/dev/null").c_str(), S_IFCHR | 0666, makedev(1, 3));
  ASSERT_EQ(::mkfifo((source + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(::chmod((source + "/pipe").c_str(), 0620), 0);
  {
    const linux::Fd socket = linux::listen_at(linux::open_file(source, O_RDONLY).get(), "socket");
  }
  linux::replace_file_at(linux::open_file(source, O_RDONLY).get(), "shadow", "root:x");
  ASSERT_EQ(::chown((source + "/shadow").c_str(), 0, 42), 0);
  ASSERT_EQ(::chmod((source + "/secret").c_str(), 0), 0);
  const linux::Fd folder = linux::open_file(source, O_RDONLY | O_DIRECTORY);
  const Lease lease = store_->add_folder(folder.get());
  const std::string root = files(lease);
  EXPECT_EQ(linux::read_file(root + "shadow"), "root:x");
  EXPECT_EQ(status_of(root + "shadow").st_gid, 42U);
  EXPECT_TRUE(S_ISFIFO(status_of(root + "pipe").st_mode));
  EXPECT_EQ(status_of(root + "pipe").st_mode & 07777, 0620U);
  EXPECT_FALSE(std::filesystem::exists(root + "dev/null"));
  EXPECT_FALSE(std::filesystem::exists(root + "socket"));
  EXPECT_EQ(status_of(root + "secret").st_mode & 07777, 0U);
}

}  // namespace
}  // namespace hearth::image
