// Kinds that say what is allowed, where: NetworkPolicy, RuntimeClass, Node, and those of RBAC.
#include <array>
#include <charconv>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "apiserver/kinds_strategies_internal.h"
#include "base/ip_text.h"

namespace hearth::apiserver {
namespace {

constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

struct Cidr {
  std::array<unsigned char, 16> address = {};
  unsigned family_bits = 0;  // 32 or 128
  unsigned bits = 0;

  bool has_bit(unsigned at) const { return (address[at / 8] >> (7 - at % 8)) & 1; }
  bool has_bits_beyond() const {
    for (unsigned bit = bits; bit < family_bits; ++bit)
      if (has_bit(bit)) return true;
    return false;
  }
};

std::optional<Cidr> parse_cidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Cidr cidr;
  const std::string_view address = text.substr(0, slash);
  const auto take = [&](const auto& parsed) {
    std::memcpy(cidr.address.data(), &parsed, sizeof parsed);
    cidr.family_bits = 8 * sizeof parsed;
  };
  if (const auto v4 = parse_ipv4(address))
    take(*v4);
  else if (const auto v6 = parse_ipv6(address))
    take(*v6);
  else
    return std::nullopt;
  const std::string_view length = text.substr(slash + 1);
  const auto [end, error] =
      std::from_chars(length.data(), length.data() + length.size(), cidr.bits);
  if (error != std::errc() || end != length.data() + length.size()) return std::nullopt;
  return cidr.bits <= cidr.family_bits ? std::optional(cidr) : std::nullopt;
}

bool is_strictly_inside(const Cidr& part, const Cidr& whole) {
  if (part.family_bits != whole.family_bits || part.bits <= whole.bits) return false;
  for (unsigned bit = 0; bit < whole.bits; ++bit)
    if (part.has_bit(bit) != whole.has_bit(bit)) return false;
  return true;
}

std::optional<Cidr> check_cidr(Errors& errors, std::string field, std::string_view text) {
  auto cidr = parse_cidr(text);
  if (!cidr)
    errors.push_back(
        model::invalid(std::move(field), json_quote(text),
                       "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"));
  else if (cidr->has_bits_beyond())
    errors.push_back(model::invalid(std::move(field), json_quote(text),
                                    "must not have bits set beyond the prefix length"));
  return cidr;
}

void check_ip_block(Errors& errors, const JsonObject& block, const std::string& field) {
  const std::string_view text = text_in(block, "cidr");
  if (text.empty()) {
    errors.push_back(model::required(field + ".cidr"));
    return;
  }
  const auto whole = check_cidr(errors, field + ".cidr", text);
  const JsonArray* holes = array_in(block, "except");
  if (!whole || !holes) return;
  for (std::size_t i = 0; i < holes->size(); ++i) {
    const std::string hole = (*holes)[i].is_string() ? quantity_text((*holes)[i]) : std::string();
    const std::string place = fmt::format("{}.except[{}]", field, i);
    const auto part = check_cidr(errors, place, hole);
    if (part && !is_strictly_inside(*part, *whole))
      errors.push_back(
          model::invalid(place, json_quote(hole), "must be a strict subset of `cidr`"));
  }
}

void check_policy_port(Errors& errors, const Item& port) {
  check_one_of(errors, port.at("protocol"), text_in(port.object, "protocol"),
               {"TCP", "UDP", "SCTP"});
  const Json* number = port.object.if_contains("port");
  check_port_number_or_name(errors, port.at("port"), number);
  const auto last = number_in(port.object, "endPort");
  if (!last) return;
  const std::string field = port.at("endPort");
  const std::string text = std::to_string(*last);
  if (is_unset(number))
    errors.push_back(model::invalid(field, text,
                                    "may not be specified when `port` is not "
                                    "specified"));
  else if (number->is_string())
    errors.push_back(
        model::invalid(field, text, "may not be specified when `port` is non-numeric"));
  else if (*last < model::as_integer(*number).value_or(0))
    errors.push_back(model::invalid(field, text, "must be greater than or equal to `port`"));
  check_port_number(errors, field, *last);
}

void check_peer(Errors& errors, const Item& peer) {
  const JsonObject* block = object_in(peer.object, "ipBlock");
  const bool has_selector =
      object_in(peer.object, "podSelector") || object_in(peer.object, "namespaceSelector");
  if (!block && !has_selector)
    errors.push_back(model::required(peer.field(), "must specify a peer"));
  if (block && has_selector)
    errors.push_back(
        model::forbidden(peer.field(), "may not specify both ipBlock and another peer"));
  if (block) check_ip_block(errors, *block, peer.at("ipBlock"));
  for (const std::string_view selector : {"podSelector", "namespaceSelector"})
    check_label_selector(errors, peer.at(selector), object_in(peer.object, selector));
}

void check_direction(Errors& errors, const JsonObject& spec, std::string_view direction,
                     std::string_view peers) {
  for (const Item rule : items_in(spec, direction, fmt::format("spec.{}", direction))) {
    for (const Item port : items_in(rule.object, "ports", rule.at("ports")))
      check_policy_port(errors, port);
    for (const Item peer : items_in(rule.object, peers, rule.at(peers))) check_peer(errors, peer);
  }
}

class NetworkPolicyStrategy : public Strategy {
 public:
  void fill_in(Json& object) const override {
    JsonObject& spec = model::make_object_at(object, {"spec"});
    set_default(spec, "podSelector", JsonObject());
    for (const std::string_view direction : {"ingress", "egress"})
      for (JsonObject* rule : objects_in(spec, direction))
        for (JsonObject* port : objects_in(*rule, "ports")) set_default(*port, "protocol", "TCP");
    if (const JsonArray* types = array_in(spec, "policyTypes"); types && !types->empty()) return;
    JsonArray types{"Ingress"};
    if (const JsonArray* egress = array_in(spec, "egress"); egress && !egress->empty())
      types.emplace_back("Egress");
    spec["policyTypes"] = std::move(types);
  }
  std::vector<model::FieldError> validate(const Json& next, const Json*,
                                          std::string_view) const override {
    Errors errors;
    const JsonObject& spec = as_object(model::find(next, {"spec"}));
    check_label_selector(errors, "spec.podSelector", object_in(spec, "podSelector"));
    check_direction(errors, spec, "ingress", "from");
    check_direction(errors, spec, "egress", "to");
    const JsonArray* types = array_in(spec, "policyTypes");
    if (types && types->size() > 2)
      errors.push_back(model::invalid("spec.policyTypes", model::to_text(*types),
                                      "may not specify more than two policyTypes"));
    else if (types)
      for (std::size_t i = 0; i < types->size(); ++i)
        check_one_of(errors, fmt::format("spec.policyTypes[{}]", i), quantity_text((*types)[i]),
                     {"Ingress", "Egress"});
    return errors.take();
  }
  bool allows_unconditional_update() const override { return true; }
};

class RuntimeClassStrategy : public Strategy {
 public:
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view) const override {
    Errors errors;
    const std::string_view handler = model::text_at(next, {"handler"});
    if (handler.empty())
      errors.push_back(model::required("handler"));
    else
      check_dns_label(errors, "handler", handler);
    if (old) check_immutable(errors, next, *old, {"handler"}, "handler");
    return errors.take();
  }
  bool has_generation() const override { return false; }
};

class NodeStrategy : public PlainStrategy {
 public:
  void fill_in(Json& object) const override {
    JsonObject& status = model::make_object_at(object, {"status"});
    if (const JsonObject* capacity = object_in(status, "capacity")) {
      const Json same = *capacity;
      set_default(status, "allocatable", same);
    }
  }
  void prepare_update(Json& next, const Json& old) const override { keep_status(next, old); }
  std::vector<model::FieldError> validate(const Json& next, const Json*,
                                          std::string_view) const override {
    Errors errors;
    std::set<std::string> seen;
    for (const Item taint :
         items_in(as_object(model::find(next, {"spec"})), "taints", "spec.taints")) {
      const std::string_view key = text_in(taint.object, "key");
      const std::string_view effect = text_in(taint.object, "effect");
      if (key.empty()) errors.push_back(model::required(taint.at("key")));
      check_one_of(errors, taint.at("effect"), effect,
                   {"NoSchedule", "PreferNoSchedule", "NoExecute"});
      if (!seen.insert(fmt::format("{}:{}", key, effect)).second)
        errors.push_back(model::duplicate(taint.field(), model::to_text(taint.object)));
    }
    return errors.take();
  }
};

bool is_empty_list(const JsonObject& object, std::string_view name) {
  const JsonArray* list = array_in(object, name);
  return !list || list->empty();
}

void check_policy_rule(Errors& errors, const Item& rule, bool namespaced) {
  if (is_empty_list(rule.object, "verbs"))
    errors.push_back(model::required(rule.at("verbs"), "verbs must contain at least one value"));
  if (!is_empty_list(rule.object, "nonResourceURLs")) {
    const std::string field = rule.at("nonResourceURLs");
    const std::string text = model::to_text(*rule.object.if_contains("nonResourceURLs"));
    if (namespaced)
      errors.push_back(
          model::invalid(field, text, "namespaced rules cannot apply to non-resource URLs"));
    if (!is_empty_list(rule.object, "apiGroups") || !is_empty_list(rule.object, "resources") ||
        !is_empty_list(rule.object, "resourceNames"))
      errors.push_back(model::invalid(
          field, text, "rules cannot apply to both regular resources and non-resource URLs"));
    return;
  }
  if (is_empty_list(rule.object, "apiGroups"))
    errors.push_back(
        model::required(rule.at("apiGroups"), "resource rules must supply at least one api group"));
  if (is_empty_list(rule.object, "resources"))
    errors.push_back(
        model::required(rule.at("resources"), "resource rules must supply at least one resource"));
}

class RoleStrategy : public PlainStrategy {
 public:
  explicit RoleStrategy(bool namespaced) : namespaced_(namespaced) {}
  std::vector<model::FieldError> validate(const Json& next, const Json*,
                                          std::string_view) const override {
    Errors errors;
    for (const Item rule : items_in(as_object(next), "rules", "rules"))
      check_policy_rule(errors, rule, namespaced_);
    return errors.take();
  }

 private:
  bool namespaced_;
};

void check_subject(Errors& errors, const Item& subject, bool namespaced) {
  check_required(errors, subject.object, "name", subject.at("name"));
  const std::string_view kind = text_in(subject.object, "kind");
  const std::string_view group = text_in(subject.object, "apiGroup");
  if (kind == "ServiceAccount") {
    if (!group.empty())
      errors.push_back(model::not_supported(subject.at("apiGroup"), json_quote(group), {""}));
    if (!namespaced) check_required(errors, subject.object, "namespace", subject.at("namespace"));
  } else if (kind == "User" || kind == "Group") {
    check_one_of(errors, subject.at("apiGroup"), group, {std::string(kRbacGroup)});
  } else {
    check_one_of(errors, subject.at("kind"), kind, {"ServiceAccount", "User", "Group"});
  }
}

class RoleBindingStrategy : public PlainStrategy {
 public:
  explicit RoleBindingStrategy(bool namespaced) : namespaced_(namespaced) {}
  void fill_in(Json& object) const override {
    const std::string group(kRbacGroup);
    set_default(model::make_object_at(object, {"roleRef"}), "apiGroup", Json(group));
    for (JsonObject* subject : objects_in(object.get_object(), "subjects"))
      if (const std::string_view kind = text_in(*subject, "kind");
          kind == "User" || kind == "Group")
        set_default(*subject, "apiGroup", Json(group));
  }
  std::vector<model::FieldError> validate(const Json& next, const Json* old,
                                          std::string_view) const override {
    Errors errors;
    const JsonObject& role = as_object(model::find(next, {"roleRef"}));
    check_one_of(errors, "roleRef.apiGroup", text_in(role, "apiGroup"), {std::string(kRbacGroup)});
    std::vector<std::string> kinds{"ClusterRole"};
    if (namespaced_) kinds.insert(kinds.begin(), "Role");
    check_one_of(errors, "roleRef.kind", text_in(role, "kind"), kinds);
    check_required(errors, role, "name", "roleRef.name");
    for (const Item subject : items_in(as_object(next), "subjects", "subjects"))
      check_subject(errors, subject, namespaced_);
    if (old) check_immutable(errors, next, *old, {"roleRef"}, "roleRef");
    return errors.take();
  }

 private:
  bool namespaced_;
};

}  // namespace

const Strategy& network_policy_strategy() {
  static const NetworkPolicyStrategy kStrategy;
  return kStrategy;
}

const Strategy& runtime_class_strategy() {
  static const RuntimeClassStrategy kStrategy;
  return kStrategy;
}

const Strategy& node_strategy() {
  static const NodeStrategy kStrategy;
  return kStrategy;
}

const Strategy& role_strategy(bool namespaced) {
  static const RoleStrategy kNamespaced(true);
  static const RoleStrategy kCluster(false);
  return namespaced ? kNamespaced : kCluster;
}

const Strategy& role_binding_strategy(bool namespaced) {
  static const RoleBindingStrategy kNamespaced(true);
  static const RoleBindingStrategy kCluster(false);
  return namespaced ? kNamespaced : kCluster;
}

}  // namespace hearth::apiserver
