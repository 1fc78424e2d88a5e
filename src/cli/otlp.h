// Where spans go: a collector of OpenTelemetry, named by the environment as everywhere.
//
//   OTEL_EXPORTER_OTLP_TRACES_ENDPOINT   the URL, as it is
//   OTEL_EXPORTER_OTLP_ENDPOINT          the URL without /v1/traces [http://localhost:4318]
//   OTEL_EXPORTER_OTLP_INSECURE          true: an endpoint without a scheme is http, not https
//   OTEL_EXPORTER_OTLP_CERTIFICATE       a file with the authorities to trust
//   OTEL_EXPORTER_OTLP_TRACES_HEADERS    what collectors ask for: "api-key=SECRET,tenant=a%20b"
//   OTEL_EXPORTER_OTLP_HEADERS           the same, where the one above is not set
//   OTEL_SERVICE_NAME                    who we are
//
// The protocol is http/json; collectors listen for it on port 4318. That of gRPC, 4317, does not
// answer it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tracing/tracer.h"

namespace hearth::cli {

struct OtlpTarget {
  bool is_tls = false;
  std::string host;
  std::uint16_t port = 4318;
  std::string path;  // "/v1/traces"
};

// Throws Error(invalid), naming the variable.
OtlpTarget find_otlp_target();

// What comes along with every request. Throws Error(invalid), naming the variable and no value.
std::vector<std::pair<std::string, std::string>> find_otlp_headers();

// `service` is what we are called unless the environment says otherwise. Throws Error(invalid).
std::unique_ptr<tracing::Tracer> make_tracer(const Clock& clock, const std::string& service);

}  // namespace hearth::cli
