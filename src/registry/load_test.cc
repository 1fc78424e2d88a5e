#include "registry/load.h"

#include <sys/stat.h>

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/program.h"
#include "registry/testing_internal.h"

namespace hearth::registry {
namespace {

class LoadTest : public testing::Test {
 protected:
  LoadTest() { options_.scratch = folder_.path("scratch"); }

  std::string write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    std::ofstream(folder_.path(name), std::ios::binary) << bytes;
    return folder_.path(name);
  }
  std::string docker_archive(const std::string& tags = R"(["app:1"])") {
    return tar_entry("abc.json", make_config({"layer one", "layer two"})) +
           tar_entry("one/", "", '5') + tar_entry("one/layer.tar", "layer one") +
           tar_entry("shared.tar", "layer two") +
           tar_entry("two/layer.tar", "", '2', "../shared.tar") +
           tar_entry("manifest.json", R"([{"Config":"abc.json","RepoTags":)" + tags +
                                          R"(,"Layers":["one/layer.tar","two/layer.tar"]}])") +
           tar_end();
  }
  // File name and content of an OCI layout.
  std::vector<std::pair<std::string, std::string>> oci_files(const std::string& annotations) {
    const std::vector<std::string> layers = {"layer one", "layer two"};
    const std::string config = make_config(layers);
    const std::string manifest = make_manifest(config, layers);
    const auto path = [](const std::string& blob) {
      return "blobs/sha256/" + sha256_of(blob).substr(7);
    };
    return {{"oci-layout", R"({"imageLayoutVersion":"1.0.0"})"},
            {"index.json", fmt::format(R"({{"schemaVersion":2,"manifests":[{}]}})",
                                       make_descriptor("application/vnd.oci.image.manifest.v1+json",
                                                       manifest, annotations))},
            {path(manifest), manifest},
            {path(config), config},
            {path(layers[0]), layers[0]},
            {path(layers[1]), layers[1]}};
  }
  Error failure(const std::string& path) {
    return failure_of([&] { load(path, options_, sink_, progress_); }, sink_);
  }

  TemporaryFolder folder_;
  MemorySink sink_;
  QuietProgress progress_;
  LoadOptions options_;
};

const std::string kNamed = R"(,"annotations":{"org.opencontainers.image.ref.name":"app:1"})";

TEST_F(LoadTest, WhatDockerSaves) {
  const auto names = load(write("x.tar", docker_archive()), options_, sink_, progress_);

  EXPECT_EQ(names, std::vector<std::string>{"docker.io/library/app:1"});
  EXPECT_EQ(sink_.contents, (std::vector<std::string>{"layer one", "layer two"}));
  ASSERT_EQ(sink_.images.size(), 1U);
  EXPECT_EQ(sink_.images[0].id, sha256_of(make_config({"layer one", "layer two"})));
  EXPECT_EQ(sink_.images[0].layers[1], sha256_of("layer two"));
  EXPECT_EQ(sink_.blobs[0].diff_id, sha256_of("layer one"));
  EXPECT_EQ(sink_.blobs[0].digest, "");
}

TEST_F(LoadTest, SeveralNamesAndNone) {
  const std::string two = write("two.tar", docker_archive(R"(["app:1","ghcr.io/x/y:2"])"));
  EXPECT_EQ(load(two, options_, sink_, progress_).size(), 2U);
  EXPECT_EQ(sink_.contents.size(), 2U);

  sink_ = {};
  const std::string none = write("none.tar", docker_archive("null"));
  EXPECT_TRUE(says(failure(none), "--name"));
  options_.name = "named:5";
  EXPECT_EQ(load(none, options_, sink_, progress_)[0], "docker.io/library/named:5");
}

TEST_F(LoadTest, CompressedAndFromAPipe) {
  const std::string plain = write("x.tar", docker_archive());
  for (const std::string program : {"gzip", "xz", "bzip2"}) {
    sink_ = {};
    ASSERT_EQ(linux::run_program({program, "-k", "-f", plain}, "", 100, std::chrono::seconds(20))
                  .status.code,
              0);
    const std::string suffix = program == "gzip" ? ".gz" : program == "xz" ? ".xz" : ".bz2";
    load(plain + suffix, options_, sink_, progress_);
    EXPECT_EQ(sink_.contents.size(), 2U) << program;
  }
}

TEST_F(LoadTest, AnOciLayoutAsArchiveAndAsFolder) {
  std::string archive;
  for (const auto& [name, content] : oci_files(kNamed)) {
    archive += tar_entry("./" + name, content);
    write("layout/" + name, content);
  }
  for (const std::string& path : {write("x.tar", archive + tar_end()), folder_.path("layout")}) {
    sink_ = {};
    EXPECT_EQ(load(path, options_, sink_, progress_)[0], "docker.io/library/app:1");
    EXPECT_EQ(sink_.contents, (std::vector<std::string>{"layer one", "layer two"}));
    EXPECT_EQ(sink_.blobs[0].digest, sha256_of("layer one"));
  }
}

TEST_F(LoadTest, ATagAloneIsNoName) {
  for (const auto& [name, content] :
       oci_files(R"(,"annotations":{"org.opencontainers.image.ref.name":"latest"})")) {
    write("layout/" + name, content);
  }
  EXPECT_TRUE(says(failure(folder_.path("layout")), "--name"));
  options_.name = "app";
  EXPECT_EQ(load(folder_.path("layout"), options_, sink_, progress_)[0],
            "docker.io/library/app:latest");
}

TEST_F(LoadTest, RefusesBlobsThatAreNotWhatTheirNameSays) {
  for (const auto& [name, content] : oci_files(kNamed)) {
    const bool is_config = content == make_config({"layer one", "layer two"});
    write("layout/" + name, is_config ? content + " " : content);
  }
  EXPECT_TRUE(says(failure(folder_.path("layout")), "is not what its digest says"));

  for (const auto& [name, content] : oci_files(kNamed)) {
    write("layout2/" + name, content == "layer two" ? "layer" : content);
  }
  EXPECT_TRUE(says(failure(folder_.path("layout2")), "another size"));
}

TEST_F(LoadTest, StaysInsideAFolder) {
  for (const auto& [name, content] : oci_files(kNamed)) write("layout/" + name, content);
  const std::string blob = folder_.path("layout/blobs/sha256/" + sha256_of("layer one").substr(7));
  write("outside", "layer one");
  std::filesystem::remove(blob);
  std::filesystem::create_symlink("../../../outside", blob);

  EXPECT_TRUE(says(failure(folder_.path("layout")), "has no 'blobs/sha256/"));
}

TEST_F(LoadTest, LinksInAnArchiveLeadNowhereElse) {
  const std::string manifest = R"([{"Config":"c.json","RepoTags":["a:1"],"Layers":["l"]}])";
  for (const std::string target : {"../../etc/passwd", "/etc/passwd", "l", "missing"}) {
    const std::string path = write("x.tar", tar_entry("c.json", make_config({"layer"})) +
                                                tar_entry("l", "", '2', target) +
                                                tar_entry("manifest.json", manifest) + tar_end());
    EXPECT_TRUE(says(failure(path), "the archive has no 'l' in it")) << target;
  }
}

TEST_F(LoadTest, NamesWhatIsWrong) {
  EXPECT_EQ(failure(folder_.path("missing.tar")).code(), Code::not_found);
  EXPECT_TRUE(says(failure(write("empty.tar", "")), "empty.tar"));
  EXPECT_TRUE(says(failure(write("root.tar", tar_entry("etc/passwd", "x") + tar_end())),
                   "hearth image import"));
  EXPECT_TRUE(says(failure(write("noise.tar", std::string(4096, 'n'))), "noise.tar"));
  EXPECT_TRUE(
      says(failure(write("bad.tar", tar_entry("manifest.json", "{") + tar_end())), "not JSON"));
  EXPECT_TRUE(says(failure(write("none.tar", tar_entry("manifest.json", "[]") + tar_end())),
                   "names no images"));
  const std::string whole = docker_archive();
  EXPECT_EQ(failure(write("cut.tar", whole.substr(0, 700))).code(), Code::invalid);
  failure(write("cut.gz", "\x1f\x8b\x08 this is not gzip"));
}

TEST_F(LoadTest, ImportsARootFileSystem) {
  const std::string tar = tar_entry("bin/sh", "#!") + tar_end();
  const ImportOptions import{
      .scratch = options_.scratch, .name = "my/root", .config = {.command = {"/bin/sh"}}};

  const image::Image image = import_root(write("root.tar", tar), import, sink_, progress_);

  EXPECT_EQ(image.name, "docker.io/my/root:latest");
  EXPECT_EQ(image.layers, std::vector<std::string>{sha256_of(tar)});
  EXPECT_EQ(image.config.command, std::vector<std::string>{"/bin/sh"});
  EXPECT_TRUE(image::is_digest(image.id));
  EXPECT_EQ(sink_.images.size(), 1U);
  EXPECT_EQ(sink_.contents[0], tar);
}

TEST_F(LoadTest, ImportsCompressedArchivesAndFolders) {
  const ImportOptions import{.scratch = options_.scratch, .name = "root"};
  const std::string tar = tar_entry("bin/sh", "#!") + tar_end();
  const std::string path = write("root.tar", tar);
  ASSERT_EQ(linux::run_program({"gzip", "-k", path}, "", 100, std::chrono::seconds(20)).status.code,
            0);
  ASSERT_EQ(linux::run_program({"xz", "-k", path}, "", 100, std::chrono::seconds(20)).status.code,
            0);

  import_root(path + ".gz", import, sink_, progress_);
  EXPECT_EQ(sink_.blobs[0].compression, image::Compression::gzip);
  import_root(path + ".xz", import, sink_, progress_);
  EXPECT_EQ(sink_.blobs[1].compression, image::Compression::none);
  EXPECT_EQ(sink_.contents[1], tar);
  EXPECT_EQ(import_root(folder_.path(""), import, sink_, progress_).layers,
            std::vector<std::string>{sha256_of("folder")});
}

TEST_F(LoadTest, ImportRefusesWhatIsNoArchive) {
  const ImportOptions import{.scratch = options_.scratch, .name = "root"};
  EXPECT_THROW(import_root(write("noise", std::string(2000, 'n')), import, sink_, progress_),
               Error);
  EXPECT_THROW(import_root(write("empty", ""), import, sink_, progress_), Error);
  EXPECT_THROW(import_root(folder_.path("missing"), import, sink_, progress_), Error);
  EXPECT_THROW(import_root(folder_.path(""), {.scratch = options_.scratch, .name = "Bad Name"},
                           sink_, progress_),
               Error);
  EXPECT_TRUE(sink_.images.empty());
}

TEST_F(LoadTest, AScratchFolderThatOthersMayWriteToIsRefused) {
  std::filesystem::create_directory(folder_.path("scratch"));
  ::chmod(folder_.path("scratch").c_str(), 0777);
  EXPECT_EQ(failure(write("x.tar", docker_archive())).code(), Code::forbidden);
}

}  // namespace
}  // namespace hearth::registry
