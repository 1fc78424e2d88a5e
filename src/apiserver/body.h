// Bodies and options of writes, out of a request.
#pragma once

#include "apiserver/front.h"

namespace hearth::apiserver {

// kube-apiserver's own limit.
inline constexpr std::uint64_t kMostBodyBytes = 3 << 20;

// The object in the body of a POST or PUT, in JSON, YAML or protobuf; its type checked against the
// path. In `storage` (model/scratch.h) if it is JSON. Throws StatusError 400, 415.
model::ParsedJson read_object(const Call& call, boost::json::storage_ptr storage = {});
// An object of another type than the path's (Scale, Eviction, reviews).
model::ParsedJson read_any(const Call& call, std::string_view api_version, std::string_view kind);

// fieldManager, dryRun, fieldValidation, force. `options_kind`: CreateOptions, UpdateOptions,
// PatchOptions, for messages.
WriteOptions read_write_options(const Call& call, std::string_view options_kind);
// From the body if there is one, else from the query.
DeleteOptions read_delete_options(const Call& call);

}  // namespace hearth::apiserver
