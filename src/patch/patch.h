// The four ways to change an object without sending all of it.
//
// Pure functions on JSON. What they refuse is thrown as model::StatusError in the words of
// kube-apiserver.
#pragma once

#include "model/json.h"
#include "schema/schema.h"

namespace hearth::patch {

using model::Json;

// RFC 6902. Throws 400 for a patch that is none, 422 for one that does not fit or asks for too much
// work (then `target` is half done), 413 for too many operations.
void apply_json_patch(Json& target, const Json& operations);

// RFC 7386, of an object: anything else is thrown back with 400.
void apply_merge_patch(Json& target, const Json& patch);

// Kubernetes' strategic merge: lists of objects merge by the key that the schema names; with the
// directives $patch, $setElementOrder/F, $deleteFromPrimitiveList/F and $retainKeys. Throws 400 and
// 500 where kube-apiserver answers so; `target` is half done then.
void apply_strategic_patch(Json& target, const Json& patch, const schema::Schema& schema);

}  // namespace hearth::patch
