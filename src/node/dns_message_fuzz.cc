// Questions as sandboxes may send them: what is understood can be answered.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "node/dns_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth::node::dns;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  const auto question = parse_question(message);
  if (!question) return 0;
  const std::string answer = make_answer(*question, Outcome::ok, {});
  if (question->name.size() > 320 || answer.size() != 12 + question->raw.size()) std::abort();
  return 0;
}
