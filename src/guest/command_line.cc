#include "guest/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "guest/users.h"

namespace hearth::guest {
namespace {

constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void check(const ExecRequest& request) {
  if (request.command.empty() || request.command.front().empty()) {
    fail(Code::invalid, "no command was given");
  }
  // execve(2) takes texts that end at their first zero byte: what follows would silently be lost.
  const auto has_zero = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  if (std::ranges::any_of(request.command, has_zero)) {
    fail(Code::invalid, "an argument has a zero byte in it");
  }
  for (const std::string& entry : request.environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || has_zero(entry)) {
      fail(Code::invalid, "'{}' is not NAME=value", entry.substr(0, equals));
    }
  }
  if (has_zero(request.directory)) fail(Code::invalid, "the directory has a zero byte in it");
}

// All of them, the first one included; each once.
std::vector<std::uint32_t> groups_for(const User& user, const ProcessRights& rights) {
  std::vector<std::uint32_t> groups = user.groups;
  const auto add = [&](const std::vector<std::uint32_t>& more) {
    for (const std::uint32_t group : more)
      if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  };
  if (rights.image_groups == ImageGroups::never) groups = {user.gid};
  if (rights.image_groups == ImageGroups::always) add(memberships_here(user));
  add(rights.groups);
  return groups;
}

}  // namespace

SpawnPlan plan_command(const ExecRequest& request, const CommandDefaults& defaults) {
  check(request);
  const User user = find_user_here(request.user.empty() ? defaults.user : request.user);

  std::map<std::string, std::string> merged;
  const auto merge = [&](const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      const std::size_t equals = entry.find('=');
      merged[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  };
  merged["PATH"] = kPath;
  merged["LANG"] = "C.UTF-8";
  if (request.terminal) merged["TERM"] = "xterm-256color";
  merge(defaults.environment);
  merged["HOME"] = user.home;
  if (!user.name.empty()) merged["USER"] = merged["LOGNAME"] = user.name;
  merge(request.environment);

  SpawnPlan plan;
  plan.command = request.command;
  for (const auto& [name, value] : merged) plan.environment.push_back(name + '=' + value);
  plan.directory = defaults.directory.empty() ? user.home : defaults.directory;
  if (!request.directory.empty()) plan.directory = request.directory;
  // Nobody asked for the home, and an image may not have one.
  plan.or_root = request.directory.empty() && defaults.directory.empty();
  plan.uid = user.uid;
  plan.gid = user.gid;
  plan.groups = groups_for(user, defaults.rights);
  plan.dropped_capabilities = defaults.rights.dropped_capabilities;
  if (request.terminal) plan.terminal = STDIN_FILENO;
  plan.limits = defaults.limits;
  return plan;
}

AwakeDeadline deadline_of(const ExecRequest& request) {
  // A time beyond a century is as good as none, and would overflow.
  constexpr std::uint64_t kCentury = 100ull * 365 * 24 * 3600 * 1000;
  if (request.timeout_milliseconds == 0 || request.timeout_milliseconds > kCentury)
    return AwakeDeadline::never();
  return AwakeDeadline::after(std::chrono::milliseconds(request.timeout_milliseconds));
}

Failed describe_failure(const SpawnPlan& plan, const SpawnResult& result) {
  const std::string why = errno_text(result.error);
  const std::string& program = plan.command.front();
  switch (result.failed) {
    case SpawnStep::process:
      if (result.error == EAGAIN) {
        return {
            .code = Code::exhausted,
            .message = "no process can be started: the sandbox has as many as its limit allows"};
      }
      return {.code = code_from_errno(result.error), .message = "start a process: " + why};
    case SpawnStep::user:
      return {.code = code_from_errno(result.error),
              .message = fmt::format("become user {}:{}: {}", plan.uid, plan.gid, why)};
    case SpawnStep::directory:
      return {.code = Code::invalid,
              .message = fmt::format("enter the working directory '{}': {}", plan.directory, why)};
    case SpawnStep::program:
      if (result.error == ENOENT) {
        return {.code = Code::not_found,
                .message = fmt::format("there is no program '{}' in the sandbox", program)};
      }
      return {.code = result.error == E2BIG ? Code::invalid : Code::forbidden,
              .message = fmt::format("run '{}': {}", program, why)};
    case SpawnStep::none:
    case SpawnStep::set_up:
      break;
  }
  return {.code = Code::internal, .message = fmt::format("prepare '{}': {}", program, why)};
}

}  // namespace hearth::guest
