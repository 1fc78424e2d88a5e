// How everything in a sandbox ends, and how some of it begins again.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "guest/server_internal.h"

namespace hearth::guest {
namespace {

using namespace std::chrono_literals;

// A command that fails at once is not started again at once: the pause doubles, up to a minute, and
// is short again after it ran for a while.
constexpr Duration kFirstPause = 100ms;
constexpr Duration kLongestPause = 60s;
constexpr Duration kLongRun = 10s;
// For the keeper of the log to write down the last words.
constexpr Duration kLeavePatience = 3s;

bool is_due(const ExecRequest& request, unsigned restarts, const linux::ExitStatus& status) {
  if (request.most_restarts != 0 && restarts >= request.most_restarts) return false;
  const bool failed = status.code != 0 || status.signal != 0;
  return request.restart == Restart::always || (request.restart == Restart::on_failure && failed);
}

}  // namespace

void Server::begin_stop(Client& client, const StopRequest& request) {
  // Below, "everybody" is everybody in our pid namespace.
  if (::getpid() != 1) fail(Code::internal, "only PID 1 of a sandbox can end everything in it");
  if (stop_client_ != 0) fail(Code::conflict, "the sandbox is being stopped already");
  stop_everything(client.id, std::chrono::milliseconds(request.grace_milliseconds), request.leave);
  reap_children();
}

void Server::stop_everything(std::uint64_t client, Duration grace, bool leave) {
  stop_client_ = client;
  leaves_after_stop_ = leave;
  stop_deadline_ = AwakeDeadline::after(grace);
  waiting_.clear();
  // To everybody but us. Kills are left to the deadline, also one without any grace.
  if (grace > Duration::zero()) ::kill(-1, SIGTERM);
}

// Every orphan is our child: without children there is nobody.
void Server::finish_stop_if_empty() {
  if (stop_client_ == 0 || !pending_.empty()) return;
  siginfo_t ended{};
  if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD) return;
  const auto client = clients_.find(std::exchange(stop_client_, 0));
  stop_deadline_ = AwakeDeadline::never();
  if (leaves_after_stop_) leave_deadline_ = AwakeDeadline::after(kLeavePatience);
  if (client != clients_.end()) reply(*client->second, Exited{});
}

void Server::leave_when_kept() {
  if (!leave_deadline_.passed()) {
    drain_outputs({});
    feed_log_readers();
    if (held_back_ || (keeper_ != 0 && kept_until_ < log_.end())) return;
  }
  done_ = true;
}

void Server::read_file(Client& client, const FileRequest& request) {
  if (request.most > kMostFileBytes)
    fail(Code::invalid, "{} bytes of a file are too many", request.most);
  const linux::Fd file(::open(request.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) throw_errno("open '{}'", request.path);
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) throw_errno("look at '{}'", request.path);
  if (!S_ISREG(facts.st_mode)) fail(Code::invalid, "'{}' is no plain file", request.path);
  Output output;
  output.bytes.resize(request.most);
  const off_t from = std::max<off_t>(facts.st_size - request.most, 0);
  const ssize_t got = ::pread(file.get(), output.bytes.data(), output.bytes.size(), from);
  if (got < 0) throw_errno("read '{}'", request.path);
  output.bytes.resize(static_cast<std::size_t>(got));
  reply(client, output);
}

void Server::consider_restart(const Command& command, const linux::ExitStatus& status) {
  const std::shared_ptr<Lasting>& lasting = command.lasting;
  if (!lasting || command.timed_out || stop_client_ != 0) return;
  if (!is_due(lasting->request, lasting->restarts, status)) return;
  const bool ran_long = std::chrono::system_clock::now() - command.started > kLongRun;
  lasting->pause = lasting->pause == Duration{} || ran_long
                       ? kFirstPause
                       : std::min(lasting->pause * 2, kLongestPause);
  lasting->next_start = AwakeDeadline::after(lasting->pause);
  ++lasting->restarts;
  waiting_.push_back(lasting);
}

void Server::start_those_due() {
  const auto due = std::ranges::partition(
      waiting_, [](const auto& lasting) { return !lasting->next_start.passed(); });
  const std::vector<std::shared_ptr<Lasting>> now(due.begin(), due.end());
  waiting_.erase(due.begin(), due.end());
  for (const auto& lasting : now) {
    try {
      enqueue(plan_exec(lasting->request, {}), lasting);
    } catch (const Error& error) {
      log_.append(Stream::error, std::chrono::system_clock::now(),
                  fmt::format("hearth: '{}' could not be started again: {}\n",
                              lasting->request.command.front(), error.what()));
    }
  }
}

}  // namespace hearth::guest
