#include "registry/manifest.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/time_text.h"

namespace hearth::registry {
namespace {

const std::string kA = "sha256:" + std::string(64, 'a');
const std::string kB = "sha256:" + std::string(64, 'b');

std::string descriptor(const std::string& type, const std::string& digest,
                       const std::string& more = "") {
  return fmt::format(R"({{"mediaType":"{}","digest":"{}","size":7{}}})", type, digest, more);
}

std::string manifest(const std::string& config_type = "application/vnd.oci.image.config.v1+json") {
  return fmt::format(R"({{"schemaVersion":2,"config":{},"layers":[{}]}})",
                     descriptor(config_type, kA),
                     descriptor("application/vnd.oci.image.layer.v1.tar+gzip", kB));
}

std::string index_of(const std::vector<std::string>& platforms) {
  std::string entries;
  char digit = '0';
  for (const std::string& platform : platforms) {
    entries += entries.empty() ? "" : ",";
    entries += descriptor("application/vnd.oci.image.manifest.v1+json",
                          "sha256:" + std::string(64, digit++),
                          platform.empty() ? "" : ",\"platform\":" + platform);
  }
  return fmt::format(R"({{"schemaVersion":2,"manifests":[{}]}})", entries);
}

std::string error_of(const std::string& text, const std::string& type = "") {
  try {
    parse_document(text, type);
    ADD_FAILURE() << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    return error.what();
  }
  return {};
}

TEST(Manifest, NamesItsBlobs) {
  const Document document = parse_document(manifest(), "");

  const auto& parsed = std::get<Manifest>(document);
  EXPECT_EQ(parsed.config.digest, kA);
  ASSERT_EQ(parsed.layers.size(), 1U);
  EXPECT_EQ(parsed.layers[0].digest, kB);
  EXPECT_EQ(parsed.layers[0].size, 7U);
}

TEST(Manifest, RefusesWhatIsNoImage) {
  EXPECT_NE(error_of("{").find("not JSON"), std::string::npos);
  EXPECT_NE(error_of("[]").find("no JSON object"), std::string::npos);
  EXPECT_NE(error_of(R"({"schemaVersion":1,"fsLayers":[]})").find("schema 1"), std::string::npos);
  EXPECT_NE(error_of("{}", "application/vnd.docker.distribution.manifest.v1+prettyjws; charset=x")
                .find("schema 1"),
            std::string::npos);
  EXPECT_NE(error_of(manifest("application/vnd.cncf.helm.config.v1+json")).find("helm"),
            std::string::npos);
  error_of("{}");
  error_of(R"({"config":{},"layers":[]})");
  error_of(R"({"config":7,"layers":[]})");
  error_of(std::string(100, '['));
}

TEST(Manifest, RefusesDescriptorsThatLie) {
  for (const std::string blob : {R"({"digest":"sha256:12","size":1})",
                                 R"({"digest":"../../etc","size":1})", R"({"size":1})"}) {
    error_of(R"({"config":)" + blob + R"(,"layers":[]})");
  }
  error_of(R"({"config":{"digest":")" + kA + R"(","size":-1},"layers":[]})");
  error_of(R"({"config":{"digest":")" + kA + R"(","size":1.5},"layers":[]})");
  error_of(R"({"config":{"digest":")" + kA + R"(","size":"1"},"layers":[]})");
}

TEST(Manifest, IsNotTwoThingsAtOnce) {
  const std::string both = R"({"manifests":[],"layers":[],"config":{}})";
  EXPECT_NE(error_of(both).find("at the same time"), std::string::npos);
  error_of(manifest(), "application/vnd.oci.image.index.v1+json");
  error_of(index_of({}), "application/vnd.docker.distribution.manifest.v2+json");
}

TEST(Index, ChoosesTheImageForThisMachine) {
  const auto index = std::get<Index>(
      parse_document(index_of({R"({"os":"windows","architecture":"amd64"})",
                               R"({"os":"linux","architecture":"amd64","variant":"v3"})",
                               R"({"os":"linux","architecture":"arm64","variant":"v8"})",
                               R"({"os":"linux","architecture":"amd64"})",
                               R"({"os":"unknown","architecture":"unknown"})"}),
                     ""));

  const Platform amd{.os = "linux", .architecture = "amd64", .variant = "v1"};
  EXPECT_EQ(choose(index, amd).digest[7], '3');
  const Platform arm{.os = "linux", .architecture = "arm64", .variant = "v8"};
  EXPECT_EQ(choose(index, arm).digest[7], '2');
  try {
    choose(index, {.os = "linux", .architecture = "s390x"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    const std::string text = error.what();
    EXPECT_NE(text.find("linux/arm64/v8"), std::string::npos) << text;
    EXPECT_EQ(text.find("unknown"), std::string::npos) << text;
  }
}

TEST(Index, AnOnlyImageNeedNotSayWhatItIsFor) {
  const auto index = std::get<Index>(parse_document(index_of({""}), ""));
  EXPECT_EQ(choose(index, this_platform()).digest[7], '0');
}

TEST(ImageConfig, SaysHowToRunIt) {
  const ImageConfig image = parse_image_config(R"({
    "architecture": "amd64", "os": "linux", "created": "2024-05-06T07:08:09.5Z",
    "config": {"Entrypoint": ["/entry"], "Cmd": ["a", "b"], "Env": ["PATH=/bin", "nonsense", "=x"],
               "WorkingDir": "/work", "User": "app:staff", "ExposedPorts": {"80/tcp": {}, "53/udp": {}},
               "Labels": {"k": "v"}, "StopSignal": "SIGINT", "Volumes": {"/data": {}}},
    "rootfs": {"type": "layers", "diff_ids": [")" +
                                               kA + R"("]}, "history": []})");

  EXPECT_EQ(image.config.entrypoint, std::vector<std::string>{"/entry"});
  EXPECT_EQ(image.config.command, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(image.config.environment, std::vector<std::string>{"PATH=/bin"});
  EXPECT_EQ(image.config.directory, "/work");
  EXPECT_EQ(image.config.user, "app:staff");
  EXPECT_EQ(image.config.ports, (std::vector<std::string>{"53/udp", "80/tcp"}));
  EXPECT_EQ(image.config.labels.at("k"), "v");
  EXPECT_EQ(image.config.stop_signal, "SIGINT");
  EXPECT_EQ(image.diff_ids, std::vector<std::string>{kA});
  EXPECT_EQ(format_rfc3339(image.created), "2024-05-06T07:08:09Z");
}

TEST(ImageConfig, NullsAreAbsent) {
  const ImageConfig image = parse_image_config(
      R"({"config": {"Cmd": null, "Labels": null}, "created": "yesterday", "rootfs": {}})");
  EXPECT_TRUE(image.config.command.empty());
  EXPECT_TRUE(image.diff_ids.empty());
}

TEST(ImageConfig, RefusesWhatIsBroken) {
  for (const std::string bad :
       {"", "7", "{}", R"({"rootfs":{"diff_ids":["x"]}})", R"({"rootfs":{"diff_ids":[7]}})",
        R"({"rootfs":{},"config":{"Cmd":"sh"}})", R"({"rootfs":{},"config":{"Env":[1]}})",
        R"({"rootfs":{},"config":{"User":"a\u0000b"}})"}) {
    EXPECT_THROW(parse_image_config(bad), Error) << bad;
  }
  std::string large = R"({"rootfs":{},"config":{"User":")" + std::string(2 << 20, 'x') + "\"}}";
  EXPECT_THROW(parse_image_config(large), Error);
}

TEST(ImageConfig, MustAgreeWithManifestAndMachine) {
  const Platform here{.os = "linux", .architecture = "amd64"};
  ImageConfig config{.platform = here, .diff_ids = {kA}};
  Manifest manifest{.layers = {{}}};
  EXPECT_NO_THROW(check_image(manifest, config, here));

  config.platform.architecture = "arm64";
  try {
    check_image(manifest, config, here);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the image is for 'linux/arm64', this machine is linux/amd64");
  }
  config.platform = here;
  manifest.layers.emplace_back();
  EXPECT_THROW(check_image(manifest, config, here), Error);
  EXPECT_THROW(check_image({}, {.platform = here}, here), Error);
}

TEST(Compression, IsWhatTheBytesSay) {
  using image::Compression;
  const std::string gzip_type = "application/vnd.oci.image.layer.v1.tar+gzip";
  EXPECT_EQ(compression_of(gzip_type, "\x1f\x8b\x08"), Compression::gzip);
  EXPECT_EQ(compression_of(gzip_type, "etc/"), Compression::none);
  EXPECT_EQ(compression_of("", "\x28\xb5\x2f\xfd"), Compression::zstd);
  EXPECT_EQ(compression_of("x+zstd", "\x50\x2a\x4d\x18"), Compression::zstd);
  EXPECT_EQ(compression_of("", ""), Compression::none);
}

}  // namespace
}  // namespace hearth::registry
