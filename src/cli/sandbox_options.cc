#include "cli/sandbox_options.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "cli/values.h"
#include "linux/fd.h"

namespace hearth::cli {
namespace {

// Enough for a few small files; more has to be asked for.
constexpr std::uint64_t kTmpfsBytes = std::uint64_t{64} << 20;
// What the runtime takes.
constexpr std::size_t kMostSecretBytes = std::size_t{1} << 20;

template <typename F>
auto naming(std::string_view flag, F&& parse) {
  try {
    return std::forward<F>(parse)();
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", flag, error.what());
  }
}

std::vector<network::Rule> parse_rules(std::string_view flag,
                                       const std::vector<std::string>& words) {
  std::vector<network::Rule> rules;
  for (const std::string& word : words)
    rules.push_back(naming(flag, [&] { return network::parse_rule(word); }));
  return rules;
}

std::string parse_target(std::string_view flag, std::string_view text, std::string_view whole) {
  if (!text.starts_with('/') || text.size() == 1)
    fail(Code::invalid, "{}: '{}' names no absolute path inside the sandbox", flag, whole);
  return std::string(text);
}

std::vector<std::string_view> split_at_colons(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 1);
  }
}

std::string read_bounded(int fd, const std::string& name) {
  std::string content;
  std::array<char, 4096> piece{};
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read '{}'", name);
    if (got == 0) return content;
    content.append(piece.data(), static_cast<std::size_t>(got));
    if (content.size() > kMostSecretBytes)
      fail(Code::invalid, "'{}' has more than {}", name, format_size(kMostSecretBytes));
  }
}

std::optional<std::uint64_t> read_ulimit(std::string_view text) {
  if (text == "unlimited") return linux::kUnlimited;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

NetworkOptions parse_network(std::string_view mode_flag, const NetworkWords& words) {
  NetworkOptions options;
  if (!words.mode.empty())
    options.mode = naming(mode_flag, [&] { return network::parse_mode(words.mode); });
  options.rules.dns = !words.no_dns;
  options.rules.open = parse_rules("--open", words.open);
  options.rules.allow = parse_rules("--allow", words.allow);
  options.rules.deny = parse_rules("--deny", words.deny);
  network::check(options.rules);
  const bool has_rules = !words.open.empty() || !words.allow.empty() || !words.deny.empty();
  if (options.mode == network::Mode::none && has_rules)
    fail(Code::invalid, "{} none goes without rules: nothing passes", mode_flag);
  if (!options.mode && !words.allow.empty()) options.mode = network::Mode::listed;
  return options;
}

std::optional<network::Policy> choose_policy(const NetworkOptions& options,
                                             bool engine_has_network) {
  const bool wants_out =
      options.mode ? *options.mode != network::Mode::none : !options.rules.open.empty();
  if (!engine_has_network && !wants_out) return std::nullopt;
  network::Policy policy = options.rules;
  policy.mode = options.mode.value_or(network::Mode::world);
  return policy;
}

runtime::MountSpec parse_volume(std::string_view flag, std::string_view text) {
  const std::vector<std::string_view> parts = split_at_colons(text);
  const bool has_mode = parts.size() == 3;
  if ((parts.size() != 2 && !has_mode) || (has_mode && parts[2] != "ro" && parts[2] != "rw")) {
    fail(Code::invalid, "{}: '{}' is no mount; write NAME:/target or /host/path:/target, and ':ro'",
         flag, text);
  }
  const bool is_path = parts[0].starts_with('/');
  if (!is_path && parts[0].find('/') != std::string_view::npos) {
    fail(Code::invalid, "{}: '{}' is neither a volume's name nor an absolute path of this machine",
         flag, parts[0]);
  }
  return {.kind = is_path ? runtime::MountKind::host : runtime::MountKind::volume,
          .source = std::string(parts[0]),
          .target = parse_target(flag, parts[1], text),
          .read_only = has_mode && parts[2] == "ro"};
}

runtime::MountSpec parse_tmpfs(std::string_view flag, std::string_view text) {
  const std::size_t colon = text.find(':');
  runtime::MountSpec mount{.kind = runtime::MountKind::memory,
                           .target = parse_target(flag, text.substr(0, colon), text),
                           .bytes = kTmpfsBytes};
  if (colon != std::string_view::npos) mount.bytes = parse_size(flag, text.substr(colon + 1));
  return mount;
}

SecretFile parse_secret(std::string_view flag, std::string_view text) {
  const std::size_t equals = text.find('=');
  // Whoever writes a secret itself here should not find it in a log.
  if (equals == std::string_view::npos || equals + 1 == text.size() || !text.starts_with('/'))
    fail(Code::invalid, "{}: write /target=FILE, or /target=- for what comes in", flag);
  return {.target = parse_target(flag, text.substr(0, equals), text.substr(0, equals)),
          .path = std::string(text.substr(equals + 1))};
}

runtime::MountSpec read_secret(const SecretFile& secret) {
  runtime::MountSpec mount{.kind = runtime::MountKind::file, .target = secret.target};
  return naming("--secret", [&] {
    const linux::Fd file = secret.path == "-" ? linux::duplicate(STDIN_FILENO)
                                              : linux::open_file(secret.path, O_RDONLY);
    mount.content = read_bounded(file.get(), secret.path);
    return std::move(mount);
  });
}

runtime::DiskPlace parse_disk_place(std::string_view flag, std::string_view text) {
  for (const auto place : {runtime::DiskPlace::memory, runtime::DiskPlace::disk}) {
    if (text == runtime::to_string(place)) return place;
  }
  fail(Code::invalid, "{}: '{}' is neither memory nor disk", flag, text);
}

linux::ResourceLimit parse_ulimit(std::string_view flag, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto resource = linux::find_resource(name);
  if (!resource)
    fail(Code::invalid, "{}: there is no limit '{}'; there are {}", flag, name,
         linux::all_resource_names());
  const std::string_view values =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const std::size_t colon = values.find(':');
  const auto soft = read_ulimit(values.substr(0, colon));
  const auto hard = colon == std::string_view::npos ? soft : read_ulimit(values.substr(colon + 1));
  if (!soft || !hard) {
    fail(Code::invalid,
         "{}: '{}' is no limit; write {}=SOFT or {}=SOFT:HARD, each a number or 'unlimited'", flag,
         text, name, name);
  }
  if (*soft > *hard)
    fail(Code::invalid, "{}: '{}' has a soft limit above the hard one", flag, text);
  return {.resource = *resource, .soft = *soft, .hard = *hard};
}

}  // namespace hearth::cli
