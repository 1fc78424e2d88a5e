#include <chrono>

#include "base/error.h"
#include "base/time_text.h"
#include "model/container_id.h"
#include "model/status.h"
#include "remote/pod_internal.h"

namespace hearth::remote {
namespace {

using model::Json;

// Of `status`; the order is that of `spec`.
constexpr std::string_view kContainerLists[] = {"initContainers", "containers",
                                                "ephemeralContainers"};
constexpr std::string_view kStatusLists[] = {"initContainerStatuses", "containerStatuses",
                                             "ephemeralContainerStatuses"};

std::vector<std::string> container_names(const Json& pod) {
  std::vector<std::string> names;
  for (const std::string_view list : kContainerLists) {
    const auto* containers = model::array_at(pod, {"spec", list});
    if (containers == nullptr) continue;
    for (const Json& one : *containers) names.emplace_back(model::text_at(one, {"name"}));
  }
  return names;
}

const Json* find_status(const Json& pod, std::string_view name) {
  for (const std::string_view list : kStatusLists) {
    const auto* statuses = model::array_at(pod, {"status", list});
    if (statuses == nullptr) continue;
    for (const Json& one : *statuses) {
      if (model::text_at(one, {"name"}) == name) return &one;
    }
  }
  return nullptr;
}

std::optional<Container> container_of(const Json& pod, const Json& status) {
  const auto sandbox_at = [&](model::Path path) {
    return std::string(model::sandbox_of_container(model::text_at(status, path)));
  };
  std::string id = sandbox_at({"containerID"});
  if (id.empty()) return std::nullopt;
  return Container{.pod = pod_name(pod),
                   .pod_uid = std::string(model::text_at(pod, {"metadata", "uid"})),
                   .name = std::string(model::text_at(status, {"name"})),
                   .sandbox = std::move(id),
                   .previous = sandbox_at({"lastState", "terminated", "containerID"})};
}

LogStream parse_log_stream(const Query& query, std::vector<model::FieldError>& errors) {
  const std::string text = query.text("stream");
  if (text.empty() || text == "All") return LogStream::all;
  if (text == "Stdout") return LogStream::output;
  if (text == "Stderr") return LogStream::error;
  errors.push_back(model::not_supported("stream", '"' + text + '"', {"All", "Stderr", "Stdout"}));
  return LogStream::all;
}

void parse_since(const Query& query, LogOptions& options, std::vector<model::FieldError>& errors) {
  const auto seconds = query.number("sinceSeconds");
  const std::string time = query.text("sinceTime");
  if (seconds && !time.empty()) {
    errors.push_back(
        model::forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  } else if (seconds && *seconds < 1) {
    errors.push_back(
        model::invalid("sinceSeconds", std::to_string(*seconds), "must be greater than 0"));
  } else if (seconds) {
    constexpr std::int64_t kLongest = 100LL * 365 * 24 * 3600;
    options.since =
        Time(std::chrono::system_clock::now()) - std::chrono::seconds(std::min(*seconds, kLongest));
  } else if (!time.empty()) {
    options.since = parse_rfc3339(time);
    if (!options.since) model::throw_bad_request(fmt::format("sinceTime: '{}' is no time", time));
  }
}

}  // namespace

Query::Query(const net::Request& request) {
  try {
    parameters_ = net::query_parameters(request.query);
  } catch (const Error& error) {
    model::throw_bad_request(error.what());
  }
}

std::string Query::text(std::string_view name) const {
  for (const auto& [key, value] : parameters_) {
    if (key == name) return value;
  }
  return {};
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : parameters_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

bool Query::flag(std::string_view name) const {
  const std::vector<std::string> values = all(name);
  return !values.empty() && values.front() != "0" &&
         !net::equal_ignoring_case(values.front(), "false");
}

std::optional<std::int64_t> Query::number(std::string_view name) const {
  const std::string value = text(name);
  if (value.empty()) return std::nullopt;
  const bool is_negative = value.starts_with('-');
  const auto digits = net::parse_number(std::string_view(value).substr(is_negative ? 1 : 0));
  if (!digits || *digits > static_cast<std::uint64_t>(INT64_MAX)) {
    model::throw_bad_request(fmt::format("{}: '{}' is no number", name, value));
  }
  const auto number = static_cast<std::int64_t>(*digits);
  return is_negative ? -number : number;
}

std::string pod_name(const Json& pod) {
  return std::string(model::text_at(pod, {"metadata", "name"}));
}

std::string choose_container(const Query& query, const Json& pod) {
  std::string wanted = query.text("container");
  const std::vector<std::string> names = container_names(pod);
  if (!wanted.empty()) {
    if (std::ranges::find(names, wanted) != names.end()) return wanted;
    model::throw_bad_request(
        fmt::format("container {} is not valid for pod {}", wanted, pod_name(pod)));
  }
  const auto* containers = model::array_at(pod, {"spec", "containers"});
  if (containers != nullptr && containers->size() == 1) {
    return std::string(model::text_at(containers->front(), {"name"}));
  }
  std::string message = fmt::format("a container name must be specified for pod {}", pod_name(pod));
  if (!names.empty()) message += fmt::format(", choose one of: [{}]", fmt::join(names, " "));
  model::throw_bad_request(message);
}

bool has_node(const Json& pod) {
  return !model::text_at(pod, {"spec", "nodeName"}).empty();
}

void expect_node(const Json& pod) {
  if (has_node(pod)) return;
  model::throw_bad_request(fmt::format("pod {} does not have a host assigned", pod_name(pod)));
}

std::optional<Container> find_container(const Json& pod, std::string_view name) {
  const Json* status = find_status(pod, name);
  if (status == nullptr) return std::nullopt;
  return container_of(pod, *status);
}

std::optional<Container> find_any_container(const Json& pod) {
  const auto* statuses = model::array_at(pod, {"status", "containerStatuses"});
  if (statuses == nullptr) return std::nullopt;
  for (const Json& one : *statuses) {
    if (model::find(one, {"state", "running"}) == nullptr) continue;
    if (auto container = container_of(pod, one)) return container;
  }
  return std::nullopt;
}

std::string waiting_reason(const Json& pod, std::string_view name) {
  const Json* status = find_status(pod, name);
  if (status == nullptr) return "ContainerCreating";
  const std::string_view reason = model::text_at(*status, {"state", "waiting", "reason"});
  // A kubelet's own words for these.
  if (reason == "ErrImagePull") return "image can't be pulled";
  if (reason == "ImagePullBackOff") return "trying and failing to pull image";
  return std::string(reason.empty() ? "ContainerCreating" : reason);
}

LogQuery parse_log_query(const Query& query, const Json& pod) {
  LogQuery log;
  std::vector<model::FieldError> errors;
  log.options.follow = query.flag("follow");
  log.options.previous = query.flag("previous");
  log.options.timestamps = query.flag("timestamps");
  if (const auto lines = query.number("tailLines")) {
    if (*lines < 0) {
      errors.push_back(model::invalid("tailLines", std::to_string(*lines),
                                      "must be greater than or equal to 0"));
    }
    log.options.tail_lines = static_cast<std::uint64_t>(*lines);
  }
  if (const auto bytes = query.number("limitBytes")) {
    if (*bytes < 1) {
      errors.push_back(
          model::invalid("limitBytes", std::to_string(*bytes), "must be greater than 0"));
    }
    log.limit_bytes = static_cast<std::uint64_t>(*bytes);
  }
  parse_since(query, log.options, errors);
  log.options.stream = parse_log_stream(query, errors);
  if (log.options.stream != LogStream::all && log.options.tail_lines) {
    errors.push_back(
        model::forbidden("[]", "`tailLines` and specific `stream` are mutually exclusive for now"));
  }
  if (!errors.empty()) {
    model::throw_invalid({.group = {}, .kind = "PodLogOptions"}, pod_name(pod), errors);
  }
  return log;
}

Streams parse_streams(const Query& query) {
  Streams streams{.input = query.flag("stdin"),
                  .output = query.flag("stdout"),
                  .error = query.flag("stderr"),
                  .terminal = query.flag("tty")};
  // A terminal mixes both, whatever the client asks for.
  if (streams.terminal) streams.error = false;
  if (!streams.input && !streams.output && !streams.error) {
    model::throw_bad_request("you must specify at least 1 of stdin, stdout, stderr");
  }
  return streams;
}

}  // namespace hearth::remote
