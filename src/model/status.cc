#include "model/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"

namespace hearth::model {
namespace {

struct CodeReason {
  unsigned status;
  std::string_view reason;
  Code code;
};

// The first row of a code is the one that our own errors become.
constexpr CodeReason kReasons[] = {
    {400, "BadRequest", Code::invalid},
    {401, "Unauthorized", Code::unauthenticated},
    {403, "Forbidden", Code::forbidden},
    {404, "NotFound", Code::not_found},
    {409, "AlreadyExists", Code::already_exists},
    {409, "Conflict", Code::conflict},
    {429, "TooManyRequests", Code::exhausted},
    {504, "Timeout", Code::timeout},
    {503, "ServiceUnavailable", Code::unavailable},
    {500, "InternalError", Code::internal},
    {405, "MethodNotAllowed", Code::invalid},
    {406, "NotAcceptable", Code::invalid},
    {410, "Expired", Code::not_found},
    {413, "RequestEntityTooLarge", Code::exhausted},
    {415, "UnsupportedMediaType", Code::invalid},
    {422, "Invalid", Code::invalid},
};

Code code_of(const Status& status) {
  for (const CodeReason& row : kReasons)
    if (row.reason == status.reason) return row.code;
  for (const CodeReason& row : kReasons)
    if (row.status == status.code) return row.code;
  return Code::internal;
}

std::string_view reason_text(FieldProblem problem) {
  switch (problem) {
    case FieldProblem::required:
      return "FieldValueRequired";
    case FieldProblem::invalid:
      return "FieldValueInvalid";
    case FieldProblem::not_supported:
      return "FieldValueNotSupported";
    case FieldProblem::forbidden:
      return "FieldValueForbidden";
    case FieldProblem::duplicate:
      return "FieldValueDuplicate";
    case FieldProblem::too_long:
      return "FieldValueTooLong";
    case FieldProblem::too_many:
      return "FieldValueTooMany";
    case FieldProblem::type_invalid:
      return "FieldValueTypeInvalid";
    case FieldProblem::not_found:
      return "FieldValueNotFound";
  }
  return "FieldValueInvalid";
}

[[noreturn]] void throw_about(unsigned code, std::string_view reason, const GroupResource& resource,
                              std::string_view name, std::string message) {
  Status status{.code = code, .reason = std::string(reason), .message = std::move(message)};
  status.name = name;
  status.group = resource.group;
  status.kind = resource.resource;
  throw StatusError(std::move(status));
}

}  // namespace

Json to_json(const Status& status) {
  JsonObject json;
  json["kind"] = "Status";
  json["apiVersion"] = "v1";
  JsonObject metadata;
  if (!status.continue_token.empty()) metadata["continue"] = status.continue_token;
  json["metadata"] = std::move(metadata);
  json["status"] = status.code < 400 ? "Success" : "Failure";
  if (!status.message.empty()) json["message"] = status.message;
  if (!status.reason.empty() && status.code >= 400) json["reason"] = status.reason;
  JsonObject details;
  if (!status.name.empty()) details["name"] = status.name;
  if (!status.group.empty()) details["group"] = status.group;
  if (!status.kind.empty()) details["kind"] = status.kind;
  if (!status.uid.empty()) details["uid"] = status.uid;
  if (!status.causes.empty()) {
    JsonArray causes;
    for (const StatusCause& cause : status.causes) {
      JsonObject one;
      if (!cause.reason.empty()) one["reason"] = cause.reason;
      if (!cause.message.empty()) one["message"] = cause.message;
      if (!cause.field.empty()) one["field"] = cause.field;
      causes.emplace_back(std::move(one));
    }
    details["causes"] = std::move(causes);
  }
  if (status.retry_after_seconds > 0) details["retryAfterSeconds"] = status.retry_after_seconds;
  if (!details.empty() || status.has_details) json["details"] = std::move(details);
  if (status.code >= 400) json["code"] = status.code;
  return json;
}

Status status_from_json(const Json& json, unsigned code) {
  Status status;
  status.code = code;
  if (const auto said = number_at(json, {"code"})) status.code = static_cast<unsigned>(*said);
  status.reason = text_at(json, {"reason"});
  status.message = text_at(json, {"message"});
  status.name = text_at(json, {"details", "name"});
  status.group = text_at(json, {"details", "group"});
  status.kind = text_at(json, {"details", "kind"});
  status.uid = text_at(json, {"details", "uid"});
  status.continue_token = text_at(json, {"metadata", "continue"});
  if (const auto seconds = number_at(json, {"details", "retryAfterSeconds"}))
    status.retry_after_seconds = static_cast<int>(*seconds);
  if (const JsonArray* causes = array_at(json, {"details", "causes"}))
    for (const Json& cause : *causes)
      status.causes.push_back({std::string(text_at(cause, {"reason"})),
                               std::string(text_at(cause, {"message"})),
                               std::string(text_at(cause, {"field"}))});
  return status;
}

StatusError::StatusError(Status status)
    : Error(code_of(status), status.message), status_(std::move(status)) {}

FieldError required(std::string field, std::string_view detail) {
  std::string text = "Required value";
  if (!detail.empty()) text.append(": ").append(detail);
  return {FieldProblem::required, std::move(field), std::move(text)};
}

FieldError invalid(std::string field, std::string_view value, std::string_view detail) {
  return {FieldProblem::invalid, std::move(field),
          fmt::format("Invalid value: {}: {}", value, detail)};
}

FieldError not_supported(std::string field, std::string_view value,
                         const std::vector<std::string>& known) {
  std::vector<std::string> quoted;
  quoted.reserve(known.size());
  for (const std::string& word : known) quoted.push_back(json_quote(word));
  return {
      FieldProblem::not_supported, std::move(field),
      fmt::format("Unsupported value: {}: supported values: {}", value, fmt::join(quoted, ", "))};
}

FieldError forbidden(std::string field, std::string_view detail) {
  return {FieldProblem::forbidden, std::move(field), fmt::format("Forbidden: {}", detail)};
}

FieldError duplicate(std::string field, std::string_view value) {
  return {FieldProblem::duplicate, std::move(field), fmt::format("Duplicate value: {}", value)};
}

void throw_not_found(const GroupResource& resource, std::string_view name) {
  throw_about(404, "NotFound", resource, name,
              fmt::format("{} \"{}\" not found", resource.text(), name));
}

void throw_already_exists(const GroupResource& resource, std::string_view name) {
  throw_about(409, "AlreadyExists", resource, name,
              fmt::format("{} \"{}\" already exists", resource.text(), name));
}

void throw_conflict(const GroupResource& resource, std::string_view name, std::string_view why) {
  throw_about(
      409, "Conflict", resource, name,
      fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", resource.text(), name, why));
}

void throw_modified(const GroupResource& resource, std::string_view name) {
  throw_conflict(
      resource, name,
      "the object has been modified; please apply your changes to the latest version and "
      "try again");
}

void throw_forbidden(const GroupResource& resource, std::string_view name, std::string_view why) {
  const std::string what =
      name.empty() ? resource.text() : fmt::format("{} \"{}\"", resource.text(), name);
  throw_about(403, "Forbidden", resource, name, fmt::format("{} is forbidden: {}", what, why));
}

void throw_invalid(const GroupKind& kind, std::string_view name,
                   const std::vector<FieldError>& errors) {
  Status status{.code = 422, .reason = "Invalid"};
  status.name = name;
  status.group = kind.group;
  status.kind = kind.kind;
  std::vector<std::string> sentences;
  for (const FieldError& error : errors) {
    status.causes.push_back({std::string(reason_text(error.problem)), error.detail, error.field});
    sentences.push_back(fmt::format("{}: {}", error.field, error.detail));
  }
  const std::string what =
      sentences.size() == 1 ? sentences.front() : fmt::format("[{}]", fmt::join(sentences, ", "));
  status.message = fmt::format("{} \"{}\" is invalid: {}", kind.text(), name, what);
  throw StatusError(std::move(status));
}

void throw_bad_request(std::string message) {
  throw StatusError({.code = 400, .reason = "BadRequest", .message = std::move(message)});
}

void throw_expired(std::string message) {
  throw StatusError({.code = 410, .reason = "Expired", .message = std::move(message)});
}

void throw_method_not_allowed(std::string_view message) {
  throw StatusError({.code = 405,
                     .reason = "MethodNotAllowed",
                     .message = std::string(message),
                     .has_details = true});
}

void throw_unsupported_media_type(const std::vector<std::string>& accepted) {
  throw StatusError({.code = 415,
                     .reason = "UnsupportedMediaType",
                     .message = fmt::format("the body of the request was in an unknown format - "
                                            "accepted media types include: {}",
                                            fmt::join(accepted, ", "))});
}

void throw_not_acceptable(const std::vector<std::string>& accepted) {
  throw StatusError({.code = 406,
                     .reason = "NotAcceptable",
                     .message = fmt::format("only the following media types are accepted: {}",
                                            fmt::join(accepted, ", "))});
}

void throw_internal(std::string message) {
  throw StatusError({.code = 500, .reason = "InternalError", .message = std::move(message)});
}

Status status_of(const Error& error) {
  if (const auto* known = dynamic_cast<const StatusError*>(&error)) return known->status();
  for (const CodeReason& row : kReasons)
    if (row.code == error.code())
      return {.code = row.status, .reason = std::string(row.reason), .message = error.what()};
  return {.message = error.what()};
}

}  // namespace hearth::model
