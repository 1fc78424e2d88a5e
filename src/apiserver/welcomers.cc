#include "apiserver/welcomers.h"

#include <utility>

namespace hearth::apiserver {

struct Welcomers::Host {
  client::Welcomer welcomer;
  unsigned guests = 0;  // who ask him now
};

Welcomers::Visit::Visit(Welcomers& all, const std::string& kind) : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  const auto found = all_.hosts_.find(kind);
  if (found == all_.hosts_.end()) return;
  host_ = found->second;
  ++host_->guests;
}

Welcomers::Visit::~Visit() {
  if (!host_) return;
  const std::lock_guard lock(all_.mutex_);
  if (--host_->guests == 0) all_.left_.notify_all();
}

std::optional<client::Welcome> Welcomers::Visit::ask(const client::Json& object) const {
  return host_ ? host_->welcomer(object) : std::nullopt;
}

void Welcomers::set(const std::string& kind, client::Welcomer welcomer) {
  std::shared_ptr<Host> host;
  if (welcomer) {
    host = std::make_shared<Host>();
    host->welcomer = std::move(welcomer);
  }
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Host> before = std::exchange(hosts_[kind], std::move(host));
  if (!hosts_[kind]) hosts_.erase(kind);
  if (before) left_.wait(lock, [&] { return before->guests == 0; });
}

}  // namespace hearth::apiserver
