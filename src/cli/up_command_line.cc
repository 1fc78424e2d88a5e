// The words of `hearth up`.
#include <limits>

#include "base/log.h"
#include "cli/life_parser_internal.h"
#include "cli/values.h"
#include "node/pressure.h"

namespace hearth::cli {
namespace {

std::uint16_t parse_port(const char* flag, const std::string& text) {
  return static_cast<std::uint16_t>(
      parse_count(flag, text, std::numeric_limits<std::uint16_t>::max()));
}

void check_thresholds(const std::string& text) {
  try {
    node::parse_thresholds(text);
  } catch (const Error& error) {
    fail(Code::invalid, "--eviction-hard: {}", error.what());
  }
}

// Each is a process that waits, and its memory.
constexpr std::uint32_t kMostWarm = 4096;

// What `up` says about the E2B API.
class E2bParser {
 public:
  explicit E2bParser(Parser& parser) {
    parser.option("--e2b-port", port_, "N", "E2B API and gateway [8090]; 0: any free port");
    parser.option("--e2b-domain", domain_, "NAME",
                  "what names of sandboxes' ports end in: PORT-ID.NAME");
    parser.option("--e2b-tls-port", tls_port_, "N", "the same with TLS, for that domain [off]");
    parser.option("--e2b-warm", warm_, "N",
                  "sandboxes of the template 'base' kept ready, and a quarter of that of "
                  "'code-interpreter-v1' [8]");
    parser.option("--e2b-team-warm", team_warm_, "N",
                  "sandboxes of a public template kept ready for each other team that creates "
                  "from it [2; 0 with --e2b-warm 0]");
    parser.option("--e2b-team-idle", team_idle_, "TIME",
                  "how long after a team's last create [15m]");
    parser.option("--e2b-image", image_, "IMAGE",
                  "what these templates are made of [host: this machine's /usr]");
    parser.option(
        "--access-log", access_log_, "FILE",
        "a line of JSON for each request to that API and to sandboxes; -: to stdout [off]");
    parser.flag("--no-e2b", none_, "no E2B API, no gateway");
  }

  void finish(UpOptions& options) const {
    options.e2b = !none_;
    if (!port_.empty()) options.e2b_port = parse_port("--e2b-port", port_);
    if (!tls_port_.empty()) options.e2b_tls_port = parse_port("--e2b-tls-port", tls_port_);
    if (!warm_.empty()) options.e2b_warm = parse_count("--e2b-warm", warm_, kMostWarm);
    if (options.e2b_warm == 0) options.e2b_team_warm = 0;
    if (!team_warm_.empty())
      options.e2b_team_warm = parse_count("--e2b-team-warm", team_warm_, kMostWarm);
    if (!team_idle_.empty()) options.e2b_team_idle = parse_timeout("--e2b-team-idle", team_idle_);
    if (!image_.empty()) options.e2b_image = image_;
    options.e2b_domain = domain_;
    options.access_log = access_log_;
    if (options.e2b_tls_port && domain_.empty())
      fail(Code::invalid, "--e2b-tls-port goes with --e2b-domain: whom is the certificate for?");
    if (none_ && !access_log_.empty())
      fail(Code::invalid, "--access-log goes without --no-e2b: nobody would ask anything");
  }

 private:
  std::string port_, tls_port_, domain_, warm_, team_warm_, team_idle_, image_, access_log_;
  bool none_ = false;
};

}  // namespace

Order parse_up(const CommandLine& line) {
  Parser parser(line);
  UpOptions options;
  std::string kube = std::to_string(options.kube_port), api = std::to_string(options.api_port);
  std::string metrics = std::to_string(options.metrics_port);
  std::string warm = std::to_string(options.warm), quota;
  bool no_network = false;
  parser.option("--listen", options.listen, "ADDR", "address to listen on [127.0.0.1]");
  parser.option("--kube-port", kube, "N", "Kubernetes API [6443]; 0: any free port");
  parser.option("--api-port", api, "N", "sandbox API [8080]");
  E2bParser e2b(parser);
  parser.option("--metrics-port", metrics, "N", "metrics and health [8082]");
  parser.option("--log-format", options.log_format, "FORMAT", "text or json [text]");
  parser.option("--log-level", options.log_level, "LEVEL", "debug, info, warning or error [info]");
  parser.option(
      "--user", options.user, "NAME|UID",
      "who the engine is once it needs root no more [who called sudo; 'hearth'; nobody's uid]");
  parser.option("--warm", warm, "N", "shells kept ready for the next sandboxes [16]");
  parser.options("--allow-host-path", options.host_paths, "DIR",
                 "what 'hearth run -v' may mount from this machine; may be repeated");
  parser.option("--image-quota", quota, "SIZE", "what images may take up on the disk [no limit]");
  parser.option("--registry-ca", options.registry_ca, "FILE",
                "certificates (PEM) to trust of registries, besides those of the system");
  parser.option("--node-name", options.node_name, "NAME",
                "what this machine is called among Kubernetes nodes [the host's name]");
  options.eviction_hard = node::kUsualThresholds;
  const std::string eviction_help = fmt::format(
      "what must be left of this machine; pods are ended for it [{}]", node::kUsualThresholds);
  parser.option("--eviction-hard", options.eviction_hard, "LIST", eviction_help);
  parser.flag("--no-network", no_network, "sandboxes get no network at all");
  parser.flag(
      "--enable-tracing", options.tracing,
      "send spans of the controllers to OTEL_EXPORTER_OTLP_ENDPOINT [http://localhost:4318]");
  parser.flag("--demo", options.demo, "make a first sandbox and show what it does");
  parser.refuse_words(parser.parse());
  options.state_dir = parser.state_dir();
  options.kube_port = parse_port("--kube-port", kube);
  options.api_port = parse_port("--api-port", api);
  e2b.finish(options);
  options.metrics_port = parse_port("--metrics-port", metrics);
  options.warm = parse_count("--warm", warm, kMostWarm);
  if (!quota.empty()) options.image_quota_bytes = parse_size("--image-quota", quota);
  options.network = !no_network;
  check_thresholds(options.eviction_hard);
  log::parse_format(options.log_format);
  log::parse_level(options.log_level);
  return options;
}

}  // namespace hearth::cli
