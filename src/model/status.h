// How the Kubernetes API says no: the Status object, thrown as an Error.
//
// Clients branch on `reason`, then on `code`; people read `message`, and the wordings are those
// that they know from a real kube-apiserver.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/json.h"

namespace hearth::model {

struct StatusCause {
  std::string reason;
  std::string message;
  std::string field;
};

struct Status {
  unsigned code = 500;
  std::string reason = "InternalError";
  std::string message;
  // details; all may be empty.
  std::string name;
  std::string group;
  std::string kind;  // the plural for 403, 404 and 409; the Kind for 422
  std::string uid;
  std::vector<StatusCause> causes;
  int retry_after_seconds = 0;
  // Details are written even if they are empty.
  bool has_details = false;
  std::string continue_token;  // of an expired list
};

Json to_json(const Status& status);
// A Status as a server sent it; `code` where the object has none.
Status status_from_json(const Json& json, unsigned code);

class StatusError : public Error {
 public:
  explicit StatusError(Status status);
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// "sandboxes" of "agents.x-k8s.io"; the core group is "".
struct GroupResource {
  std::string group;
  std::string resource;

  // "sandboxes.agents.x-k8s.io", "pods".
  std::string text() const { return group.empty() ? resource : resource + "." + group; }
  bool operator==(const GroupResource&) const = default;
};

struct GroupKind {
  std::string group;
  std::string kind;

  std::string text() const { return group.empty() ? kind : kind + "." + group; }
};

// What is wrong with one field of an object.
enum class FieldProblem {
  required,
  invalid,
  not_supported,
  forbidden,
  duplicate,
  too_long,
  too_many,
  type_invalid,
  not_found
};

struct FieldError {
  FieldProblem problem = FieldProblem::invalid;
  std::string field;   // "spec.containers[0].name"
  std::string detail;  // the whole text behind the field: "Invalid value: 0: must be ..."
};

// The usual texts. `value` is JSON text.
FieldError required(std::string field, std::string_view detail = {});
FieldError invalid(std::string field, std::string_view value, std::string_view detail);
FieldError not_supported(std::string field, std::string_view value,
                         const std::vector<std::string>& known);
FieldError forbidden(std::string field, std::string_view detail);
FieldError duplicate(std::string field, std::string_view value);

[[noreturn]] void throw_not_found(const GroupResource& resource, std::string_view name);
[[noreturn]] void throw_already_exists(const GroupResource& resource, std::string_view name);
[[noreturn]] void throw_conflict(const GroupResource& resource, std::string_view name,
                                 std::string_view why);
// With the sentence that everyone knows: "the object has been modified; ..."
[[noreturn]] void throw_modified(const GroupResource& resource, std::string_view name);
[[noreturn]] void throw_forbidden(const GroupResource& resource, std::string_view name,
                                  std::string_view why);
[[noreturn]] void throw_invalid(const GroupKind& kind, std::string_view name,
                                const std::vector<FieldError>& errors);
[[noreturn]] void throw_bad_request(std::string message);
[[noreturn]] void throw_expired(std::string message);
[[noreturn]] void throw_method_not_allowed(
    std::string_view message = "the server does not allow this method on the requested resource");
[[noreturn]] void throw_unsupported_media_type(const std::vector<std::string>& accepted);
[[noreturn]] void throw_not_acceptable(const std::vector<std::string>& accepted);
[[noreturn]] void throw_internal(std::string message);

// The Status of any Error: its own, or one made of its code.
Status status_of(const Error& error);

}  // namespace hearth::model
