#include "cli/otlp.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "client/cluster_access.h"
#include "http/fields.h"
#include "http/target.h"
#include "net/client.h"

namespace hearth::cli {
namespace {

constexpr char kEndpoint[] = "OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr char kTracesEndpoint[] = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
constexpr char kHeaders[] = "OTEL_EXPORTER_OTLP_HEADERS";
constexpr char kTracesHeaders[] = "OTEL_EXPORTER_OTLP_TRACES_HEADERS";
constexpr char kDefaultEndpoint[] = "http://localhost:4318";
// Nobody waits for it but the end of the program.
constexpr Duration kPatience = std::chrono::seconds(5);

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string with_scheme(const std::string& endpoint) {
  if (endpoint.find("://") != std::string::npos) return endpoint;
  const bool is_insecure = variable("OTEL_EXPORTER_OTLP_INSECURE") == "true";
  return (is_insecure ? "http://" : "https://") + endpoint;
}

OtlpTarget parse_target(const char* name, const std::string& endpoint, const char* path) {
  try {
    const client::ServerUrl url = client::parse_server_url(with_scheme(endpoint));
    return {.is_tls = url.is_tls, .host = url.host, .port = url.port, .path = url.base + path};
  } catch (const Error& error) {
    fail(Code::invalid, "{}: {}", name, error.what());
  }
}

}  // namespace

OtlpTarget find_otlp_target() {
  if (const std::string traces = variable(kTracesEndpoint); !traces.empty()) {
    OtlpTarget target = parse_target(kTracesEndpoint, traces, "");
    if (target.path.empty()) target.path = "/";
    return target;
  }
  const std::string endpoint = variable(kEndpoint);
  return parse_target(kEndpoint, endpoint.empty() ? kDefaultEndpoint : endpoint, "/v1/traces");
}

// As baggage is written: pairs with a comma between them, their values with percent signs where
// they have to.
std::vector<std::pair<std::string, std::string>> find_otlp_headers() {
  const bool has_own = !variable(kTracesHeaders).empty();
  const char* source = has_own ? kTracesHeaders : kHeaders;
  const std::string all = variable(source);
  std::vector<std::pair<std::string, std::string>> headers;
  for (std::size_t at = 0, end = 0; at < all.size(); at = end + 1) {
    end = std::min(all.find(',', at), all.size());
    const std::string_view pair = http::trim(std::string_view(all).substr(at, end - at));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const std::string_view name = http::trim(pair.substr(0, equals));
    const auto value = equals == std::string_view::npos
                           ? std::nullopt
                           : http::percent_decode(http::trim(pair.substr(equals + 1)));
    if (!http::is_token(name) || !value || !http::is_field_value(*value))
      fail(Code::invalid, "{}: pair {} is not NAME=VALUE of a header", source, headers.size() + 1);
    headers.emplace_back(name, *value);
  }
  return headers;
}

std::unique_ptr<tracing::Tracer> make_tracer(const Clock& clock, const std::string& service) {
  const OtlpTarget target = find_otlp_target();
  net::Endpoint endpoint{.host = target.host, .port = target.port};
  if (target.is_tls)
    endpoint.tls = net::make_tls_context(
        net::TlsClientOptions{.ca = {.file = variable("OTEL_EXPORTER_OTLP_CERTIFICATE")}});
  const std::string name = variable("OTEL_SERVICE_NAME");
  log::info("spans are sent", {{"to", endpoint.text() + target.path}});
  const auto send = [client = std::make_shared<net::Client>(endpoint), path = target.path,
                     headers = find_otlp_headers()](std::string body) {
    net::Request request{.method = "POST", .target = path};
    request.headers.add("Content-Type", "application/json");
    for (const auto& [key, value] : headers) request.headers.add(key, value);
    request.body = std::move(body);
    const net::Response answer = client->fetch(std::move(request), {.timeout = kPatience});
    if (answer.status / 100 != 2)
      fail(Code::unavailable, "the collector answered {}", answer.status);
  };
  return std::make_unique<tracing::Tracer>(
      clock, tracing::Tracer::Options{.service = name.empty() ? service : name}, send);
}

}  // namespace hearth::cli
