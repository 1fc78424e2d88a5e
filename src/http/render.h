// Heads as text.
#pragma once

#include <string>
#include <vector>

#include "http/http.h"

namespace hearth::http {

// The head of a message as text, with `framing` in place of whatever the headers say about it.
// Throws Error(internal) for a field that would not be one field on the wire.
std::string render_head(const Response& response, const std::vector<Field>& framing);
std::string render_head(const Request& request, const std::vector<Field>& framing);

// The head of a 101: the headers as they are.
std::string render_upgrade(const Response& response);

}  // namespace hearth::http
