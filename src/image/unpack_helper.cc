#include "image/unpack_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

namespace hearth::image {
namespace {

constexpr std::uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

HelperBirth make_birth(const HelperRequest& request, int our_fd, int their_fd, int program_fd,
                       int null_fd) {
  static_assert(kJobChannelFd == 3 && kJobInputFd == 4 && kJobTargetFd == 5);
  return {.fds = {null_fd, null_fd, null_fd, their_fd, request.input_fd, request.target_fd},
          .boot_fd = their_fd,
          .parent_fd = our_fd,
          .program_fd = program_fd};
}

// What goes wrong before there is a program that could frame a message.
std::optional<BirthFailure> find_failure(int channel_fd) {
  char bytes[sizeof(BirthFailure)];
  const ssize_t size = ::recv(channel_fd, bytes, sizeof bytes, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  if (size != sizeof bytes) return std::nullopt;
  BirthFailure failure;
  std::memcpy(&failure, bytes, sizeof failure);
  return failure;
}

bool hung_up(int socket_fd) {
  pollfd caller{.fd = socket_fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&caller, 1, 0) > 0 && (caller.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// Until one of `helpers` without a report has something to say.
void wait_for_any(std::span<UnpackHelper* const> helpers, const std::vector<bool>& heard,
                  int caller_fd, Deadline deadline) {
  std::vector<pollfd> waiting;
  for (std::size_t i = 0; i < helpers.size(); ++i) {
    if (!heard[i]) waiting.push_back({.fd = helpers[i]->fd(), .events = POLLIN, .revents = 0});
  }
  // A negative number is left out by poll(2).
  waiting.push_back({.fd = caller_fd, .events = POLLRDHUP, .revents = 0});
  const int ready = ::poll(waiting.data(), waiting.size(), deadline.poll_milliseconds());
  if (ready < 0 && errno != EINTR) throw_errno("wait for the unpacker");
  if (ready == 0) fail(Code::timeout, "unpacking took too long");
  if (caller_fd >= 0 && hung_up(caller_fd))
    fail(Code::unavailable, "unpacking stopped: whoever asked for it is gone");
}

// A moment for those that have not spoken yet; they may just as well be waiting for something.
void linger(std::span<UnpackHelper* const> helpers, const std::vector<bool>& heard) {
  constexpr int kMilliseconds = 100;
  for (std::size_t i = 0; i < helpers.size(); ++i) {
    pollfd waiting{.fd = helpers[i]->fd(), .events = POLLIN, .revents = 0};
    if (!heard[i]) ::poll(&waiting, 1, kMilliseconds);
  }
}

bool has_word(const UnpackHelper& helper) {
  pollfd one{.fd = helper.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

std::optional<linux::ExitStatus> DoomedChild::end() noexcept {
  try {
    child_.pidfd().send_signal(SIGKILL);
    child_.pidfd().wait_for_end(Deadline::never());
    return child_.pidfd().reap();
  } catch (const Error&) {
    return std::nullopt;  // there is nothing left that could be done to it
  }
}

UnpackHelper::Materials UnpackHelper::gather_materials(const HelperRequest& request) {
  auto [ours, theirs] = linux::Channel::make_pair();
  return {.ours = std::move(ours),
          .theirs = std::move(theirs),
          .program = linux::open_file(request.program, O_RDONLY),
          .null = linux::open_file("/dev/null", O_RDWR)};
}

UnpackHelper::UnpackHelper(const HelperRequest& request, Materials materials)
    : channel_(std::move(materials.ours)),
      birth_(make_birth(request, channel_.fd(), materials.theirs.fd(), materials.program.get(),
                        materials.null.get())),
      child_(linux::clone_child(
          {.namespaces = kNamespaces, .run = &enter_helper, .argument = &birth_})) {
  linux::write_id_maps(child_.pid(), request.ids);
  if (::send(channel_.fd(), "g", 1, MSG_NOSIGNAL) != 1) throw_errno("let the unpacker begin");
  channel_.send(encode(*request.job));
}

UnpackHelper::UnpackHelper(const HelperRequest& request)
    : UnpackHelper(request, gather_materials(request)) {}

Report UnpackHelper::take_report() {
  if (const auto failure = find_failure(channel_.fd()))
    fail(Code::internal, "start the unpacker: {}", errno_text(failure->error));
  linux::Message message;
  if (channel_.try_receive(message) == linux::Channel::Arrival::message)
    return parse_report(message.bytes);
  const auto status = child_.end();
  if (status && status->signal != 0)
    fail(Code::internal, "the unpacker was killed by signal {}", status->signal);
  fail(Code::internal, "the unpacker ended without a word");
}

void await_reports(std::span<UnpackHelper* const> helpers, std::span<Report> reports, int caller_fd,
                   Deadline deadline) {
  std::vector<bool> heard(helpers.size(), false);
  // False when one of them failed.
  const auto hear_all = [&] {
    bool good = true;
    for (std::size_t i = 0; i < helpers.size(); ++i) {
      if (!heard[i] && has_word(*helpers[i])) {
        reports[i] = helpers[i]->take_report();
        heard[i] = true;
      }
      good = good && (!heard[i] || reports[i].done);
    }
    return good;
  };
  while (!std::ranges::all_of(heard, std::identity())) {
    wait_for_any(helpers, heard, caller_fd, deadline);
    if (hear_all()) continue;
    // Whoever made the other fail, by ending, may be heard only after it: the kernel closes the
    // descriptors of a killed process in no order to rely on.
    linger(helpers, heard);
    hear_all();
    return;
  }
}

}  // namespace hearth::image
