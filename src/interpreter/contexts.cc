#include "interpreter/contexts.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/error.h"
#include "base/id.h"
#include "guest/users.h"

namespace hearth::interpreter {
namespace {

// Each may have a kernel of some ten megabytes.
constexpr std::size_t kMaxContexts = 128;

// Where the SDKs say that cells begin; images of other makers may not have it.
constexpr const char* kUsualDirectory = "/home/user";

// A random UUID (RFC 9562, version 4).
std::string new_context_id() {
  std::string hex = random_hex(16);
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<unsigned char>(hex[16]) % 4];
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

bool is_directory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

std::string default_directory(const guest::Core& core) {
  if (is_directory(kUsualDirectory)) return kUsualDirectory;
  try {
    const std::string home = guest::find_user_here(core.settings().user).home;
    if (is_directory(home)) return home;
  } catch (const Error&) {
    // A user that is not there: who runs a cell is told.
  }
  return "/";
}

}  // namespace

Contexts::Contexts(guest::Core& core) : core_(core) {
  for (const char* language : {"python", "javascript"}) default_for(language);
}

Contexts::~Contexts() {
  if (warmer_.joinable()) warmer_.join();
}

Contexts::Shared Contexts::make_context(const std::string& language,
                                        const std::string& directory) const {
  kit_for(language);  // whether there is one
  std::string place = directory;
  if (place.empty() || (place == kUsualDirectory && !is_directory(place)))
    place = default_directory(core_);
  if (!is_directory(place)) fail(Code::invalid, "there is no directory '{}'", place);
  return std::make_shared<Context>(core_, new_context_id(), language, place);
}

void Contexts::add(All& all, const Shared& context) {
  if (all.contexts.size() >= kMaxContexts)
    fail(Code::exhausted, "there are {} contexts, and no more are allowed", kMaxContexts);
  all.contexts.push_back(context);
}

Contexts::Shared Contexts::make(const std::string& language, const std::string& directory) {
  Shared context = make_context(language, directory);
  all_.with([&](All& all) { add(all, context); });
  return context;
}

Contexts::Shared Contexts::get(const std::string& id) const {
  return all_.with([&](const All& all) {
    const auto found = std::ranges::find(
        all.contexts, id, [](const Shared& context) -> auto& { return context->id(); });
    if (found == all.contexts.end()) fail(Code::not_found, "Context {} not found", id);
    return *found;
  });
}

Contexts::Shared Contexts::default_for(const std::string& language) {
  const auto known = all_.with([&](All& all) -> std::optional<std::string> {
    const auto found = all.defaults.find(language);
    return found == all.defaults.end() ? std::nullopt : std::optional(found->second);
  });
  if (known) return get(*known);
  const Shared made = make_context(language, "");
  const std::string id = all_.with([&](All& all) {
    const auto [at, is_new] = all.defaults.try_emplace(language, made->id());
    if (is_new) add(all, made);
    return at->second;
  });
  return get(id);
}

std::vector<Contexts::Shared> Contexts::list() const {
  return all_.with([](const All& all) { return all.contexts; });
}

void Contexts::remove(const std::string& id) {
  const Shared context = get(id);
  all_.with([&](All& all) {
    std::erase(all.contexts, context);
    std::erase_if(all.defaults, [&](const auto& each) { return each.second == id; });
  });
  context->remove();
}

void Contexts::warm_up() {
  const Shared context = all_.with([](All& all) -> Shared {
    if (std::exchange(all.warmed_up, true) || all.contexts.empty()) return nullptr;
    return all.contexts.front();
  });
  if (context == nullptr) return;
  sigset_t every;
  sigset_t before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);  // signals are the guest's business
  warmer_ = std::thread([context] {
    try {
      context->warm_up();
    } catch (const std::exception&) {
      // Whoever runs a cell is told.
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace hearth::interpreter
