// Objects with the rules of the Kubernetes API: what a POST, PUT, PATCH or DELETE means.
//
// Between the dialect (paths, headers, tables: front.h) and the store. Everything that a rule
// refuses is thrown as model::StatusError. Thread-safe; writes block until they are kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/catalogue.h"
#include "apiserver/kept.h"
#include "apiserver/welcomers.h"
#include "base/clock.h"
#include "model/json.h"
#include "store/store.h"

namespace hearth::apiserver {

// The fieldManager of what this process writes itself.
inline constexpr char kOwnManager[] = "hearth";

enum class FieldValidation { ignore, warn, strict };
enum class PatchKind { json, merge, strategic, apply };

struct WriteOptions {
  std::string manager;  // fieldManager
  bool dry_run = false;
  FieldValidation validation = FieldValidation::warn;
  bool force = false;  // of an apply
  // Throws where who writes may not make this of `old` (null: nothing yet). Not asked if empty.
  std::function<void(const Json& object, const Json* old)> approve = {};
  // The kind's own, unless what is written can be made again any time.
  std::optional<store::Durability> durability = {};
  // The engine made it, of an object and of words that were checked: no rule is asked again.
  bool is_checked = false;
  // Whoever waits for it knows already (store.h).
  bool news_can_wait = false;
  // Takes what would be kept, which then is not.
  std::optional<store::Write>* staged = nullptr;
};

// What an answer to a write consists of.
struct Written {
  store::ObjectPtr object;  // as it is kept
  std::string text;         // or, of what is not kept, in the version that was asked for
  bool created = false;
  std::vector<std::string> warnings;
};

struct DeleteOptions {
  std::optional<std::string> uid, resource_version;  // preconditions
  std::optional<std::int64_t> grace_seconds;
  std::string propagation;  // Foreground, Background, Orphan or "": the kind's default
  bool dry_run = false;
};

struct Deleted {
  bool gone = false;  // false: it is on its way, waiting for finalizers or grace
  std::string uid;
  std::string text;  // the object as it is now, or was
};

// Which object, or which collection.
struct Place {
  const Resource& resource;
  std::string ns;
  std::string name;
};

class Objects {
 public:
  // All must outlive it. `catalogue` answers with what is served now.
  Objects(store::Store& store, const Clock& clock, std::function<CataloguePtr()> catalogue)
      : store_(store), clock_(clock), catalogue_(std::move(catalogue)) {}

  // Throws 404.
  store::ObjectPtr get(const Place& place) const;

  Written create(const Place& place, model::ParsedJson body, const WriteOptions& options);
  // `subresource`: "", "status" or "finalize".
  Written update(const Place& place, const model::ParsedJson& body, std::string_view subresource,
                 const WriteOptions& options);
  // `duplicates`: members that stood in it twice.
  Written patch(const Place& place, PatchKind kind, const Json& patch, std::string_view subresource,
                const WriteOptions& options, const std::vector<std::string>& duplicates = {});
  Deleted remove(const Place& place, const DeleteOptions& options);

  // The scale subresource, as autoscaling/v1 Scale.
  Json scale(const Place& place) const;
  Json set_scale(const Place& place, const std::function<void(Json& scale)>& change,
                 const WriteOptions& options);

  // Changes an object as a part of the server would: no manager, no validation, retried until it
  // holds. `change` returns false to leave the object alone. Nothing happens if it is gone.
  void amend(const Place& place, const std::function<bool(Json& object)>& change);

  // Frees what is kept of writes that are some time ago: for somebody for whom nobody waits.
  void let_go_of_old_trees() { recent_trees_.let_go_of_old(std::chrono::steady_clock::now()); }

  // Who is asked about new objects of a kind (welcomers.h).
  void set_welcomer(const model::GroupResource& kind, client::Welcomer welcomer);

 private:
  struct Change;
  using Edit = std::function<Json(const Seen& old, Change& change)>;

  void check_namespace(const Place& place) const;
  Written edit(const Place& place, std::string_view subresource, const WriteOptions& options,
               const Edit& make);
  Written make(const Place& place, model::ParsedJson body, const WriteOptions& options,
               std::optional<patch::Owners> applied);
  Written apply(const Place& place, const Json& configuration, std::string_view subresource,
                const WriteOptions& options);
  void check(Json& object, const Json* old, Change& change) const;
  patch::Owners own(const Seen& seen, const Json& next, const Json* sent, Change& change) const;
  void allocate_cluster_ip(Json& service) const;
  store::Write make_write(const Resource& resource, Json object, patch::Owners owners,
                          store::Revision expected);
  std::optional<store::Write> stage_patch(const Place& place, const Json& patch);
  std::optional<store::ObjectPtr> make_welcomed(const Place& place, const Json& object,
                                                const patch::Owners& owners,
                                                const WriteOptions& options);
  // Nothing: somebody else was faster.
  std::optional<Written> keep(const Place& place, Json object, patch::Owners owners,
                              const store::Object& old, Change& change);

  store::Store& store_;
  const Clock& clock_;
  std::function<CataloguePtr()> catalogue_;
  RecentTrees recent_trees_;
  Welcomers welcomers_;  // by "PLURAL.GROUP"
};

}  // namespace hearth::apiserver
