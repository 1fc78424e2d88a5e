#include "pki/authority.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "pki/certificate_internal.h"
#include "pki/crypto_internal.h"
#include "pki/folder_internal.h"

namespace hearth::pki {
namespace {

using namespace std::chrono_literals;

constexpr Duration kYear = 365 * 24h;
// Authorities outlive what they sign; a server may run for a year without a restart.
constexpr Duration kAuthorityLifetime = 10 * kYear;
constexpr Duration kAuthorityRenewal = 3 * kYear;
constexpr Duration kServerLifetime = 2 * kYear;
constexpr Duration kServerRenewal = kYear;
// Clocks of clients may be behind ours.
constexpr Duration kSkew = 5min;
constexpr std::size_t kMostName = 256;

constexpr const char* kAuthorityCertificate = "ca.crt";
constexpr const char* kAuthorityKey = "ca.key";
constexpr const char* kServerCertificate = "server.crt";
constexpr const char* kServerKey = "server.key";

Certificate self_signed(EVP_PKEY* key, Time now) {
  return make_certificate({.common_name = "hearth-ca",
                           .usage = Usage::authority,
                           .from = now - kSkew,
                           .until = now + kAuthorityLifetime},
                          key, nullptr, key);
}

Key load_authority_key(const Folder& folder) {
  if (const auto kept = folder.find(kAuthorityKey))
    return parse_key(*kept, folder.path_of(kAuthorityKey));
  if (folder.find(kAuthorityCertificate)) {
    fail(Code::invalid, "'{}' is there without '{}'; put the key back, or remove both",
         folder.path_of(kAuthorityCertificate), kAuthorityKey);
  }
  Key key = make_key();
  folder.keep_durably(kAuthorityKey, key_text(key.get()));
  return key;
}

// A key without its certificate, or with an empty one, is what a crash or a power cut between the
// two writes leaves; and near its end a certificate is made again. For the same key, so that those
// who trust the old one trust it as well.
Certificate load_authority_certificate(const Folder& folder, EVP_PKEY* key, Time now) {
  const auto kept = folder.find(kAuthorityCertificate);
  if (kept && !kept->empty()) {
    const std::string path = folder.path_of(kAuthorityCertificate);
    Certificate certificate = parse_certificate(*kept, path);
    if (X509_check_private_key(certificate.get(), key) != 1)
      fail(Code::invalid, "'{}' is not of the key in '{}'", path, kAuthorityKey);
    if (expiry(certificate.get()) - now > kAuthorityRenewal) return certificate;
  }
  Certificate certificate = self_signed(key, now);
  folder.keep(kAuthorityCertificate, certificate_text(certificate.get()));
  return certificate;
}

void check_subject(const std::string& name) {
  const bool printable =
      std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
  if (name.empty() || name.size() > kMostName || !printable)
    fail(Code::invalid, "'{}' cannot be the name of a user or a group", name.substr(0, kMostName));
}

std::vector<std::string> wanted_names(const std::vector<std::string>& extra) {
  std::vector<std::string> names;
  for (const std::string& name : usual_server_names()) names.push_back(alternative_name(name));
  for (const std::string& name : extra) {
    if (name.empty() || name == "0.0.0.0" || name == "::") continue;
    names.push_back(alternative_name(name));
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> usual_server_names() {
  return {"localhost",  "127.0.0.1",          "::1",
          "kubernetes", "kubernetes.default", "kubernetes.default.svc"};
}

struct Authority::State {
  State(const std::string& path, Time now) : folder_path(path) {
    const Folder folder(path);
    key = load_authority_key(folder);
    certificate = load_authority_certificate(folder, key.get(), now);
    text = certificate_text(certificate.get());
  }

  Identity sign(CertificateWords words, Time now) const {
    const Key fresh = make_key();
    words.from = now - kSkew;
    // What outlived its authority would be refused anyway.
    words.until = std::min(words.until, expiry(certificate.get()));
    const Certificate made = make_certificate(words, fresh.get(), certificate.get(), key.get());
    return {certificate_text(made.get()), key_text(fresh.get())};
  }

  // The kept identity of the server, if it is still good for these names.
  std::optional<Identity> find_server(const Folder& folder, const std::vector<std::string>& names,
                                      Time now) const {
    auto kept_certificate = folder.find(kServerCertificate);
    auto kept_key = folder.find(kServerKey);
    if (!kept_certificate || !kept_key) return std::nullopt;
    try {
      const Certificate old = parse_certificate(*kept_certificate, kServerCertificate);
      const Key old_key = parse_key(*kept_key, kServerKey);
      const bool fits = X509_check_private_key(old.get(), old_key.get()) == 1 &&
                        X509_verify(old.get(), key.get()) == 1 &&
                        alternative_names(old.get()) == names &&
                        expiry(old.get()) - now > kServerRenewal;
      if (!fits) return std::nullopt;
    } catch (const Error&) {
      return std::nullopt;  // unreadable: as good as not there
    }
    return Identity{*std::move(kept_certificate), *std::move(kept_key)};
  }

  std::string folder_path;
  Key key;
  Certificate certificate;
  std::string text;
};

Authority::Authority(const std::string& folder, Time now)
    : state_(std::make_unique<State>(folder, now)) {}

Authority::~Authority() = default;

const std::string& Authority::certificate() const {
  return state_->text;
}

Identity Authority::server(const std::vector<std::string>& extra, Time now) const {
  const std::vector<std::string> names = wanted_names(extra);
  const Folder folder(state_->folder_path);
  if (auto kept = state_->find_server(folder, names, now)) return *std::move(kept);
  Identity made = state_->sign({.common_name = "hearth-apiserver",
                                .alternative_names = names,
                                .usage = Usage::server,
                                .until = now + kServerLifetime},
                               now);
  // A crash between the two leaves a pair that does not fit, which is made again.
  folder.keep(kServerKey, made.key);
  folder.keep(kServerCertificate, made.certificate);
  return made;
}

Identity Authority::issue_server(const std::string& common_name,
                                 const std::vector<std::string>& names, Time now) const {
  check_subject(common_name);
  std::vector<std::string> alternatives;
  for (const std::string& name : names) alternatives.push_back(alternative_name(name));
  return state_->sign({.common_name = common_name,
                       .alternative_names = std::move(alternatives),
                       .usage = Usage::server,
                       .until = now + kServerLifetime},
                      now);
}

Identity Authority::issue_client(const std::string& user, const std::vector<std::string>& groups,
                                 Duration lifetime, Time now) const {
  check_subject(user);
  for (const std::string& group : groups) check_subject(group);
  if (lifetime <= Duration::zero()) fail(Code::invalid, "a certificate must live for some time");
  return state_->sign({.common_name = user,
                       .organisations = groups,
                       .usage = Usage::client,
                       .until = now + std::min(lifetime, kAuthorityLifetime)},
                      now);
}

}  // namespace hearth::pki
