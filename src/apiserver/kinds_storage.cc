// Where data lives: PersistentVolumeClaim, PersistentVolume, StorageClass.
#include <fmt/format.h>

#include "apiserver/kinds_strategies_internal.h"
#include "apiserver/object_meta.h"

namespace hearth::apiserver {
namespace {

void check_access_modes(Errors& errors, const JsonObject& spec, std::string_view why_required) {
  const std::string field = "spec.accessModes";
  const JsonArray* modes = array_in(spec, "accessModes");
  if (!modes || modes->empty()) {
    errors.push_back(model::required(field, why_required));
    return;
  }
  std::size_t single = 0;
  for (const Json& mode : *modes) {
    const std::string text = mode.is_string() ? quantity_text(mode) : std::string();
    check_one_of(errors, field, text,
                 {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
    single += text == "ReadWriteOncePod";
  }
  if (single > 0 && single < modes->size())
    errors.push_back(
        model::forbidden(field, "may not use ReadWriteOncePod with other access modes"));
}

void check_size(Errors& errors, const Json& size, const std::string& field) {
  const auto value = quantity_of(size);
  if (!value)
    errors.push_back(model::invalid(field, model::to_text(size), model::kQuantityRule));
  else if (*value <= model::Quantity())
    errors.push_back(
        model::invalid(field, json_quote(quantity_text(size)), "must be greater than zero"));
}

void check_volume_mode(Errors& errors, const JsonObject& spec) {
  if (!is_unset(spec, "volumeMode"))
    check_one_of(errors, "spec.volumeMode", text_in(spec, "volumeMode"), {"Block", "Filesystem"});
}

// The claim's spec without what may change: the size of a bound claim, and the volume once.
JsonObject frozen_claim_spec(const JsonObject& spec, const JsonObject& old, bool is_bound) {
  Json frozen = spec;
  if (is_unset(old, "volumeName")) model::erase_at(frozen, {"volumeName"});
  if (is_unset(old, "storageClassName")) model::erase_at(frozen, {"storageClassName"});
  if (is_bound) {
    model::erase_at(frozen, {"resources", "requests", "storage"});
    model::erase_at(frozen, {"volumeAttributesClassName"});
  }
  return frozen.get_object();
}

void check_claim_update(Errors& errors, const Json& next, const Json& old) {
  const JsonObject& spec = as_object(model::find(next, {"spec"}));
  const JsonObject& before = as_object(model::find(old, {"spec"}));
  const bool is_bound = model::text_at(old, {"status", "phase"}) == "Bound";
  if (!model::is_same(frozen_claim_spec(spec, before, is_bound),
                      frozen_claim_spec(before, before, is_bound)))
    errors.push_back(model::forbidden("spec",
                                      "spec is immutable after creation except resources.requests "
                                      "and volumeAttributesClassName for bound claims"));
  const auto now = quantity_of(model::find(next, {"spec", "resources", "requests", "storage"}));
  const auto before_now =
      quantity_of(model::find(old, {"spec", "resources", "requests", "storage"}));
  const auto least = quantity_of(model::find(old, {"status", "capacity", "storage"}));
  if (now && before_now && *now < *before_now && *now <= least.value_or(model::Quantity()))
    errors.push_back(model::forbidden("spec.resources.requests.storage",
                                      "field can not be less than status.capacity"));
}

class ClaimStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    JsonObject& spec = model::make_object_at(object, {"spec"});
    set_default(spec, "volumeMode", "Filesystem");
    if (JsonObject* resources = object_in(spec, "resources")) {
      tidy_quantities(*resources, "limits");
      tidy_quantities(*resources, "requests");
    }
    set_default(model::make_object_at(object, {"status"}), "phase", "Pending");
  }
  void prepare_create(Json& object) const override {
    model::make_object_at(object, {})["status"] = JsonObject{{"phase", "Pending"}};
    add_finalizer(object, "kubernetes.io/pvc-protection");
  }
  void prepare_update(Json& next, const Json& old) const override { keep_status(next, old); }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view subresource) const override {
    Errors errors;
    if (!subresource.empty()) return {};
    const JsonObject& spec = as_object(model::find(next, {"spec"}));
    check_access_modes(errors, spec, "at least 1 access mode is required");
    const std::string field = "spec.resources[storage]";
    if (const Json* size = model::find(next, {"spec", "resources", "requests", "storage"}))
      check_size(errors, *size, field);
    else
      errors.push_back(model::required(field));
    if (!is_unset(spec, "storageClassName"))
      check_dns_subdomain(errors, "spec.storageClassName", text_in(spec, "storageClassName"));
    check_volume_mode(errors, spec);
    if (old) check_claim_update(errors, next, *old);
    return errors.take();
  }
};

// What of a volume's spec says how it is used; everything else is where it is.
bool is_volume_source(std::string_view member) {
  constexpr std::string_view kOthers[] = {"capacity",
                                          "accessModes",
                                          "claimRef",
                                          "persistentVolumeReclaimPolicy",
                                          "storageClassName",
                                          "mountOptions",
                                          "volumeMode",
                                          "nodeAffinity",
                                          "volumeAttributesClassName"};
  for (const std::string_view other : kOthers)
    if (member == other) return false;
  return true;
}

JsonObject volume_source(const JsonObject& spec) {
  JsonObject source;
  for (const auto& [name, value] : spec)
    if (is_volume_source(name) && !value.is_null()) source[name] = value;
  return source;
}

void check_volume(Errors& errors, const JsonObject& spec) {
  check_access_modes(errors, spec, "");
  const JsonObject& capacity = as_object(spec.if_contains("capacity"));
  if (capacity.empty()) errors.push_back(model::required("spec.capacity"));
  for (const auto& [name, size] : capacity)
    if (name == "storage")
      check_size(errors, size, "spec.capacity[storage]");
    else
      errors.push_back(
          model::not_supported("spec.capacity", model::to_text(capacity), {"storage"}));
  check_one_of(errors, "spec.persistentVolumeReclaimPolicy",
               text_in(spec, "persistentVolumeReclaimPolicy"), {"Delete", "Recycle", "Retain"});
  check_volume_mode(errors, spec);
  const JsonObject source = volume_source(spec);
  if (source.empty()) errors.push_back(model::required("spec", "must specify a volume type"));
  if (source.size() > 1)
    errors.push_back(
        model::forbidden(fmt::format("spec.{}", std::string_view((source.begin() + 1)->key())),
                         "may not specify more than 1 volume type"));
  if (const JsonObject* path = object_in(spec, "hostPath"))
    check_required(errors, *path, "path", "spec.hostPath.path");
}

class VolumeStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    JsonObject& spec = model::make_object_at(object, {"spec"});
    tidy_quantities(spec, "capacity");
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
    set_default(spec, "volumeMode", "Filesystem");
    if (JsonObject* path = object_in(spec, "hostPath")) set_default(*path, "type", "");
    set_default(model::make_object_at(object, {"status"}), "phase", "Pending");
  }
  void prepare_create(Json& object) const override {
    model::make_object_at(object, {})["status"] = JsonObject{{"phase", "Pending"}};
    add_finalizer(object, "kubernetes.io/pv-protection");
  }
  void prepare_update(Json& next, const Json& old) const override { keep_status(next, old); }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view subresource) const override {
    Errors errors;
    if (!subresource.empty()) return {};
    const JsonObject& spec = as_object(model::find(next, {"spec"}));
    check_volume(errors, spec);
    if (!old) return errors.take();
    if (!model::is_same(volume_source(spec), volume_source(as_object(model::find(*old, {"spec"})))))
      errors.push_back(model::forbidden("spec.persistentvolumesource",
                                        "spec.persistentvolumesource is immutable after creation"));
    check_immutable(errors, next, *old, {"spec", "volumeMode"}, "volumeMode");
    return errors.take();
  }
};

class StorageClassStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    JsonObject& storage = model::make_object_at(object, {});
    set_default(storage, "reclaimPolicy", "Delete");
    set_default(storage, "volumeBindingMode", "Immediate");
  }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view) const override {
    Errors errors;
    const JsonObject& storage = as_object(next);
    check_required(errors, storage, "provisioner", "provisioner");
    check_one_of(errors, "reclaimPolicy", text_in(storage, "reclaimPolicy"), {"Delete", "Retain"});
    check_one_of(errors, "volumeBindingMode", text_in(storage, "volumeBindingMode"),
                 {"Immediate", "WaitForFirstConsumer"});
    if (!old) return errors.take();
    check_immutable(errors, next, *old, {"parameters"}, "parameters");
    check_immutable(errors, next, *old, {"provisioner"}, "provisioner");
    check_immutable(errors, next, *old, {"reclaimPolicy"}, "reclaimPolicy");
    check_immutable(errors, next, *old, {"volumeBindingMode"}, "volumeBindingMode");
    return errors.take();
  }
};

}  // namespace

const Strategy& claim_strategy() {
  static const ClaimStrategy kStrategy;
  return kStrategy;
}

const Strategy& volume_strategy() {
  static const VolumeStrategy kStrategy;
  return kStrategy;
}

const Strategy& storage_class_strategy() {
  static const StorageClassStrategy kStrategy;
  return kStrategy;
}

}  // namespace hearth::apiserver
