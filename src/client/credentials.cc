#include <unistd.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/time_text.h"
#include "client/credentials_internal.h"
#include "linux/fd.h"
#include "linux/program.h"

namespace hearth::client {
namespace {

using model::Json;
using model::text_at;

constexpr std::size_t kMostTokenBytes = 64 << 10;
constexpr std::size_t kMostPluginBytes = 1 << 20;
// Some open a browser and wait for a person.
constexpr Duration kPluginPatience = std::chrono::minutes(2);
// Whoever renews a token or a certificate in its file does so long before it expires.
constexpr Duration kFileAge = std::chrono::minutes(1);
// So that a credential does not expire on its way.
constexpr Duration kEarly = std::chrono::seconds(10);
constexpr Time kNever = Time::max();

// One line of a header: anything else would let a file write headers of its own.
std::string checked_token(std::string token, std::string_view from) {
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  token.erase(0, token.find_first_not_of(" \t\r\n"));
  if (token.empty()) fail(Code::invalid, "the token of {} is empty", from);
  for (const char c : token) {
    if (c <= 0x20 || c >= 0x7f) fail(Code::invalid, "the token of {} is none", from);
  }
  return token;
}

std::string text_of(const net::Pem& pem) {
  return pem.text.empty() && !pem.file.empty() ? linux::read_file(pem.file) : pem.text;
}

// KUBERNETES_EXEC_INFO.
std::string exec_info(const ClusterAccess& access, const ExecPlugin& plugin) {
  Json info = model::JsonObject{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}};
  model::JsonObject& spec = model::make_object_at(info, {"spec"});
  spec["interactive"] = false;
  if (plugin.provide_cluster_info) {
    model::JsonObject cluster{{"server", access.server}};
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (access.is_insecure) cluster["insecure-skip-tls-verify"] = true;
    const std::string ca = text_of(access.ca);
    if (!ca.empty()) cluster["certificate-authority-data"] = base64_encode(ca);
    if (!plugin.cluster_config.is_null()) cluster["config"] = plugin.cluster_config;
    spec["cluster"] = std::move(cluster);
  }
  return model::to_text(info);
}

Credential run_plugin(const ClusterAccess& access, const ExecPlugin& plugin, Time& expires) {
  linux::ProgramOptions options{.max_output = kMostPluginBytes, .timeout = kPluginPatience};
  options.environment = plugin.environment;
  options.environment.push_back("KUBERNETES_EXEC_INFO=" + exec_info(access, plugin));
  // Its words for people are for our people too.
  options.error_fd = STDERR_FILENO;
  const std::string& name = plugin.command.front();
  linux::ProgramResult result;
  try {
    result = linux::run_program(plugin.command, options);
  } catch (const Error& error) {
    if (error.code() != Code::not_found || plugin.install_hint.empty()) throw;
    fail(Code::not_found, "{}: {}", error.what(), plugin.install_hint);
  }
  if (!(result.status == linux::ExitStatus{})) {
    fail(Code::unauthenticated, "the credential plugin '{}' failed ({} {})", name,
         result.status.signal != 0 ? "signal" : "exit code",
         result.status.signal != 0 ? result.status.signal : result.status.code);
  }
  try {
    return parse_exec_credential(result.output, plugin.api_version, expires);
  } catch (const Error& error) {
    fail(Code::unauthenticated, "the credential plugin '{}': {}", name, error.what());
  }
}

}  // namespace

Credential parse_exec_credential(std::string_view text, std::string_view api_version,
                                 Time& expires) {
  const Json answer = model::parse_json(text).value;
  if (text_at(answer, {"kind"}) != "ExecCredential" ||
      text_at(answer, {"apiVersion"}) != api_version) {
    fail(Code::invalid, "what it says is no ExecCredential of {}", api_version);
  }
  Credential credential;
  const std::string token(text_at(answer, {"status", "token"}));
  if (!token.empty()) credential.authorization = "Bearer " + checked_token(token, "the plugin");
  credential.certificate = text_at(answer, {"status", "clientCertificateData"});
  credential.key = text_at(answer, {"status", "clientKeyData"});
  if (credential.certificate.empty() != credential.key.empty()) {
    fail(Code::invalid, "it gave a certificate or a key, but not both");
  }
  if (token.empty() && credential.certificate.empty()) {
    fail(Code::invalid, "it gave neither a token nor a certificate");
  }
  const std::string_view until = text_at(answer, {"status", "expirationTimestamp"});
  if (until.empty()) return credential;
  const auto parsed = parse_rfc3339(until);
  if (!parsed) fail(Code::invalid, "its expirationTimestamp is no time");
  expires = *parsed;
  return credential;
}

Credentials::Credentials(ClusterAccess access, const Clock& clock)
    : access_(std::move(access)), clock_(clock) {}

Credential Credentials::current() {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  if (!kept_ || (kept_until_ != kNever && now >= kept_until_ - kEarly)) {
    kept_until_ = kNever;
    try {
      kept_ = make();
    } catch (const Error&) {
      // A file that is not there for a moment: the last one is still good.
      if (!kept_ || access_.exec) throw;
      kept_until_ = now + kFileAge;
    }
  }
  return *kept_;
}

void Credentials::refuse(const Credential& used) {
  const std::lock_guard lock(mutex_);
  if (kept_ == used) kept_.reset();
}

Credential Credentials::make() {
  Credential credential;
  if (!access_.token_file.empty()) {
    std::string token = linux::read_file(access_.token_file, kMostTokenBytes);
    const std::string from = "'" + access_.token_file + "'";
    credential.authorization = "Bearer " + checked_token(std::move(token), from);
    kept_until_ = clock_.now() + kFileAge;
  } else if (!access_.token.empty()) {
    credential.authorization = "Bearer " + checked_token(access_.token, "the kubeconfig");
  } else if (!access_.username.empty()) {
    credential.authorization = "Basic " + base64_encode(access_.username + ":" + access_.password);
  } else if (access_.exec) {
    credential = run_plugin(access_, *access_.exec, kept_until_);
  }
  if (credential.certificate.empty() && !access_.certificate.empty()) {
    credential.certificate = text_of(access_.certificate);
    credential.key = text_of(access_.key);
    if (kept_until_ == kNever && !access_.certificate.file.empty()) {
      kept_until_ = clock_.now() + kFileAge;
    }
  }
  return credential;
}

}  // namespace hearth::client
