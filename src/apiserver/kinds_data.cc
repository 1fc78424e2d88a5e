// Kinds that hold data: ConfigMap, Secret, Namespace.
#include <fmt/format.h>

#include "apiserver/kinds_strategies_internal.h"
#include "base/base64.h"
#include "base/error.h"

namespace hearth::apiserver {
namespace {

constexpr std::size_t kMostBytes = 1024 * 1024;

std::string keyed(std::string_view field, std::string_view key) {
  return fmt::format("{}[{}]", field, key);
}

// What `immutable: true` froze stays as it is, and frozen.
void check_frozen(Errors& errors, const Json& next, const Json* old,
                  std::initializer_list<std::string_view> members) {
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  static const Json kEmpty{JsonObject()};
  if (!old || !model::is_true_at(*old, {"immutable"})) return;
  if (!model::is_true_at(next, {"immutable"}))
    errors.push_back(model::forbidden("immutable", kWhy));
  for (const std::string_view name : members) {
    const Json* now = model::find(next, {name});
    const Json* before = model::find(*old, {name});
    if (!model::is_same(now ? *now : kEmpty, before ? *before : kEmpty))
      errors.push_back(model::forbidden(std::string(name), kWhy));
  }
}

class ConfigMapStrategy : public PlainStrategy {
 public:
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view) const override {
    Errors errors;
    std::size_t bytes = 0;
    const JsonObject& data = as_object(model::find(next, {"data"}));
    const JsonObject& binary = as_object(model::find(next, {"binaryData"}));
    for (const auto& [key, value] : data) {
      check_config_key(errors, keyed("data", key), key);
      if (binary.contains(key))
        errors.push_back(model::invalid(keyed("data", key), json_quote(key),
                                        "duplicate of key present in binaryData"));
      if (value.is_string()) bytes += value.get_string().size();
    }
    for (const auto& [key, value] : binary) {
      check_config_key(errors, keyed("binaryData", key), key);
      if (value.is_string()) bytes += value.get_string().size() / 4 * 3;
    }
    if (bytes > kMostBytes) errors.push_back(too_long("", kMostBytes));
    check_frozen(errors, next, old, {"data", "binaryData"});
    return errors.take();
  }
};

// The keys that a secret of a type must have; the first list that is complete is enough.
struct TypedSecret {
  std::string_view type;
  std::vector<std::string_view> keys;
  bool is_any_enough = false;
  bool is_json = false;
};

const std::vector<TypedSecret>& typed_secrets() {
  static const std::vector<TypedSecret> kTypes = {
      {.type = "kubernetes.io/dockercfg", .keys = {".dockercfg"}, .is_json = true},
      {.type = "kubernetes.io/dockerconfigjson", .keys = {".dockerconfigjson"}, .is_json = true},
      {.type = "kubernetes.io/basic-auth", .keys = {"username", "password"}, .is_any_enough = true},
      {.type = "kubernetes.io/ssh-auth", .keys = {"ssh-privatekey"}},
      {.type = "kubernetes.io/tls", .keys = {"tls.crt", "tls.key"}},
  };
  return kTypes;
}

void check_json_secret(Errors& errors, const JsonObject& data, std::string_view key) {
  const auto bytes = base64_decode(text_in(data, key));
  std::string why = "not base64";
  try {
    if (bytes && model::parse_json(*bytes).value.is_object()) return;
    if (bytes) why = "must be a JSON object";
  } catch (const Error& error) {
    why = error.what();
  }
  errors.push_back(model::invalid(keyed("data", key), "\"<secret contents redacted>\"", why));
}

void check_typed_secret(Errors& errors, const JsonObject& data, const TypedSecret& type) {
  std::size_t missing = 0;
  for (const std::string_view key : type.keys) missing += !data.contains(key);
  if (missing == 0) {
    if (type.is_json) check_json_secret(errors, data, type.keys.front());
    return;
  }
  if (type.is_any_enough && missing < type.keys.size()) return;
  for (const std::string_view key : type.keys)
    if (!data.contains(key)) errors.push_back(model::required(keyed("data", key)));
}

class SecretStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    JsonObject& secret = model::make_object_at(object, {});
    // stringData is for writing only: it goes into data and is never seen again.
    // What is no text stays, for the schema to complain about.
    if (JsonObject* plain = object_in(secret, "stringData")) {
      JsonObject data = as_object(secret.if_contains("data"));
      JsonObject odd;
      for (const auto& [key, value] : *plain) {
        if (const auto* text = value.if_string())
          data[key] = base64_encode({text->data(), text->size()});
        else
          odd[key] = value;
      }
      *plain = std::move(odd);
      if (!data.empty()) secret["data"] = std::move(data);
    }
    if (const Json* left = secret.if_contains("stringData");
        is_unset(left) || as_object(left).empty())
      secret.erase("stringData");
    set_default(secret, "type", "Opaque");
  }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view) const override {
    Errors errors;
    std::size_t bytes = 0;
    const JsonObject& data = as_object(model::find(next, {"data"}));
    for (const auto& [key, value] : data) {
      check_config_key(errors, keyed("data", key), key);
      if (value.is_string()) bytes += value.get_string().size() / 4 * 3;
    }
    if (bytes > kMostBytes) errors.push_back(too_long("data", kMostBytes));
    const std::string_view type = model::text_at(next, {"type"});
    for (const TypedSecret& known : typed_secrets())
      if (known.type == type) check_typed_secret(errors, data, known);
    constexpr std::string_view kAccount = "kubernetes.io/service-account.name";
    if (type == "kubernetes.io/service-account-token" &&
        is_unset(model::find(next, {"metadata", "annotations", kAccount})))
      errors.push_back(model::required(keyed("metadata.annotations", kAccount)));
    if (old) check_immutable(errors, next, *old, {"type"}, "type");
    check_frozen(errors, next, old, {"data"});
    return errors.take();
  }
};

class NamespaceStrategy : public PlainStrategy {
 public:
  // The label lets selectors of namespaces name one. There is no name yet with generateName: the
  // server calls again once it has made one.
  void fill_in(Json& object) const override {
    const std::string name(model::text_at(object, {"metadata", "name"}));
    if (!name.empty())
      model::make_object_at(object, {"metadata", "labels"})["kubernetes.io/metadata.name"] = name;
    set_default(model::make_object_at(object, {"status"}), "phase", "Active");
  }
  void prepare_create(Json& object) const override {
    JsonObject& ns = model::make_object_at(object, {});
    JsonObject& spec = model::make_object_at(object, {"spec"});
    JsonArray* finalizers = array_in(spec, "finalizers");
    if (!finalizers) finalizers = &spec["finalizers"].emplace_array();
    bool is_there = false;
    for (const Json& one : *finalizers)
      is_there |= one.is_string() && one.get_string() == "kubernetes";
    if (!is_there) finalizers->emplace_back("kubernetes");
    ns["status"] = JsonObject{{"phase", "Active"}};
  }
  // Finalizers are taken away through the finalize subresource only.
  void prepare_update(Json& next, const Json& old) const override {
    keep_status(next, old);
    if (const Json* spec = model::find(old, {"spec"}))
      model::make_object_at(next, {})["spec"] = *spec;
  }
};

}  // namespace

const Strategy& config_map_strategy() {
  static const ConfigMapStrategy kStrategy;
  return kStrategy;
}

const Strategy& secret_strategy() {
  static const SecretStrategy kStrategy;
  return kStrategy;
}

const Strategy& namespace_strategy() {
  static const NamespaceStrategy kStrategy;
  return kStrategy;
}

}  // namespace hearth::apiserver
