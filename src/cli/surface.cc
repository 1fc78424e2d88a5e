#include "cli/surface.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/error.h"
#include "cli/command.h"
#include "cli/json_object.h"
#include "cli/values.h"
#include "guest/client.h"
#include "runtime/client.h"

namespace hearth::cli {
namespace {

constexpr guest::Surface kSurfaces[] = {guest::Surface::envd, guest::Surface::interpreter,
                                        guest::Surface::runtime_api, guest::Surface::sandboxd};

std::uint16_t parse_port(std::string_view flag, std::string_view text) {
  return static_cast<std::uint16_t>(
      parse_count(flag, text, std::numeric_limits<std::uint16_t>::max()));
}

void add_surface(std::vector<guest::SurfacePort>& ports, guest::SurfacePort one,
                 std::string_view flag) {
  if (std::ranges::find(ports, one.port, &guest::SurfacePort::port) != ports.end())
    fail(Code::invalid, "{}: port {} is given twice", flag, one.port);
  ports.push_back(one);
}

guest::SurfacePort parse_surface(std::string_view flag, std::string_view word) {
  const std::size_t colon = word.find(':');
  const auto surface = guest::find_surface(word.substr(0, colon));
  if (!surface) {
    fail(Code::invalid, "{}: there is no surface '{}'; there are envd, code, runtime-api, sandboxd",
         flag, word.substr(0, colon));
  }
  if (colon == std::string_view::npos)
    return {.surface = *surface, .port = guest::usual_port(*surface)};
  const std::uint16_t port = parse_port(flag, word.substr(colon + 1));
  if (port == 0) fail(Code::invalid, "{}: '{}' needs a port from 1 to 65535", flag, word);
  return {.surface = *surface, .port = port};
}

}  // namespace

ForwardedPort parse_forwarded_port(std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool has_local = colon != std::string_view::npos;
  const std::uint16_t inside = parse_port("PORT", has_local ? text.substr(colon + 1) : text);
  if (inside == 0) fail(Code::invalid, "'{}' names no port of a sandbox", text);
  return {.local = has_local ? parse_port("LOCAL", text.substr(0, colon)) : inside,
          .inside = inside};
}

std::vector<guest::SurfacePort> parse_surfaces(std::string_view flag,
                                               const std::vector<std::string>& words) {
  std::vector<guest::SurfacePort> ports;
  for (std::string_view list : words) {
    while (true) {
      const std::size_t comma = list.find(',');
      const std::string_view word = list.substr(0, comma);
      if (word == "all") {
        for (const guest::Surface each : kSurfaces)
          add_surface(ports, {.surface = each, .port = guest::usual_port(each)}, flag);
      } else {
        add_surface(ports, parse_surface(flag, word), flag);
      }
      if (comma == std::string_view::npos) break;
      list.remove_prefix(comma + 1);
    }
  }
  return ports;
}

std::string read_token(const std::string& file) {
  std::string token = read_secret({.target = "/token", .path = file}).content;
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  const bool sendable = std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7f; });
  if (token.empty() || !sendable)
    fail(Code::invalid, "'{}' holds no token: one line of printable characters without spaces",
         file);
  return token;
}

int ports(const PortsOptions& options) {
  guest::Connection guest(runtime::RuntimeClient(options.state_dir).connect(options.id));
  const auto print = [&](const std::vector<std::uint16_t>& all) {
    std::vector<std::string> words;
    for (const std::uint16_t port : all) words.push_back(std::to_string(port));
    if (options.format == Format::json) {
      std::printf("[%s]\n", fmt::format("{}", fmt::join(words, ",")).c_str());
    } else if (options.follow) {
      std::printf("%s\n", fmt::format("{}", fmt::join(words, " ")).c_str());
    } else {
      for (const std::string& word : words) std::puts(word.c_str());
    }
    return std::fflush(stdout) == 0;
  };
  if (options.follow) {
    guest.follow_ports(print);
  } else {
    print(guest.ports());
  }
  return 0;
}

int configure(const ConfigureOptions& options) {
  runtime::Belongings belongings{.hostname = options.hostname};
  guest::Configuration& configuration = belongings.configuration;
  configuration.environment = options.environment;
  configuration.user = options.user;
  configuration.directory = options.directory;
  if (!options.token_file.empty()) configuration.token = read_token(options.token_file);
  for (const SecretFile& secret : options.secrets) {
    runtime::MountSpec file = read_secret(secret);
    configuration.files.push_back({.path = file.target, .content = std::move(file.content)});
  }
  runtime::RuntimeClient(options.state_dir).configure(options.id, belongings);
  std::puts(options.id.c_str());
  return 0;
}

}  // namespace hearth::cli
