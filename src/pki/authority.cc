#include "pki/authority.h"

#include <algorithm>

#include "base/error.h"
#include "pki/folder_internal.h"
#include "pki/signer_internal.h"

namespace hearth::pki {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostName = 256;
// Longer than the authority itself lives, and short enough to be added to any date.
constexpr Duration kMostLifetime = 20 * 365 * 24h;

constexpr const char* kAuthorityCertificate = "ca.crt";
constexpr const char* kAuthorityKey = "ca.key";
constexpr const char* kServerCertificate = "server.crt";
constexpr const char* kServerKey = "server.key";

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
// two writes leaves.
Certificate load_authority_certificate(const Folder& folder, EVP_PKEY* key, Time now) {
  const auto kept = folder.find(kAuthorityCertificate);
  if (kept && !kept->empty()) {
    const std::string path = folder.path_of(kAuthorityCertificate);
    Certificate certificate = parse_certificate(*kept, path);
    if (X509_check_private_key(certificate.get(), key) != 1)
      fail(Code::invalid, "'{}' is not of the key in '{}'", path, kAuthorityKey);
    if (!is_authority_near_its_end(certificate.get(), now)) return certificate;
  }
  Certificate certificate = make_authority_certificate(key, now);
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
  std::vector<std::string> names = usual_server_names();
  for (const std::string& name : extra) {
    if (name.empty() || name == "0.0.0.0" || name == "::") continue;
    names.push_back(name);
  }
  return alternatives(names);
}

}  // namespace

std::vector<std::string> usual_server_names() {
  return {"localhost",  "127.0.0.1",          "::1",
          "kubernetes", "kubernetes.default", "kubernetes.default.svc"};
}

struct Authority::State {
  State(const std::string& path, Time now) : folder_path(path) {
    const Folder folder(path);
    signer.key = load_authority_key(folder);
    signer.certificate = load_authority_certificate(folder, signer.key.get(), now);
    text = certificate_text(signer.certificate.get());
  }

  std::string folder_path;
  Signer signer;
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
  Identity kept{folder.find(kServerCertificate).value_or(""), folder.find(kServerKey).value_or("")};
  if (state_->signer.is_good_server(kept, names, now)) return kept;
  Identity made = state_->signer.sign_server("hearth-apiserver", names, now);
  // A crash between the two leaves a pair that does not fit, which is made again.
  folder.keep(kServerKey, made.key);
  folder.keep(kServerCertificate, made.certificate);
  return made;
}

Identity Authority::issue_server(const std::string& common_name,
                                 const std::vector<std::string>& names, Time now) const {
  check_subject(common_name);
  return state_->signer.sign_server(common_name, alternatives(names), now);
}

Identity Authority::issue_client(const std::string& user, const std::vector<std::string>& groups,
                                 Duration lifetime, Time now) const {
  check_subject(user);
  for (const std::string& group : groups) check_subject(group);
  if (lifetime <= Duration::zero()) fail(Code::invalid, "a certificate must live for some time");
  return state_->signer.sign({.common_name = user,
                              .organisations = groups,
                              .usage = Usage::client,
                              .until = now + std::min(lifetime, kMostLifetime)},
                             now);
}

}  // namespace hearth::pki
