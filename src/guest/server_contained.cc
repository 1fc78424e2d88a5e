// The server in a container that somebody else made: its command, and the signals that are for it.
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "guest/command_line.h"
#include "guest/server_internal.h"

namespace hearth::guest {
namespace {

using namespace std::chrono_literals;

// Who asks for the end where no client does. No client has this id.
constexpr std::uint64_t kNobody = ~std::uint64_t{0};
// What runs inside is given less time than kubelets give to a pod, unless they are told otherwise.
constexpr Duration kStopGrace = 20s;

}  // namespace

void Server::start_command(ContainerCommand command) {
  command.request.detached = true;  // no client waits for it
  PendingSpawn pending;
  const Settings settings = core_.settings();
  pending.plan = plan_command(command.request, {.environment = settings.environment,
                                                .user = settings.user,
                                                .directory = settings.directory,
                                                .limits = options_.limits,
                                                .rights = options_.rights});
  if (command.terminal) pending.plan.terminal = STDIN_FILENO;
  pending.stdio = std::move(command.stdio);
  pending.detached = true;
  pending.main = true;
  main_ = std::make_unique<MainCommand>();
  ends_with_main_ = true;
  enqueue(std::move(pending), nullptr);
}

void Server::pass_on(int signal) {
  if (ends_with_main_) {
    if (!main_ || main_->end) return;
    if (main_->pid != 0)
      ::kill(main_->pid, signal);
    else
      early_signals_.push_back(signal);
    return;
  }
  if (stop_client_ != 0) return;
  // Elsewhere "everybody" would be more than ours.
  if (::getpid() == 1)
    stop_everything(kNobody, kStopGrace, /*leave=*/true);
  else
    done_ = true;
}

}  // namespace hearth::guest
