// Spans: what was done, when, for how long and because of what; for a collector of OpenTelemetry.
//
// A tracer gathers the spans that end and sends them now and then, as OTLP's JSON, on a thread of
// its own. Nobody ever waits for it: what does not fit into its queue, or cannot be sent, is lost.
#pragma once

#include <condition_variable>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/json.h"
#include "tracing/context.h"

namespace hearth::tracing {

// Of texts. Both must live for the call.
using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Tracer {
 public:
  struct Options {
    std::string service;                       // who we are: service.name
    Duration pause = std::chrono::seconds(1);  // in which spans gather
  };
  // `send` gets the body of an ExportTraceServiceRequest; it may block and throw Error.
  Tracer(const Clock& clock, Options options, std::function<void(std::string body)> send);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  // What waits is sent first.
  ~Tracer();

 private:
  friend class Span;
  void add(model::JsonObject span);
  void run(const std::stop_token& stop);
  void send(model::JsonArray spans);

  const Clock& clock_;
  const Options options_;
  const std::function<void(std::string)> send_;
  bool is_failing_ = false;  // of the thread's
  std::mutex mutex_;         // guards what follows
  std::condition_variable_any changed_;
  model::JsonArray ended_;
  std::jthread thread_;
};

// Ends where it goes out of scope. Used by one thread.
class Span {
 public:
  // Without a tracer it is nothing, and costs nothing. One whose parent is not sampled is not sent,
  // and neither are its children; a trace that begins here is.
  Span(Tracer* tracer, std::string_view name, const std::optional<Context>& parent = {});
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span();

  // For what is caused by it. Nothing without a tracer.
  const std::optional<Context>& context() const { return context_; }

  void set(std::string_view key, std::string_view value);
  void event(std::string_view name, Attributes attributes);
  void fail(std::string_view why);

 private:
  Tracer* tracer_;  // null: not sent
  std::optional<Context> context_;
  model::JsonObject data_;
};

}  // namespace hearth::tracing
