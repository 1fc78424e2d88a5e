// Files that are made of objects: config maps, secrets, the downward API, tokens.
#include "base/error.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "node/plan_internal.h"

namespace hearth::node {
namespace {

using model::text_at;

constexpr std::uint32_t kReadable = 0644;
constexpr std::uint32_t kGroupReads = 0440;
constexpr std::uint32_t kMostMode = 0777;
constexpr std::int64_t kUsualTokenSeconds = 3600;

std::uint32_t mode_at(const Json& value, std::string_view member, std::uint32_t usual) {
  const auto mode = model::number_at(value, {member});
  return mode && *mode >= 0 && *mode <= kMostMode ? static_cast<std::uint32_t>(*mode) : usual;
}

class FileMaker {
 public:
  FileMaker(const PlanInput& input, const Identity& identity, std::uint32_t mode)
      : input_(input), identity_(identity), mode_(mode) {}

  void add(const std::string& path, std::string content, std::uint32_t mode) {
    if (identity_.widens_files) mode |= kGroupReads;
    files_[path] = {path, std::move(content), mode};
  }
  void add(const std::string& path, std::string content) { add(path, std::move(content), mode_); }

  // All of `data`, or the items that the source names.
  void add_data(const Json& source, std::optional<Data> data, std::string_view what,
                std::string_view name) {
    const bool is_optional = model::is_true_at(source, {"optional"});
    if (!data && is_optional) return;
    if (!data) fail(Code::not_found, "{} \"{}\" not found", what, name);
    const JsonArray* items = model::array_at(source, {"items"});
    if (!items || items->empty()) {
      for (auto& [key, value] : *data) add(key, value);
      return;
    }
    for (const Json& item : *items) {
      const std::string_view key = text_at(item, {"key"});
      const auto found = data->find(key);
      if (found != data->end())
        add(std::string(text_at(item, {"path"})), found->second, mode_at(item, "mode", mode_));
      else if (!is_optional)
        fail(Code::not_found, "{} references non-existent key: {}", what, key);
    }
  }
  void add_config_map(const Json& source) {
    const std::string_view name = text_at(source, {"name"});
    add_data(source, find_config_map(input_, name), "configmap", name);
  }
  void add_secret(const Json& source, std::string_view name) {
    add_data(source, find_secret(input_, name), "secret", name);
  }
  void add_downward(const Json& source) {
    const JsonArray* items = model::array_at(source, {"items"});
    if (!items) return;
    for (const Json& item : *items) {
      const Json* field = model::find(item, {"fieldRef"});
      const Json* resource = model::find(item, {"resourceFieldRef"});
      if (!field && !resource) fail(Code::invalid, "an item of the downward API names no field");
      std::string text = field ? field_text(input_, text_at(*field, {"fieldPath"}))
                               : resource_text(input_, *resource);
      if (text.find(kAddressMark) != std::string::npos)
        fail(Code::invalid, "the pod's address is not known when files are made");
      add(std::string(text_at(item, {"path"})), std::move(text), mode_at(item, "mode", mode_));
    }
  }
  void add_token(const Json& source);
  void add_projected(const Json& source);

  Files take() { return std::move(files_); }

 private:
  const PlanInput& input_;
  const Identity& identity_;
  std::uint32_t mode_;
  Files files_;
};

void FileMaker::add_token(const Json& source) {
  add(std::string(text_at(source, {"path"})),
      input_.tokens.get(
          input_.pod, text_at(source, {"audience"}),
          model::number_at(source, {"expirationSeconds"}).value_or(kUsualTokenSeconds)));
}

void FileMaker::add_projected(const Json& source) {
  if (const Json* map = model::find(source, {"configMap"})) add_config_map(*map);
  if (const Json* secret = model::find(source, {"secret"}))
    add_secret(*secret, text_at(*secret, {"name"}));
  if (const Json* downward = model::find(source, {"downwardAPI"})) add_downward(*downward);
  if (const Json* token = model::find(source, {"serviceAccountToken"})) add_token(*token);
  for (const std::string_view other : {"clusterTrustBundle", "podCertificate"})
    if (const Json* bundle = model::find(source, {other});
        bundle && !model::is_true_at(*bundle, {"optional"}))
      fail(Code::invalid, "a projected '{}' is not supported", other);
}

bool wants_token(const PlanInput& input, const Json& account) {
  const Json* own = model::find(input.pod, {"spec", "automountServiceAccountToken"});
  if (!own || !own->is_bool()) own = model::find(account, {"automountServiceAccountToken"});
  return !own || !own->is_bool() || own->get_bool();
}

}  // namespace

std::optional<Files> plan_volume_files(const PlanInput& input, const Identity& identity,
                                       const Json& volume) {
  for (const std::string_view kind : {"configMap", "secret", "downwardAPI", "projected"}) {
    const Json* source = model::find(volume, {kind});
    if (!source) continue;
    FileMaker maker(input, identity, mode_at(*source, "defaultMode", kReadable));
    if (kind == "configMap") maker.add_config_map(*source);
    if (kind == "secret") maker.add_secret(*source, text_at(*source, {"secretName"}));
    if (kind == "downwardAPI") maker.add_downward(*source);
    if (kind == "projected")
      if (const JsonArray* sources = model::array_at(*source, {"sources"}))
        for (const Json& one : *sources) maker.add_projected(one);
    return maker.take();
  }
  return std::nullopt;
}

Files plan_token_files(const PlanInput& input, const Identity& identity) {
  if (const Json* own = model::find(input.pod, {"spec", "automountServiceAccountToken"});
      own && own->is_bool() && !own->get_bool())
    return {};
  const std::string_view ns = model::namespace_of(input.pod);
  const std::string_view name = account_of(input.pod);
  const auto account = input.client.find(client::kServiceAccounts, ns, name);
  // A new namespace gets its "default" a moment later; nobody asked for that one by name.
  if (!account && name == "default") return {};
  if (!account) fail(Code::not_found, "serviceaccount \"{}\" not found", name);
  if (!wants_token(input, *account)) return {};
  FileMaker maker(input, identity, kReadable);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(input.options.token_life);
  maker.add("token", input.tokens.get(input.pod, "", seconds.count()));
  maker.add("namespace", std::string(ns));
  if (const auto root = find_config_map(input, "kube-root-ca.crt"))
    if (const auto found = root->find("ca.crt"); found != root->end())
      maker.add("ca.crt", found->second);
  return maker.take();
}

}  // namespace hearth::node
