// The store's nouns. Objects and changes are made once and shared by everyone who looks.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "store/tags.h"

namespace hearth::store {

// One counter for the whole store: every write that is kept takes the next.
using Revision = std::uint64_t;

// Of a store that nobody wrote to. Not 0, because clients take a resourceVersion of "0" for "any".
inline constexpr Revision kFirstRevision = 1;

struct Key {
  std::string resource;  // "pods", "sandboxes.agents.x-k8s.io"
  std::string ns;        // empty: of the whole cluster
  std::string name;

  auto operator<=>(const Key&) const = default;
};

// What an object's writer made of it besides the text, for readers in this process. The store
// carries it along and never looks inside.
class Companion {
 public:
  Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  virtual ~Companion() = default;

  // Called once, before anyone else sees the object. Must not throw.
  virtual void settle(Revision revision) noexcept = 0;
};

struct Object {
  Key key;
  Revision revision = 0;  // of the write that made this state
  Revision created = 0;   // of the write that made the object
  std::string text;
  Tags tags;
  std::weak_ptr<const Companion> companion = {};  // for as long as someone else holds it
};
using ObjectPtr = std::shared_ptr<const Object>;

// On disk as a number: do not renumber.
enum class ChangeKind : unsigned char { added = 1, modified = 2, deleted = 3 };

struct Change {
  ChangeKind kind = ChangeKind::added;
  Revision revision = 0;
  ObjectPtr
      object;  // deleted: the last state as its writer put it, with the revision of the delete
  ObjectPtr previous;          // added: null
  bool news_can_wait = false;  // as its writer said
};
using ChangePtr = std::shared_ptr<const Change>;

}  // namespace hearth::store
