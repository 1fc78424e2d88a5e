// What a new object is given as it is made, where server and controller are one process: so nobody
// waits until the controller has heard of it.
//
// The server asks once everything speaks for the object: it has its name and uid, and is not kept
// yet. Whoever is asked may give it a status and change one other object for it. Both are kept or
// neither; if neither, the object is made without, and the controller hears of it as ever.
#pragma once

#include <functional>
#include <optional>

#include "client/client.h"
#include "model/meta.h"

namespace hearth::client {

struct Welcome {
  Json status;      // of the new object
  ResourceId kind;  // of the other
  model::Key key;
  Json patch;  // a merge patch of the other, with the resourceVersion that it is meant for
  // Called at most once, when both are kept, with both. What it holds is let go of otherwise.
  std::function<void(const Object& made, const Object& other)> kept;
};

// Nothing: there is nothing for it. Called on any thread; must not block, nor ask the server.
using Welcomer = std::function<std::optional<Welcome>(const Json& object)>;

}  // namespace hearth::client
