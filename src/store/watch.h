// A place in the store's history from which one reader goes on.
//
// A watch has no queue: it is a cursor into the history that everyone shares. One that does not
// read costs nothing, and has expired when history has moved on past it.
//
//   auto watch = store.watch({.resource = "pods"}, list.revision, wake);
//   take() until it returns nothing; when wake() was called, again.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/object.h"

namespace hearth::store {

// Which changes. What is not given is any.
struct Scope {
  std::string resource;  // empty: all of them
  std::optional<std::string> ns;
  std::optional<std::string> name;

  bool holds(const Key& key) const {
    return (resource.empty() || resource == key.resource) && (!ns || *ns == key.ns) &&
           (!name || *name == key.name);
  }
};

struct Taken {
  std::vector<ChangePtr> changes;  // in order of revision
  bool expired = false;            // changes this watch has not seen are gone: list again
  Revision up_to = 0;              // everything up to here has been seen (a bookmark)
};

class State;

// One thread at a time. Must not outlive its store.
class Watch {
 public:
  Watch(State& state, Scope scope, Revision after, std::function<void()> wake);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  // When it returns, wake() is not running and will not be called. So wake() must not destroy it.
  ~Watch();

  // At most `most` changes. After it returned none, and only then, wake() is called once as soon as
  // there is one, or a moment later (Write::news_can_wait): from a thread that commits, so it must
  // not block, throw, or write to the store.
  Taken take(std::size_t most);

 private:
  friend class State;

  State& state_;
  const Scope scope_;
  const std::function<void()> wake_;
  // Both belong to state_, under its lock.
  Revision seen_;         // up to here
  bool waiting_ = false;  // take() returned none, and there was nothing for it since
  bool is_owed_ = false;  // there was, and it has not been told
};

}  // namespace hearth::store
