#include <algorithm>

#include <fmt/format.h>

#include "apiserver/kinds_internal.h"
#include "base/ip_text.h"
#include "model/names.h"

namespace hearth::apiserver {
namespace {

bool is_lower_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_alnum(char c) {
  return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

std::string too_many_characters(std::size_t most) {
  return fmt::format("must be no more than {} characters", most);
}

void add_invalid(Errors& errors, std::string field, std::string_view value,
                 std::string_view detail) {
  errors.push_back(model::invalid(std::move(field), json_quote(value), detail));
}

}  // namespace

bool is_unset(const Json* value) {
  return !value || value->is_null() || (value->is_string() && value->get_string().empty());
}

bool is_unset(const JsonObject& object, std::string_view name) {
  return is_unset(object.if_contains(name));
}

void set_default(JsonObject& object, std::string_view name, Json value) {
  if (is_unset(object, name)) object[name] = std::move(value);
}

void set_default_number(JsonObject& object, std::string_view name, std::int64_t value) {
  const Json* member = object.if_contains(name);
  if (is_unset(member) || model::as_integer(*member) == 0) object[name] = value;
}

JsonObject* object_in(JsonObject& object, std::string_view name) {
  Json* member = object.if_contains(name);
  return member ? member->if_object() : nullptr;
}

const JsonObject* object_in(const JsonObject& object, std::string_view name) {
  const Json* member = object.if_contains(name);
  return member ? member->if_object() : nullptr;
}

JsonArray* array_in(JsonObject& object, std::string_view name) {
  Json* member = object.if_contains(name);
  return member ? member->if_array() : nullptr;
}

const JsonArray* array_in(const JsonObject& object, std::string_view name) {
  const Json* member = object.if_contains(name);
  return member ? member->if_array() : nullptr;
}

std::string_view text_in(const JsonObject& object, std::string_view name) {
  const Json* member = object.if_contains(name);
  if (!member || !member->is_string()) return {};
  return {member->get_string().data(), member->get_string().size()};
}

std::optional<std::int64_t> number_in(const JsonObject& object, std::string_view name) {
  const Json* member = object.if_contains(name);
  return member ? model::as_integer(*member) : std::nullopt;
}

std::vector<JsonObject*> objects_in(JsonObject& object, std::string_view name) {
  std::vector<JsonObject*> found;
  if (JsonArray* list = array_in(object, name))
    for (Json& element : *list)
      if (JsonObject* one = element.if_object()) found.push_back(one);
  return found;
}

std::string Item::field() const {
  return fmt::format("{}[{}]", list, index);
}

std::string Item::at(std::string_view member) const {
  return fmt::format("{}[{}].{}", list, index, member);
}

Item Items::Iterator::operator*() const {
  return {(*items_.array_)[index_].get_object(), items_.list_, index_};
}

Items::Iterator& Items::Iterator::operator++() {
  ++index_;
  skip();
  return *this;
}

void Items::Iterator::skip() {
  while (index_ < items_.size() && !(*items_.array_)[index_].is_object()) ++index_;
}

Items items_in(const JsonObject& object, std::string_view name, std::string list) {
  return {array_in(object, name), std::move(list)};
}

const JsonObject& as_object(const Json& value) {
  return as_object(&value);
}

const JsonObject& as_object(const Json* value) {
  static const JsonObject kEmpty;
  const JsonObject* object = value ? value->if_object() : nullptr;
  return object ? *object : kEmpty;
}

void check_required(Errors& errors, const JsonObject& object, std::string_view name,
                    std::string field) {
  if (is_unset(object, name)) errors.push_back(model::required(std::move(field)));
}

void check_one_of(Errors& errors, std::string field, std::string_view value,
                  const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) == known.end())
    errors.push_back(model::not_supported(std::move(field), json_quote(value), known));
}

void check_dns_label(Errors& errors, const std::string& field, std::string_view value) {
  for (const std::string& problem : model::check_dns_label(value))
    add_invalid(errors, field, value, problem);
}

void check_dns_subdomain(Errors& errors, const std::string& field, std::string_view value) {
  for (const std::string& problem : model::check_dns_subdomain(value))
    add_invalid(errors, field, value, problem);
}

void check_ip_address(Errors& errors, std::string field, std::string_view value) {
  if (!parse_ipv4(value) && !parse_ipv6(value))
    add_invalid(errors, std::move(field), value,
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
}

void check_labels(Errors& errors, const std::string& field, const JsonObject* labels) {
  if (!labels) return;
  for (const auto& [key, value] : *labels) {
    for (const std::string& problem : model::check_qualified_name(key))
      add_invalid(errors, field, key, problem);
    const auto* text = value.if_string();
    if (!text) continue;
    for (const std::string& problem : model::check_label_value(*text))
      add_invalid(errors, field, *text, problem);
  }
}

void check_label_selector(Errors& errors, const std::string& field, const JsonObject* selector) {
  if (!selector) return;
  check_labels(errors, field + ".matchLabels", object_in(*selector, "matchLabels"));
  for (const Item one : items_in(*selector, "matchExpressions", field + ".matchExpressions")) {
    const std::string_view op = text_in(one.object, "operator");
    const JsonArray* values = array_in(one.object, "values");
    const bool has_values = values && !values->empty();
    if (op == "In" || op == "NotIn") {
      if (!has_values)
        errors.push_back(model::required(one.at("values"),
                                         "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (has_values)
        errors.push_back(
            model::forbidden(one.at("values"),
                             "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    } else {
      add_invalid(errors, one.at("operator"), op, "not a valid selector operator");
    }
    const std::string_view key = text_in(one.object, "key");
    for (const std::string& problem : model::check_qualified_name(key))
      add_invalid(errors, one.at("key"), key, problem);
  }
}

void check_port_number(Errors& errors, std::string field, std::int64_t value) {
  if (value < 1 || value > 65535)
    errors.push_back(model::invalid(std::move(field), std::to_string(value),
                                    "must be between 1 and 65535, inclusive"));
}

void check_port_name(Errors& errors, std::string field, std::string_view value) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_allowed = [](char c) { return is_lower_alnum(c) || c == '-'; };
  if (value.size() > 15) add_invalid(errors, field, value, too_many_characters(15));
  if (value.empty() || !std::all_of(value.begin(), value.end(), is_allowed))
    add_invalid(errors, field, value,
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (std::none_of(value.begin(), value.end(), is_letter))
    add_invalid(errors, field, value, "must contain at least one letter (a-z)");
  if (value.find("--") != std::string_view::npos)
    add_invalid(errors, field, value, "must not contain consecutive hyphens");
  if (value.starts_with('-') || value.ends_with('-'))
    add_invalid(errors, std::move(field), value, "must not begin or end with a hyphen");
}

void check_port_number_or_name(Errors& errors, std::string field, const Json* value) {
  if (!value) return;
  if (value->is_string())
    check_port_name(errors, std::move(field),
                    {value->get_string().data(), value->get_string().size()});
  else if (const auto number = model::as_integer(*value))
    check_port_number(errors, std::move(field), *number);
}

void check_protocol(Errors& errors, std::string field, std::string_view value) {
  check_one_of(errors, std::move(field), value, {"SCTP", "TCP", "UDP"});
}

void check_config_key(Errors& errors, std::string field, std::string_view key) {
  const auto is_allowed = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (key.size() > 253) add_invalid(errors, field, key, too_many_characters(253));
  if (key.empty() || !std::all_of(key.begin(), key.end(), is_allowed))
    add_invalid(errors, std::move(field), key,
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
                "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                "'[-._a-zA-Z0-9]+')");
  else if (key == ".")
    add_invalid(errors, std::move(field), key, "must not be '.'");
  else if (key == "..")
    add_invalid(errors, std::move(field), key, "must not be '..'");
  else if (key.starts_with(".."))
    add_invalid(errors, std::move(field), key, "must not start with '..'");
}

void check_not_negative(Errors& errors, const JsonObject& object, std::string_view name,
                        std::string field) {
  const auto number = number_in(object, name);
  if (number && *number < 0)
    errors.push_back(model::invalid(std::move(field), std::to_string(*number),
                                    "must be greater than or equal to 0"));
}

void check_immutable(Errors& errors, const Json& next, const Json& old, model::Path path,
                     std::string field) {
  static const Json kNull;
  const Json* now = model::find(next, path);
  const Json* before = model::find(old, path);
  if (!model::is_same(now ? *now : kNull, before ? *before : kNull))
    errors.push_back(model::invalid(std::move(field), now ? model::to_text(*now) : "null",
                                    "field is immutable"));
}

model::FieldError not_found(std::string field, std::string_view value) {
  return {model::FieldProblem::not_found, std::move(field),
          fmt::format("Not found: {}", json_quote(value))};
}

model::FieldError too_long(std::string field, std::size_t most_bytes) {
  return {model::FieldProblem::too_long, std::move(field),
          fmt::format("Too long: may not be more than {} bytes", most_bytes)};
}

std::optional<model::Quantity> quantity_of(const Json& value) {
  return value.is_string() || value.is_number() ? model::Quantity::parse(quantity_text(value))
                                                : std::nullopt;
}

std::optional<model::Quantity> quantity_of(const Json* value) {
  return value ? quantity_of(*value) : std::nullopt;
}

std::string quantity_text(const Json& value) {
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  if (const auto number = model::as_integer(value)) return std::to_string(*number);
  return model::to_text(value);
}

void tidy_quantity(Json& value) {
  if (const auto quantity = quantity_of(value)) value = quantity->text();
}

void tidy_quantities(JsonObject& object, std::string_view name) {
  if (JsonObject* amounts = object_in(object, name))
    for (auto& [key, amount] : *amounts) tidy_quantity(amount);
}

void keep_status(Json& next, const Json& old) {
  const Json* status = model::find(old, {"status"});
  if (status)
    model::make_object_at(next, {})["status"] = *status;
  else
    model::erase_at(next, {"status"});
}

}  // namespace hearth::apiserver
