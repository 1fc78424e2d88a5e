// A request to the control plane, as far as it has come.
#pragma once

#include <cstddef>
#include <string_view>

#include "gateway/passage.h"
#include "gateway/target.h"
#include "http/body.h"
#include "http/head_view.h"
#include "http/http.h"

namespace hearth::gateway {

class Question {
 public:
  Question(const http::HeadView& head, const Target& target, std::string_view peer);

  // Takes the body out of what is ready there. How many bytes that were.
  std::size_t take_body(Passage& from);
  std::size_t body_bytes() const { return request_.body.size(); }
  bool is_whole() const { return body_.is_done(); }
  // Whether the client waits for a 100 before it sends the body. True once.
  bool owes_continue();

  // Once, when it is whole.
  http::Request take() { return std::move(request_); }

 private:
  http::Request request_;
  http::BodyDecoder body_;
  bool owes_continue_ = false;
};

// The whole answer. Throws Error for a field that would not be one field on the wire.
std::string render_answer(const http::Response& response, bool is_head, bool says_close);

}  // namespace hearth::gateway
