// Pausing and going on.
//
//   with memory: annotation hearth.dev/pause ── the node freezes it ── condition Paused
//   files only:  image of its files ── operatingMode Suspended, that image in the pod template
//
// A paused sandbox has no end; `hearth.dev/end-at` says since when. Whoever calls these has the
// sandbox's turn (Core::turns). What fails is taken back: a sandbox never loses its state to a
// resume that did not work. All block, and throw Error and Refusal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "e2b/core.h"

namespace hearth::e2b {

enum class Keeps { memory, files };

// Of one that runs. With `version`, StatusError with 409 where it has changed since, and it is left
// as it is.
void pause(Core& core, const Json& sandbox, Keeps keeps, std::string_view version = {});
// Of one that is paused; it ends `seconds` from now. With Keeps::files it begins anew from its
// files, even if its memory was kept. Returns the sandbox, usable.
Json resume(Core& core, const Json& sandbox, std::int64_t seconds, Keeps keeps);

// For the gateway; takes the turn itself. See Api::wake.
void wake(Core& core, const model::Key& key);

// The images that pausing made.
std::vector<std::string> images_of(const Json& sandbox);

}  // namespace hearth::e2b
