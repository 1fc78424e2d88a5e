// The words of `hearth controller`: the flags of agent-sandbox-controller, under their names.
//
// Those of things that we do not have are taken, since deployments name them, and told of once.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/time_text.h"
#include "cli/controller.h"
#include "cli/life_parser_internal.h"
#include "cli/values.h"
#include "model/names.h"

namespace hearth::cli {
namespace {

// More threads than that are a typing mistake.
constexpr std::uint32_t kMostWorkers = 10000;
constexpr std::uint32_t kMostBatch = 100000;

// As Go reads it.
bool parse_bool(std::string_view flag, std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  fail(Code::invalid, "{}: '{}' is neither true nor false", flag, text);
}

std::uint32_t parse_positive(std::string_view flag, std::string_view text, std::uint32_t most) {
  const std::uint32_t count = parse_count(flag, text, most);
  if (count == 0) fail(Code::invalid, "{}: must be more than 0", flag);
  return count;
}

double parse_number(std::string_view flag, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    fail(Code::invalid, "{}: '{}' is no number", flag, text);
  }
  return number;
}

// "5m"; 0 needs no unit.
Duration parse_time(std::string_view flag, std::string_view text, bool may_be_zero) {
  const std::optional<Duration> time = text == "0" ? Duration::zero() : parse_duration(text);
  if (!time) fail(Code::invalid, "{}: '{}' is no time; write 30s, 5m or 1h30m", flag, text);
  if (*time == Duration::zero() && !may_be_zero) {
    fail(Code::invalid, "{}: must be more than 0", flag);
  }
  return *time;
}

log::Level parse_zap_level(const std::string& text) {
  if (text == "info" || text == "0") return log::Level::info;
  if (text == "error") return log::Level::error;
  if (text == "warn" || text == "warning") return log::Level::warning;
  if (text == "panic" || text == "dpanic" || text == "fatal") return log::Level::error;
  if (text == "debug") return log::Level::debug;
  // The higher, the more is said.
  if (parse_count("--zap-log-level", text, 1000) > 0) return log::Level::debug;
  return log::Level::info;
}

// "-extensions" is "--extensions" to Go.
CommandLine with_two_dashes(CommandLine line) {
  for (std::string& word : line.rest) {
    const bool is_long = word.size() > 2 && word[0] == '-' && word[1] >= 'a' && word[1] <= 'z';
    if (is_long) word.insert(0, "-");
  }
  return line;
}

// What the controllers themselves want to know.
class FleetFlags {
 public:
  explicit FleetFlags(Parser& parser) {
    parser.toggle("--extensions", extensions_,
                  "claims, pools and templates too [if the cluster has them]");
    parser.option("--cluster-domain", values_.cluster_domain, "DOMAIN",
                  "of the names of Services [cluster.local]");
    count(parser, "--sandbox-concurrent-workers", sandbox_workers_, "workers for Sandboxes [100]");
    count(parser, "--sandbox-claim-concurrent-workers", claim_workers_, "for claims [50]");
    count(parser, "--sandbox-warm-pool-concurrent-workers", pool_workers_, "for pools [1]");
    count(parser, "--sandbox-template-concurrent-workers", template_workers_, "for templates [1]");
    count(parser, "--sandbox-warm-pool-max-batch-size", batch_,
          "Sandboxes that a pool makes in one go [300]");
    parser.option("--sandbox-warm-pool-replenish-delay", replenish_, "TIME",
                  "before a pool makes up for a claimed one [0]");
    parser.option("--sandbox-warm-pool-max-refill-rate", rate_, "N",
                  "Sandboxes that a pool makes in a second; 0: any number [0]");
    parser.option("--sandbox-warm-pool-readiness-grace-period", grace_, "TIME",
                  "in which a pool's Sandbox must become ready [5m]");
    parser.option("--sandbox-warm-pool-unschedulable-recheck-interval", recheck_, "TIME",
                  "before pods that fit nowhere are looked at again [1m]");
    parser.toggle("--enable-warm-pool-eviction", eviction_,
                  "an autoscaler may evict idle pods [true]");
    parser.option("--sandbox-write-behind-window", write_behind_, "TIME",
                  "for which writes of pod metadata are gathered [0]");
    parser.option("--sandbox-transitional-status-window", status_window_, "TIME",
                  "for which a status that is not ready yet waits for a better one [0]");
    parser.toggle("--disable-sandbox-events", no_sandbox_events_, "no events of Sandboxes");
    parser.toggle("--disable-claim-events", no_events_, "no events of claims");
    parser.toggle("--disable-claim-observability-annotations", no_annotations_,
                  "no times of the claims' first moments");
    parser.option("--guest-image", values_.guest_image, "IMAGE",
                  "that pods get their guest from [none: they get no guest]");
    parser.toggle("--cache-label-selectors", by_label_,
                  "keep only pods and Services with the Sandboxes' label in memory");
  }

  void finish(ControllerOptions& options) {
    if (!extensions_.empty()) options.extensions = parse_bool("--extensions", extensions_);
    if (values_.cluster_domain.empty()) fail(Code::invalid, "--cluster-domain: must not be empty");
    const auto workers = [](const char* flag, const std::string& text, unsigned& count) {
      if (!text.empty()) count = parse_positive(flag, text, kMostWorkers);
    };
    workers("--sandbox-concurrent-workers", sandbox_workers_, values_.sandbox_workers);
    workers("--sandbox-claim-concurrent-workers", claim_workers_, values_.claim_workers);
    workers("--sandbox-warm-pool-concurrent-workers", pool_workers_, values_.pool_workers);
    workers("--sandbox-template-concurrent-workers", template_workers_, values_.template_workers);
    if (!batch_.empty()) {
      values_.most_batch = parse_positive("--sandbox-warm-pool-max-batch-size", batch_, kMostBatch);
    }
    finish_times();
    if (!rate_.empty()) {
      values_.most_refill_rate = parse_number("--sandbox-warm-pool-max-refill-rate", rate_);
      if (values_.most_refill_rate < 0) {
        fail(Code::invalid, "--sandbox-warm-pool-max-refill-rate: must not be less than 0");
      }
    }
    const auto toggle = [](const char* flag, const std::string& text, bool inverse, bool& value) {
      if (!text.empty()) value = parse_bool(flag, text) != inverse;
    };
    toggle("--enable-warm-pool-eviction", eviction_, false, values_.warm_pool_eviction);
    toggle("--disable-sandbox-events", no_sandbox_events_, true, values_.sandbox_events);
    toggle("--disable-claim-events", no_events_, true, values_.claim_events);
    toggle("--disable-claim-observability-annotations", no_annotations_, true,
           values_.claim_observability_annotations);
    toggle("--cache-label-selectors", by_label_, false, values_.caches_by_label);
    options.controllers = std::move(values_);
  }

 private:
  static void count(Parser& parser, const char* flag, std::string& value, const char* text) {
    parser.option(flag, value, "N", text);
  }

  void finish_times() {
    const auto time = [](const char* flag, const std::string& text, bool may_be_zero,
                         Duration& value) {
      if (!text.empty()) value = parse_time(flag, text, may_be_zero);
    };
    time("--sandbox-warm-pool-replenish-delay", replenish_, true, values_.replenish_delay);
    time("--sandbox-warm-pool-readiness-grace-period", grace_, false, values_.readiness_grace);
    time("--sandbox-warm-pool-unschedulable-recheck-interval", recheck_, false,
         values_.unschedulable_recheck);
    time("--sandbox-write-behind-window", write_behind_, true, values_.write_behind);
    time("--sandbox-transitional-status-window", status_window_, true,
         values_.transitional_status_window);
  }

  controllers::Options values_;
  std::string extensions_, sandbox_workers_, claim_workers_, pool_workers_, template_workers_;
  std::string batch_, replenish_, rate_, grace_, recheck_, write_behind_, status_window_;
  std::string eviction_, no_sandbox_events_, no_events_, no_annotations_, by_label_;
};

// Of the conversion webhook.
class WebhookParser {
 public:
  explicit WebhookParser(Parser& parser) {
    parser.toggle("--enable-webhook", enable_,
                  "convert v1alpha1 [if the CRDs name our Service for it]");
    parser.option("--webhook-port", port_, "PORT", "where it listens [9443]");
    parser.option("--webhook-service-name", values_.service, "NAME",
                  "the Service that CRDs name [agent-sandbox-webhook-service]");
    parser.option("--webhook-namespace", values_.ns, "NAME",
                  "of that Service [the pod's, or the context's]");
    parser.toggle("--manage-webhook-certs", manage_,
                  "make a certificate, and have the CRDs trust it [true]");
    parser.option("--webhook-cert-dir", values_.folder, "DIR",
                  "with --manage-webhook-certs=false: where the certificate is");
    parser.option("--webhook-cert-name", values_.certificate, "FILE", "its name there [tls.crt]");
    parser.option("--webhook-key-name", values_.key, "FILE", "that of its key [tls.key]");
  }

  void finish(ControllerOptions& options) {
    constexpr std::uint32_t kMostPort = 65535;
    if (!enable_.empty()) values_.is_enabled = parse_bool("--enable-webhook", enable_);
    if (!manage_.empty())
      values_.manages_certificates = parse_bool("--manage-webhook-certs", manage_);
    if (!port_.empty()) values_.port = parse_positive("--webhook-port", port_, kMostPort);
    refuse_empty("--webhook-service-name", values_.service);
    refuse_empty("--webhook-cert-dir", values_.folder);
    refuse_empty("--webhook-cert-name", values_.certificate);
    refuse_empty("--webhook-key-name", values_.key);
    options.webhook = std::move(values_);
  }

 private:
  static void refuse_empty(const char* flag, const std::string& value) {
    if (value.empty()) fail(Code::invalid, "{}: must not be empty", flag);
  }

  WebhookFlags values_;
  std::string enable_, port_, manage_;
};

// Whatever they are set to, nothing follows from it.
class FlagsWithoutEffect {
 public:
  explicit FlagsWithoutEffect(Parser& parser) {
    for (std::size_t i = 0; i < kToggles.size(); ++i) {
      parser.toggle(kToggles[i], toggles_[i], "no effect here");
    }
    for (std::size_t i = 0; i < kOptions.size(); ++i) {
      parser.option(kOptions[i], options_[i], "VALUE", "no effect here");
    }
  }

  // What was asked for; saying no to what we do not have is no mistake.
  void finish(ControllerOptions& options) const {
    for (std::size_t i = 0; i < kToggles.size(); ++i) {
      if (!toggles_[i].empty() && parse_bool(kToggles[i], toggles_[i])) {
        options.without_effect.emplace_back(kToggles[i]);
      }
    }
    for (std::size_t i = 0; i < kOptions.size(); ++i) {
      if (!options_[i].empty()) options.without_effect.emplace_back(kOptions[i]);
    }
  }

 private:
  static constexpr std::array kToggles = {
      "--separate-watch-connection",
      "--enable-pprof",
      "--enable-pprof-debug",
      "--zap-devel",
  };
  static constexpr std::array kOptions = {
      "--api-connections",      "--pprof-block-profile-rate", "--pprof-mutex-profile-fraction",
      "--zap-stacktrace-level", "--zap-time-encoding",
  };

  std::array<std::string, kToggles.size()> toggles_;
  std::array<std::string, kOptions.size()> options_;
};

model::Key parse_service(std::string_view text) {
  const std::size_t slash = text.find('/');
  const model::Key service{
      std::string(text.substr(0, slash)),
      slash == std::string_view::npos ? std::string() : std::string(text.substr(slash + 1))};
  if (!model::check_dns_label(service.ns).empty() ||
      !model::check_dns1035_label(service.name).empty())
    fail(Code::invalid, "--conversion-service: '{}' is no NAMESPACE/NAME of a Service", text);
  return service;
}

// "0" is off, as controller-runtime has it.
void check_address(const char* flag, const std::string& address) {
  if (address.empty()) fail(Code::invalid, "{}: must not be empty; 0 turns it off", flag);
}

}  // namespace

Order parse_controller(const CommandLine& given) {
  Parser parser(with_two_dashes(given));
  ControllerOptions options;
  std::string leader_elect = "true", tracing, qps, burst, level, encoder;
  parser.flag("--version", options.version_only, "print the version, and no more");
  parser.option("--kubeconfig", options.kubeconfig, "FILE",
                "where the cluster is [KUBECONFIG, or the pod's account]");
  parser.option("--context", options.context, "NAME", "of that file [the current one]");
  parser.toggle("--leader-elect", leader_elect, "act only while holding the lease [true]");
  parser.option("--leader-election-namespace", options.lease_namespace, "NAME",
                "where the lease is [the pod's, or the context's]");
  parser.option("--metrics-bind-address", options.metrics_address, "ADDR",
                "/metrics [:8080]; 0: none");
  parser.option("--health-probe-bind-address", options.health_address, "ADDR",
                "/healthz and /readyz [:8081]; 0: none");
  parser.option("--e2b-bind-address", options.e2b_address, "ADDR",
                "E2B API and gateway, such as :8090 [0: none]");
  parser.option("--e2b-domain", options.e2b_domain, "NAME",
                "what names of sandboxes' ports end in: PORT-ID.NAME");
  parser.option("--access-log", options.access_log, "FILE",
                "a line of JSON for each request to that; -: to stdout [off]");
  parser.toggle("--enable-tracing", tracing,
                "send spans (OTLP, http/json) to OTEL_EXPORTER_OTLP_ENDPOINT [false]");
  parser.option("--kube-api-qps", qps, "N", "requests to the API in a second; -1: any [-1]");
  parser.option("--kube-api-burst", burst, "N", "of them at once [10]");
  parser.option("--zap-log-level", level, "LEVEL", "debug, info, error, or a number [info]");
  parser.option("--zap-encoder", encoder, "FORMAT", "json or console [json]");
  FleetFlags fleet(parser);
  WebhookParser webhook(parser);
  FlagsWithoutEffect without(parser);
  parser.refuse_words(parser.parse());
  fleet.finish(options);
  webhook.finish(options);
  without.finish(options);
  options.leader_elect = parse_bool("--leader-elect", leader_elect);
  if (!tracing.empty()) options.tracing = parse_bool("--enable-tracing", tracing);
  check_address("--metrics-bind-address", options.metrics_address);
  check_address("--health-probe-bind-address", options.health_address);
  check_address("--e2b-bind-address", options.e2b_address);
  if (!qps.empty()) options.api_qps = parse_number("--kube-api-qps", qps);
  if (!burst.empty()) options.api_burst = parse_positive("--kube-api-burst", burst, 1U << 20);
  if (!level.empty()) options.log_level = parse_zap_level(level);
  if (encoder == "console") {
    options.log_format = log::Format::text;
  } else if (!encoder.empty() && encoder != "json") {
    fail(Code::invalid, "--zap-encoder: '{}' is neither json nor console", encoder);
  }
  return options;
}

Order parse_crds(const CommandLine& line) {
  Parser parser(line);
  CrdsOptions options;
  std::vector<std::string> services;  // none is something else than one without a name
  parser.flag("--all-versions", options.all_versions,
              "serve v1alpha1 too, for clusters with agent-sandbox's conversion webhook");
  parser.options("--conversion-service", services, "NAMESPACE/NAME",
                 "serve v1alpha1 too, converted by this Service of a `hearth controller`");
  parser.refuse_words(parser.parse());
  for (const std::string& each : services) options.conversion_service = parse_service(each);
  return options;
}

}  // namespace hearth::cli
