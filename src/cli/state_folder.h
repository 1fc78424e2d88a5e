// The folder of an engine, made ready for it; and the lock that keeps a second one out.
//
//   DIR/                 root's, and the engine may pass through; the engine's own without root
//   DIR/engine.lock      held for life by the engine; tells its pid
//   DIR/endpoints.json, DIR/admin.kubeconfig, DIR/admin.token, DIR/e2b.key   links into engine/
//   DIR/engine/          the engine's files, closed to everyone else
//   DIR/runtime.sock, DIR/runtime/   the runtime's
#pragma once

#include <optional>
#include <string>

#include "cli/engine_user.h"
#include "linux/fd.h"

namespace hearth::cli {

// Makes DIR if it is missing, and touches nothing that an engine might be using. Throws
// Error(conflict) for a folder that is in use for something else (it would be closed to whoever
// uses it), Error(forbidden) for one that is another user's.
void make_state_folder(const std::string& state_dir);

// Held until the descriptor is closed. Throws Error(conflict) that names the pid of the engine that
// has it.
linux::Fd lock_state_folder(const std::string& state_dir);

// Sets owner and mode of DIR, makes the engine's folder and the links, removes what an engine that
// was killed left behind. Only under the lock. Throws Error(conflict) for an engine's folder with
// files of another user: the engine could not use them.
void claim_state_folder(const std::string& state_dir, EngineUser user);

// Whose the engine's folder in DIR is; nothing where there is none yet.
std::optional<EngineUser> find_engine_owner(const std::string& state_dir);

}  // namespace hearth::cli
