// Who may do what: role-based access control over Role, ClusterRole and their bindings.
//
// Rules is a snapshot that never changes, thread-safe; the server makes another when one of the
// objects changes. It is indexed by subject and namespace: a question costs what is granted to the
// one who asks, not what there is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "access/user.h"
#include "model/json.h"

namespace hearth::access {

inline constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

// What somebody wants to do.
struct Attributes {
  User user;
  std::string verb;
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;
  // Empty: at the cluster scope. For a request about one Namespace it is that namespace.
  std::string ns;
  std::string name;
  std::string path;  // of what is no resource: "/healthz"
  bool is_resource = true;
};

struct Decision {
  bool allowed = false;
  std::string reason;  // may be empty
};

// 403 in the words that clients know.
[[noreturn]] void throw_denied(const Attributes& attributes, const Decision& decision);

struct Rule {
  std::vector<std::string> verbs;
  std::vector<std::string> groups;
  std::vector<std::string> resources;  // "pods", "pods/log", "*/scale", "*"
  std::vector<std::string> names;      // empty: all
  std::vector<std::string> urls;       // "/healthz", "/apis/*"

  bool allows(const Attributes& attributes) const;
  bool operator==(const Rule&) const = default;
};

// The `rules` of a role; what is no text is left out.
std::vector<Rule> parse_rules(const Json& role);
Json to_json(const Rule& rule);
bool has_word(const std::vector<std::string>& words, std::string_view word);
// Whether a path is under one of a rule's URLs, in which a '*' at the end stands for anything.
bool covers_url(std::string_view pattern, std::string_view path);

// Borrowed; needed only while Rules is made.
struct RbacObjects {
  std::vector<const Json*> roles;
  std::vector<const Json*> cluster_roles;
  std::vector<const Json*> role_bindings;
  std::vector<const Json*> cluster_role_bindings;
};
// By their `kind`; other objects are left out.
RbacObjects sort_by_kind(const std::vector<Json>& objects);

class Rules {
 public:
  Rules() = default;  // system:masters may do everything, others nothing
  explicit Rules(const RbacObjects& objects);

  Decision decide(const Attributes& attributes) const;

  // All that is granted to a user: at the cluster scope, and in `ns` if it is not empty.
  std::vector<const Rule*> of(const User& user, std::string_view ns) const;

  // What a role comes to, aggregation included; null if there is none. `ns` empty: a ClusterRole.
  const std::vector<Rule>* find_role(std::string_view ns, std::string_view name) const;

 private:
  using RuleList = std::shared_ptr<const std::vector<Rule>>;
  struct Grant {
    RuleList rules;      // null: the role is missing
    std::string source;  // for people: which binding, of which role
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>()(key);
    }
  };
  template <typename T>
  using Map = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  void add_roles(const RbacObjects& objects);
  void add_binding(const Json& binding, std::string_view ns);
  template <typename Visitor>
  bool visit(const User& user, std::string_view ns, const Visitor& visitor) const;

  Map<RuleList> roles_;              // by namespace and name
  Map<std::vector<Grant>> granted_;  // by subject and namespace
};

}  // namespace hearth::access
