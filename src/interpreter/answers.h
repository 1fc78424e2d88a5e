// The interpreter's dialect of HTTP: errors are plain text, pages of any origin may ask.
#pragma once

#include <string>

#include "http/http.h"

namespace hearth::interpreter {

http::Response events_response();
http::Response json_answer(std::string json);
http::Response text_answer(unsigned status, std::string text);
// To the question that browsers ask before the real one.
http::Response preflight_answer();

}  // namespace hearth::interpreter
