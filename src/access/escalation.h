// Nobody gives away what he does not have.
#pragma once

#include "access/rules.h"
#include "access/user.h"
#include "model/json.h"

namespace hearth::access {

// Before a Role, ClusterRole, RoleBinding or ClusterRoleBinding is written; other kinds pass. Kind
// and namespace must be in the object already.
// `old`: null for a new object. Throws StatusError: 403 if the user may not grant all that is in
// it (and has neither the verb `escalate` on roles nor `bind` on the role), 404 for a binding to a
// role that is not there.
void check_escalation(const User& user, const Json& object, const Json* old, const Rules& rules);

}  // namespace hearth::access
