// What the strategies of the built-in kinds share: looking into JSON that a stranger wrote, and
// saying what is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "model/json.h"
#include "model/quantity.h"
#include "model/status.h"

namespace hearth::apiserver {

using model::Json;
using model::JsonArray;
using model::JsonObject;

// What is wrong with an object, up to a number that nobody reads on from: three megabytes of
// mistakes would make gigabytes of complaints.
class Errors {
 public:
  void push_back(model::FieldError error) {
    if (list_.size() < kMost) list_.push_back(std::move(error));
  }
  bool empty() const { return list_.empty(); }
  std::vector<model::FieldError> take() { return std::move(list_); }

 private:
  static constexpr std::size_t kMost = 64;

  std::vector<model::FieldError> list_;
};

// Nothing, null and "" are the same to a typed server: not set.
bool is_unset(const Json* value);
bool is_unset(const JsonObject& object, std::string_view name);

// Sets a member that is not set.
void set_default(JsonObject& object, std::string_view name, Json value);
// The same for numbers that are not set when they are 0.
void set_default_number(JsonObject& object, std::string_view name, std::int64_t value);

// Members by type; null, "" or nothing for what is missing or something else.
JsonObject* object_in(JsonObject& object, std::string_view name);
const JsonObject* object_in(const JsonObject& object, std::string_view name);
JsonArray* array_in(JsonObject& object, std::string_view name);
const JsonArray* array_in(const JsonObject& object, std::string_view name);
std::string_view text_in(const JsonObject& object, std::string_view name);
std::optional<std::int64_t> number_in(const JsonObject& object, std::string_view name);

// The objects of a list; other elements are the schema's business.
std::vector<JsonObject*> objects_in(JsonObject& object, std::string_view name);

// One object of a list and where it is: "spec.containers[0]".
struct Item {
  const JsonObject& object;
  const std::string& list;
  std::size_t index;

  std::string field() const;
  std::string at(std::string_view member) const;
};

// The objects of a list, one after the other: a stranger's list may be long, so nothing is copied.
class Items {
 public:
  class Iterator {
   public:
    Iterator(const Items& items, std::size_t index) : items_(items), index_(index) { skip(); }
    Item operator*() const;
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    void skip();

    const Items& items_;
    std::size_t index_;
  };

  Items(const JsonArray* array, std::string list) : array_(array), list_(std::move(list)) {}
  bool empty() const { return size() == 0; }
  std::size_t size() const { return array_ ? array_->size() : 0; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  const JsonArray* array_;
  std::string list_;
};
// `list` is the field of the list itself.
Items items_in(const JsonObject& object, std::string_view name, std::string list);

// An object as an object; an empty one for anything else.
const JsonObject& as_object(const Json& value);
const JsonObject& as_object(const Json* value);

// Checks of single values; each adds to `errors` what it finds, in the words of kube-apiserver.
void check_required(Errors& errors, const JsonObject& object, std::string_view name,
                    std::string field);
void check_one_of(Errors& errors, std::string field, std::string_view value,
                  const std::vector<std::string>& known);
void check_dns_label(Errors& errors, const std::string& field, std::string_view value);
void check_dns_subdomain(Errors& errors, const std::string& field, std::string_view value);
void check_ip_address(Errors& errors, std::string field, std::string_view value);
// Pairs of labels, or null; an object of matchLabels and matchExpressions, or null.
void check_labels(Errors& errors, const std::string& field, const JsonObject* labels);
void check_label_selector(Errors& errors, const std::string& field, const JsonObject* selector);
void check_port_number(Errors& errors, std::string field, std::int64_t value);
void check_port_name(Errors& errors, std::string field, std::string_view value);
void check_port_number_or_name(Errors& errors, std::string field, const Json* value);
void check_protocol(Errors& errors, std::string field, std::string_view value);
void check_config_key(Errors& errors, std::string field, std::string_view key);
void check_not_negative(Errors& errors, const JsonObject& object, std::string_view name,
                        std::string field);
// "field is immutable" for a member that is not what it was.
void check_immutable(Errors& errors, const Json& next, const Json& old, model::Path path,
                     std::string field);
model::FieldError not_found(std::string field, std::string_view value);
model::FieldError too_long(std::string field, std::size_t most_bytes);

// A quantity, also one that was written as a number; nothing for what is none.
std::optional<model::Quantity> quantity_of(const Json& value);
std::optional<model::Quantity> quantity_of(const Json* value);
// A string or a number as text.
std::string quantity_text(const Json& value);
// Writes quantities as a server does that has read them: "1" for 1 and for "1000m".
void tidy_quantity(Json& value);
void tidy_quantities(JsonObject& object, std::string_view name);

// An update of the main resource leaves the status as it was.
void keep_status(Json& next, const Json& old);

}  // namespace hearth::apiserver
