#include "base/error.h"
#include "remote/backend.h"

namespace hearth::remote {
namespace {

[[noreturn]] void throw_no_node(const Container& container) {
  fail(Code::unavailable, "no node runs the pod '{}'", container.pod);
}

}  // namespace

Command NoNode::start(const Container& container, const std::vector<std::string>& /*command*/,
                      const Streams& /*streams*/) {
  throw_no_node(container);
}

Command NoNode::attach(const Container& container, const Streams& /*streams*/) {
  throw_no_node(container);
}

linux::Fd NoNode::connect(const Container& container, std::uint16_t /*port*/) {
  throw_no_node(container);
}

std::unique_ptr<LogFeed> NoNode::open_log(const Container& container,
                                          const LogOptions& /*options*/) {
  throw_no_node(container);
}

}  // namespace hearth::remote
