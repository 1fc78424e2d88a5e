// Who is asking, and may he: rooms access and pki with the objects that this server keeps.
//
// Follows the RBAC objects in the store by itself, whoever writes them. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "access/authenticator.h"
#include "access/rules.h"
#include "access/user.h"
#include "apiserver/resource.h"
#include "base/clock.h"
#include "http/http.h"
#include "net/tls.h"
#include "pki/authority.h"
#include "pki/token.h"
#include "store/store.h"

namespace hearth::apiserver {

class Gate {
 public:
  struct Options {
    std::string state_dir;           // admin.token and admin.kubeconfig go here, keys below it
    std::vector<std::string> names;  // the server's own, beside the usual ones
    std::string admin_token;         // empty: the kept one, made if there is none
  };

  // Store and clock must outlive it.
  Gate(store::Store& store, Options options, const Clock& clock);

  // Throws StatusError 401, and 403 for impersonation that is not allowed.
  access::User identify(const http::Request& request) const;
  // Throws StatusError 403.
  void require(const access::User& user, access::Attributes wanted) const;
  // Nobody grants what he does not have: before a role or binding is written over `old`, if there
  // is one.
  void check_grant(const access::User& user, const Json& object, const Json* old) const;

  // Reviews: the question, answered.
  Json review(const access::User& user, const Resource& resource, const std::string& ns,
              const Json& question) const;
  Json issue_token(const Json& account, const Json& request) const;

  const access::User& admin() const { return admin_; }
  std::string ca_certificate() const { return authority_.certificate(); }
  net::TlsServerOptions tls() const;
  // Writes the admin's kubeconfig and returns its path.
  std::string write_kubeconfig(const std::string& url) const;

 private:
  std::shared_ptr<const access::Rules> rules() const;
  std::optional<std::string> uid_of_kept(const std::string& resource, const std::string& ns,
                                         const std::string& name) const;

  store::Store& store_;
  const Clock& clock_;
  const Options options_;
  const pki::Authority authority_;
  const std::unique_ptr<pki::TokenSigner> signer_;
  const std::string admin_token_;
  const access::User admin_;
  std::unique_ptr<access::Authenticator> authenticator_;

  mutable std::atomic<bool> is_stale_ = true;  // an RBAC object was written since rules_ was made
  mutable std::mutex mutex_;                   // guards the two below
  mutable std::shared_ptr<const access::Rules> rules_;
  mutable std::vector<std::unique_ptr<store::Watch>> watches_;
};

}  // namespace hearth::apiserver
