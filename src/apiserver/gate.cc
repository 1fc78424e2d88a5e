#include "apiserver/gate.h"

#include <fcntl.h>

#include "access/escalation.h"
#include "access/kubeconfig.h"
#include "access/reviews.h"
#include "apiserver/kept.h"
#include "apiserver/object_meta.h"
#include "linux/fd.h"
#include "linux/files.h"
#include "model/read_json.h"

namespace hearth::apiserver {
namespace {

constexpr std::string_view kIssuer = "https://kubernetes.default.svc.cluster.local";
constexpr std::string_view kTokenFile = "admin.token";

constexpr std::string_view kRbacResources[] = {
    "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"};

// The token that was given, or the kept one, or a new one; kept for the next time.
std::string settle_admin_token(const std::string& state_dir, const std::string& given) {
  const linux::Fd folder = linux::open_file(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::string kept;
  try {
    kept = linux::read_file_at(folder.get(), std::string(kTokenFile));
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
  }
  while (kept.ends_with('\n')) kept.pop_back();
  const std::string token = !given.empty() ? given : !kept.empty() ? kept : pki::random_token();
  if (token != kept) linux::replace_file_at(folder.get(), std::string(kTokenFile), token + "\n");
  return token;
}

}  // namespace

Gate::Gate(store::Store& store, Options options, const Clock& clock)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      authority_(options_.state_dir + "/pki", clock.now()),
      signer_(pki::load_token_signer(options_.state_dir + "/pki", std::string(kIssuer))),
      admin_token_(settle_admin_token(options_.state_dir, options_.admin_token)),
      admin_{.name = "admin",
             .uid = {},
             .groups = {std::string(access::kMasters), std::string(access::kAuthenticated)},
             .extra = {}} {
  access::Authenticator::Options who;
  who.tokens.push_back({admin_token_, admin_});
  who.signer = signer_.get();
  who.directory.account = [this](const std::string& ns, const std::string& name) {
    return uid_of_kept("serviceaccounts", ns, name);
  };
  who.directory.pod = [this](const std::string& ns, const std::string& name) {
    return uid_of_kept("pods", ns, name);
  };
  authenticator_ = std::make_unique<access::Authenticator>(std::move(who), clock_);
}

std::optional<std::string> Gate::uid_of_kept(const std::string& resource, const std::string& ns,
                                             const std::string& name) const {
  const store::ObjectPtr object = store_.find({resource, ns, name});
  if (!object || object->tags.find(kEndingTag)) return std::nullopt;
  return std::string(object->tags.find(kUidTag).value_or(""));
}

std::shared_ptr<const access::Rules> Gate::rules() const {
  const std::lock_guard lock(mutex_);
  if (rules_ && !is_stale_) return rules_;
  is_stale_ = false;
  if (watches_.empty())
    for (const std::string_view resource : kRbacResources)
      watches_.push_back(store_.watch({.resource = std::string(resource), .ns = {}, .name = {}},
                                      store_.revision(), [this] { is_stale_ = true; }));
  // A watch rings once after it was found empty.
  for (const auto& watch : watches_)
    for (store::Taken taken = watch->take(1024); !taken.changes.empty() && !taken.expired;
         taken = watch->take(1024)) {
    }
  std::vector<Json> objects;
  for (const std::string_view resource : kRbacResources) {
    store::ListQuery query;
    query.resource = resource;
    for (const store::ObjectPtr& object : store_.list(query).objects)
      objects.push_back(model::read_json(object->text));
  }
  rules_ = std::make_shared<const access::Rules>(access::sort_by_kind(objects));
  return rules_;
}

access::User Gate::identify(const http::Request& request) const {
  const access::User user = authenticator_->authenticate(request);
  return access::impersonate(user, request.headers, *rules());
}

void Gate::require(const access::User& user, access::Attributes wanted) const {
  if (user.is_in(access::kMasters)) return;
  wanted.user = user;
  const access::Decision decision = rules()->decide(wanted);
  if (!decision.allowed) access::throw_denied(wanted, decision);
}

void Gate::check_grant(const access::User& user, const Json& object, const Json* old) const {
  if (user.is_in(access::kMasters)) return;
  access::check_escalation(user, object, old, *rules());
}

Json Gate::review(const access::User& user, const Resource& resource, const std::string& ns,
                  const Json& question) const {
  if (resource.kind == "SelfSubjectAccessReview")
    return access::review_self_access(question, user, *rules());
  if (resource.kind == "SubjectAccessReview") return access::review_access(question, *rules());
  if (resource.kind == "LocalSubjectAccessReview")
    return access::review_local_access(question, ns, *rules());
  if (resource.kind == "SelfSubjectRulesReview")
    return access::review_self_rules(question, user, *rules());
  if (resource.kind == "SelfSubjectReview") return access::review_self(user, clock_.now());
  if (resource.kind == "TokenReview") return access::review_token(question, *authenticator_);
  model::throw_method_not_allowed();
}

Json Gate::issue_token(const Json& account, const Json& request) const {
  access::TokenDesk desk;
  desk.signer = signer_.get();
  desk.audiences = authenticator_->audiences();
  desk.ns = namespace_of(account);
  desk.account = {std::string(name_of(account)), std::string(uid_of(account))};
  desk.find_pod = [&](const std::string& name) -> std::optional<access::BoundPod> {
    const store::ObjectPtr kept = store_.find({"pods", desk.ns, name});
    if (!kept) return std::nullopt;
    const Json pod = model::read_json(kept->text);
    const std::string node(model::text_at(pod, {"spec", "nodeName"}));
    return access::BoundPod{
        .uid = std::string(uid_of(pod)),
        .account = std::string(model::text_at(pod, {"spec", "serviceAccountName"})),
        .node = node,
        .node_uid = node.empty() ? "" : uid_of_kept("nodes", "", node).value_or("")};
  };
  return access::issue_token(request, desk, clock_.now());
}

net::TlsServerOptions Gate::tls() const {
  const pki::Identity identity = authority_.server(options_.names, clock_.now());
  net::TlsServerOptions tls;
  tls.certificate.text = identity.certificate;
  tls.key.text = identity.key;
  tls.client_ca.text = authority_.certificate();
  return tls;
}

std::string Gate::write_kubeconfig(const std::string& url) const {
  const std::string path = options_.state_dir + "/admin.kubeconfig";
  access::Kubeconfig config;
  config.server = url;
  config.authority = authority_.certificate();
  config.token = admin_token_;
  access::write_kubeconfig(path, config);
  return path;
}

}  // namespace hearth::apiserver
