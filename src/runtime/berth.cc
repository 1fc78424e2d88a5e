#include "runtime/berth.h"

#include <utility>

#include "base/error.h"
#include "linux/namespaces.h"

namespace hearth::runtime {

Berth::Berth(std::string name, const std::string& unit, pid_t pid)
    : name_(std::move(name)),
      namespaces_{.net = linux::open_namespace(pid, "net"),
                  .ipc = linux::open_namespace(pid, "ipc"),
                  .uts = linux::open_namespace(pid, "uts")} {
  shared_.units.insert(unit);
}

void Berth::join(const std::string& unit) {
  const std::lock_guard lock(mutex_);
  if (shared_.units.empty()) fail(Code::not_found, "the sandbox to be joined is gone");
  shared_.units.insert(unit);
}

linux::Fd Berth::leave(const std::string& unit) {
  {
    const std::lock_guard lock(mutex_);
    shared_.units.erase(unit);
    if (!shared_.units.empty()) return {};
  }
  // Whoever has an order in there has joined.
  const std::lock_guard birth(birth_mutex_);
  nursery_.reset();
  return std::move(std::exchange(namespaces_, {}).net);
}

linux::Forked Berth::order(const Nurseries& nurseries, const guest::ShellOrder& order,
                           std::span<const int> fds) {
  const std::lock_guard lock(birth_mutex_);
  if (!nursery_) nursery_ = nurseries.start_in(namespaces_);
  return nursery_->order(order, fds);
}

}  // namespace hearth::runtime
