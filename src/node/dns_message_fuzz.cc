// Questions as sandboxes may send them: what is understood can be answered. Answers as a resolver
// may give them: what is read of them is there.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "node/dns_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth::node::dns;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  if (size >= 2) {
    // A question that any answer is one to, if its own says the same.
    std::string asked(message.substr(0, 12));
    asked.resize(12);
    asked[2] = '\x01';
    asked[6] = asked[7] = '\0';
    if (message.size() > 12) asked += message.substr(12);
    if (const auto own = parse_question(asked))
      if (const auto addresses = parse_addresses(message, *own); addresses)
        if (addresses->size() * 15 > size) std::abort();
  }
  const auto question = parse_question(message);
  if (!question) return 0;
  const std::string answer = make_answer(*question, Outcome::ok, {});
  if (question->name.size() > 640 || answer.size() != 12 + question->raw.size()) std::abort();
  return 0;
}
