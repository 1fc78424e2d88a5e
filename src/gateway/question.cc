#include "gateway/question.h"

#include <string>
#include <utility>
#include <vector>

#include "gateway/refusal.h"
#include "gateway/rewrite.h"
#include "http/render.h"

namespace hearth::gateway {
namespace {

bool has_no_body(unsigned status) {
  return status < 200 || status == 204 || status == 304;
}

}  // namespace

Question::Question(const http::HeadView& head, const Target& target, std::string_view peer)
    : request_(control_request(head, target)),
      body_(head.framing),
      owes_continue_(head.minor > 0 && head.find("Expect") != nullptr) {
  request_.peer = peer;
}

std::size_t Question::take_body(Passage& from) {
  std::size_t taken = 0;
  while (!body_.is_done()) {
    const auto step = body_.take(from.ready());
    if (step.used == 0) break;
    request_.body += step.body;
    from.sent(step.used);
    taken += step.used;
  }
  if (taken > 0) owes_continue_ = false;
  return taken;
}

bool Question::owes_continue() {
  return std::exchange(owes_continue_, false);
}

std::string render_answer(const http::Response& response, bool is_head, bool says_close) {
  std::vector<http::Field> framing;
  if (!has_no_body(response.status)) {
    const std::string* length = response.headers.find("Content-Length");
    const bool is_promise = is_head && response.body.empty() && length != nullptr;
    framing.push_back(
        {"Content-Length", is_promise ? *length : std::to_string(response.body.size())});
  }
  if (says_close) framing.push_back({"Connection", "close"});
  std::string text = http::render_head(response, framing);
  text.reserve(text.size() + kCorsFields.size() + response.body.size());
  text.insert(text.size() - std::string_view("\r\n").size(), kCorsFields);
  if (!is_head && !has_no_body(response.status)) text += response.body;
  return text;
}

}  // namespace hearth::gateway
