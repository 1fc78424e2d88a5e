// What the files behind objects.h share.
#pragma once

#include "apiserver/kept.h"
#include "apiserver/objects.h"
#include "model/touched.h"
#include "patch/managed_fields.h"

namespace hearth::apiserver {

// What is odd about a body, for fieldValidation.
struct BodyProblems {
  std::vector<std::string> duplicates;
  std::vector<std::string> unknown;

  bool empty() const { return duplicates.empty() && unknown.empty(); }
};

// One write on its way.
struct Objects::Change {
  const Resource& resource;
  const WriteOptions& options;
  std::string subresource;
  std::string name;
  BodyProblems problems;
  std::vector<std::string> warnings;
  const Json* patch = nullptr;           // of a patch, for messages
  model::Touched touched;                // what may differ from what is there
  std::optional<patch::Owners> applied;  // by an apply, which settles who owns what
  bool is_put = false;                   // a PUT must say which revision it replaces
  bool revision_is_copied = false;  // resourceVersion came from the object, not from the client
  boost::json::storage_ptr storage = {};  // where the new object is made (model/scratch.h)

  void refuse_or_warn();
};

store::Key key_of(const Place& place);

// Throws 400 for an object that is not the one of this place by its name or namespace.
void check_place(const Place& place, const Json& object);

// Throws where `next`, which is to be written over `old`, is another object: of another name,
// namespace, uid or kind, or one whose end somebody else decided. Fills in a kind that is missing.
void check_identity(const Place& place, std::string_view subresource, bool is_put, const Json& old,
                    Json& next);

// What the store says. A disk without room is thrown as a 500, as kube-apiserver does when its
// store is full: nobody should try again in a second, as after a 429.
store::Outcome write_to(store::Store& store, store::Write write);
// The same for what it threw, within the handler.
[[noreturn]] void rethrow_from_store(const Error& error);

}  // namespace hearth::apiserver
