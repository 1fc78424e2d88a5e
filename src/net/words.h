// The words of HTTP (room http) that this room's interfaces speak.
#pragma once

#include "http/body.h"
#include "http/head.h"
#include "http/http.h"
#include "http/limits.h"
#include "http/render.h"
#include "http/target.h"

namespace hearth::net {

using http::BodyDecoder;
using http::BodyKind;
using http::Field;
using http::Framing;
using http::Head;
using http::Headers;
using http::HeadScanner;
using http::Limits;
using http::Problem;
using http::Request;
using http::Response;
using http::Target;
using http::Timeouts;

using http::code_from_status;
using http::decode_path_segment;
using http::equal_constant_time;
using http::equal_ignoring_case;
using http::find_query_parameter;
using http::json_response;
using http::parse_number;
using http::parse_request_head;
using http::parse_response_head;
using http::parse_target;
using http::percent_decode;
using http::percent_encode;
using http::query_parameters;
using http::reason_phrase;
using http::render_head;
using http::render_json_problem;
using http::render_upgrade;
using http::status_from_code;
using http::text_response;

}  // namespace hearth::net
