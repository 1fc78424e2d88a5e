#include "cli/engine_user.h"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "linux/capabilities.h"

namespace hearth::cli {
namespace {

std::optional<unsigned> read_id(const std::string& text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // The largest number means "leave as it is" to the kernel.
  if (error != std::errc() || end != text.data() + text.size() ||
      value == static_cast<unsigned>(-1)) {
    return std::nullopt;
  }
  return value;
}

std::optional<EngineUser> read_account(const passwd* account) {
  if (account == nullptr) return std::nullopt;
  return EngineUser{.uid = account->pw_uid, .gid = account->pw_gid};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

EngineUser user_of_flag(const EngineUserSources& sources) {
  const auto uid = read_id(sources.flag);
  auto user = uid ? sources.find_account_of_uid(*uid) : sources.find_account(sources.flag);
  // A bare uid is as good as an account, with a group of the same number.
  if (!user && uid) user = EngineUser{.uid = *uid, .gid = *uid};
  if (!user)
    fail(Code::invalid, "--user: there is no account '{}'; name another or a uid", sources.flag);
  if (user->uid == 0 || user->gid == 0) {
    fail(Code::invalid,
         "--user: the engine gives up root, and '{}' is root or in its group; name another",
         sources.flag);
  }
  return *user;
}

}  // namespace

EngineUser choose_engine_user(const EngineUserSources& sources) {
  if (!sources.flag.empty()) return user_of_flag(sources);
  const auto uid = read_id(sources.sudo_uid);
  const auto gid = read_id(sources.sudo_gid);
  if (uid && gid && *uid != 0 && *gid != 0) return {.uid = *uid, .gid = *gid};
  const auto account = sources.find_account(kEngineAccount);
  if (account && account->uid != 0 && account->gid != 0) return *account;
  return {.uid = kBareUid, .gid = kBareUid};
}

EngineUser find_engine_user(const std::string& flag) {
  // One thread yet: the functions without _r will do.
  const EngineUserSources sources{
      .flag = flag,
      .sudo_uid = variable("SUDO_UID"),
      .sudo_gid = variable("SUDO_GID"),
      .find_account =
          [](const std::string& name) { return read_account(::getpwnam(name.c_str())); },
      .find_account_of_uid = [](uid_t uid) { return read_account(::getpwuid(uid)); }};
  if (::geteuid() == 0) return choose_engine_user(sources);
  const EngineUser self{.uid = ::geteuid(), .gid = ::getegid()};
  if (!flag.empty() && user_of_flag(sources).uid != self.uid) {
    fail(Code::invalid, "--user: only root can start an engine for somebody else; use sudo");
  }
  return self;
}

void give_up_root(EngineUser user) {
  HEARTH_ASSERT(user.uid != 0 && user.gid != 0);
  if (::setgroups(0, nullptr) != 0) throw_errno("leave all groups");
  if (::setresgid(user.gid, user.gid, user.gid) != 0) throw_errno("become group {}", user.gid);
  if (::setresuid(user.uid, user.uid, user.uid) != 0) throw_errno("become user {}", user.uid);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("refuse new privileges");

  std::array<uid_t, 3> uids{};
  std::array<gid_t, 3> gids{};
  ::getresuid(uids.data(), &uids[1], &uids[2]);
  ::getresgid(gids.data(), &gids[1], &gids[2]);
  const bool is_user = uids == std::array{user.uid, user.uid, user.uid} &&
                       gids == std::array{user.gid, user.gid, user.gid};
  const bool can_return =
      ::setresuid(-1, 0, -1) == 0 || ::setresgid(-1, 0, -1) == 0 || ::setgroups(0, nullptr) == 0;
  bool has_any = false;
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    has_any = has_any || linux::has_capability(capability);
  }
  if (!is_user || can_return || has_any) fail(Code::internal, "root was not given up for good");
}

}  // namespace hearth::cli
