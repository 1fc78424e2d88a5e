#include "tracing/tracer.h"

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/thread_name.h"

namespace hearth::tracing {
namespace {

using model::Json;
using model::JsonArray;
using model::JsonObject;

// Some megabytes at most, while a collector is away.
constexpr std::size_t kMostWaiting = 4096;
constexpr int kInternal = 1;  // SPAN_KIND_INTERNAL
constexpr int kError = 2;     // STATUS_CODE_ERROR

// Numbers of 64 bits are texts in the JSON of protobuf.
std::string nanoseconds(Time time) {
  return std::to_string(time.time_since_epoch().count());
}

Json attribute(std::string_view key, std::string_view value) {
  return JsonObject{{"key", key}, {"value", JsonObject{{"stringValue", value}}}};
}

JsonArray& array_in(JsonObject& object, std::string_view key) {
  Json& value = object[key];
  if (!value.is_array()) value = JsonArray();
  return value.get_array();
}

Context context_below(const std::optional<Context>& parent) {
  return {.trace_id = parent ? parent->trace_id : random_hex(16),
          .span_id = random_hex(8),
          .is_sampled = !parent || parent->is_sampled};
}

}  // namespace

Tracer::Tracer(const Clock& clock, Options options, std::function<void(std::string)> send)
    : clock_(clock),
      options_(std::move(options)),
      send_(std::move(send)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Tracer::~Tracer() {
  thread_.request_stop();
  thread_.join();
}

void Tracer::add(JsonObject span) {
  const std::lock_guard lock(mutex_);
  if (ended_.size() >= kMostWaiting) return;
  ended_.push_back(std::move(span));
  if (ended_.size() == 1) changed_.notify_all();
}

void Tracer::run(const std::stop_token& stop) {
  name_thread("tracing");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, stop, [this] { return !ended_.empty(); });
    changed_.wait_for(lock, stop, options_.pause, [] { return false; });
    JsonArray spans = std::exchange(ended_, {});
    lock.unlock();
    if (!spans.empty()) send(std::move(spans));
    lock.lock();
    if (stop.stop_requested() && ended_.empty()) return;
  }
}

void Tracer::send(JsonArray spans) {
  const std::size_t count = spans.size();
  JsonObject scope{{"scope", JsonObject{{"name", "hearth"}}}, {"spans", std::move(spans)}};
  JsonObject resource{{"attributes", JsonArray{attribute("service.name", options_.service)}}};
  const Json request = JsonObject{
      {"resourceSpans", JsonArray{JsonObject{{"resource", std::move(resource)},
                                             {"scopeSpans", JsonArray{std::move(scope)}}}}}};
  try {
    send_(model::to_text(request));
    is_failing_ = false;
  } catch (const Error& error) {
    if (!is_failing_)
      log::warning("spans are lost", {{"count", std::to_string(count)}, {"error", error.what()}});
    is_failing_ = true;  // said once
  }
}

Span::Span(Tracer* tracer, std::string_view name, const std::optional<Context>& parent)
    : tracer_(tracer) {
  if (tracer_ == nullptr) return;
  context_ = context_below(parent);
  if (!context_->is_sampled) {
    tracer_ = nullptr;
    return;
  }
  data_ = {{"traceId", context_->trace_id},
           {"spanId", context_->span_id},
           {"name", name},
           {"kind", kInternal},
           {"startTimeUnixNano", nanoseconds(tracer_->clock_.now())}};
  if (parent) data_["parentSpanId"] = parent->span_id;
}

Span::~Span() {
  if (tracer_ == nullptr) return;
  data_["endTimeUnixNano"] = nanoseconds(tracer_->clock_.now());
  tracer_->add(std::move(data_));
}

void Span::set(std::string_view key, std::string_view value) {
  if (tracer_ != nullptr) array_in(data_, "attributes").push_back(attribute(key, value));
}

void Span::event(std::string_view name, Attributes attributes) {
  if (tracer_ == nullptr) return;
  JsonArray said;
  for (const auto& [key, value] : attributes) said.push_back(attribute(key, value));
  array_in(data_, "events")
      .push_back(JsonObject{{"timeUnixNano", nanoseconds(tracer_->clock_.now())},
                            {"name", name},
                            {"attributes", std::move(said)}});
}

void Span::fail(std::string_view why) {
  if (tracer_ != nullptr) data_["status"] = JsonObject{{"code", kError}, {"message", why}};
}

}  // namespace hearth::tracing
