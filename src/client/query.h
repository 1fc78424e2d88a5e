// The wire's side of client.h, which both implementations share: queries, bodies, events.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "client/client.h"

namespace hearth::client {

std::string query_of(const ListOptions& options);
std::string query_of(const WriteOptions& options);
std::string query_of(const PatchOptions& options, PatchKind kind);
std::string query_of(const WatchOptions& options);
std::string_view content_type_of(PatchKind kind);
Json body_of(const DeleteOptions& options);

// A list as the server sent it. Items of built-in kinds come without type: they get it back.
List list_from_json(const Json& json, const ResourceId& resource);

// ADDED, MODIFIED, DELETED, BOOKMARK. Throws Error(invalid) for others.
EventKind event_kind(std::string_view type);
// One line of a watch. Nothing for the error that says "expired"; other errors are thrown as
// StatusError, and lines that are no event as Error(invalid).
std::optional<Event> parse_event(std::string_view line);

}  // namespace hearth::client
