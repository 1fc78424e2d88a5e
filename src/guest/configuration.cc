#include "guest/configuration.h"

#include "base/error.h"

namespace hearth::guest {
namespace {

// More would not fit into a message anyway.
constexpr std::uint32_t kMostFiles = 1024;

}  // namespace

void put(wire::Writer& out, const Configuration& configuration) {
  out.texts(configuration.environment).text(configuration.user).text(configuration.directory);
  out.text(configuration.token).boolean(configuration.drops_token);
  out.text(configuration.hosts).text(configuration.resolv_conf);
  out.u32(static_cast<std::uint32_t>(configuration.files.size()));
  for (const ConfiguredFile& file : configuration.files)
    out.text(file.path).text(file.content).u32(file.mode).text(file.user);
}

Configuration read_configuration(wire::Reader& in) {
  Configuration configuration;
  configuration.environment = in.texts();
  configuration.user = in.text();
  configuration.directory = in.text();
  configuration.token = in.text();
  configuration.drops_token = in.boolean();
  configuration.hosts = in.text();
  configuration.resolv_conf = in.text();
  const std::uint32_t files = in.u32();
  if (files > kMostFiles) fail(Code::invalid, "{} files; at most {}", files, kMostFiles);
  for (std::uint32_t i = 0; i < files; ++i) {
    ConfiguredFile file;
    file.path = in.text();
    file.content = in.text();
    file.mode = in.u32();
    file.user = in.text();
    configuration.files.push_back(std::move(file));
  }
  return configuration;
}

}  // namespace hearth::guest
