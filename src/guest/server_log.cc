// The server's logs: what detached commands write, and who reads it.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "guest/server_internal.h"

namespace hearth::guest {

// Whether the next piece would push out what the keeper has not written down.
bool Server::must_hold_back() const {
  return keeper_ != 0 && !log_.has_room(kept_until_, kLogPiece);
}

void Server::note_kept(std::uint64_t position) {
  if (position <= kept_until_) return;
  kept_until_ = std::min(position, log_.end());
  if (!held_back_) return;
  keeper_patience_ = AwakeDeadline::after(kKeeperPatience);
  if (!must_hold_back()) let_go();
}

// Off the watch altogether: the end of a pipe would be reported whatever we wait for.
void Server::hold_back() {
  if (held_back_) return;
  held_back_ = true;
  keeper_patience_ = AwakeDeadline::after(kKeeperPatience);
  for (const auto& [id, output] : outputs_) unwatch(output.fd.get());
}

void Server::let_go() {
  if (!held_back_) return;
  held_back_ = false;
  keeper_patience_ = AwakeDeadline::never();
  for (const auto& [id, output] : outputs_)
    watch(output.fd.get(), tag_of(Tag::output, id), EPOLLIN);
}

// True while there may be more to read right now.
bool Server::read_output(std::uint64_t id) {
  const auto found = outputs_.find(id);
  if (found == outputs_.end() || held_back_) return false;
  if (must_hold_back()) {
    hold_back();
    return false;
  }
  std::array<char, kLogPiece> buffer{};
  const OutputEnd& output = found->second;
  const ssize_t got = ::read(output.fd.get(), buffer.data(), buffer.size());
  // A terminal that nobody has open any more answers EIO.
  if (got < 0 && errno != EIO) return errno == EINTR;
  if (got <= 0) {
    unwatch(output.fd.get());
    outputs_.erase(found);
    return false;
  }
  log_.append(output.stream, std::chrono::system_clock::now(),
              {buffer.data(), static_cast<std::size_t>(got)}, output.source);
  return true;
}

void Server::feed_log_readers() {
  std::vector<std::uint64_t> readers;
  for (const auto& [id, client] : clients_) {
    if (client->reading_log) readers.push_back(id);
  }
  for (const std::uint64_t id : readers) {
    try {
      pump_log(*clients_.at(id));
    } catch (const Error&) {
      drop_client(id);
    }
  }
}

void Server::start_log(Client& client, const LogRequest& request) {
  client.reading_log = true;
  client.follow_log = request.follow || request.keep;
  client.log_position = request.from;
  if (request.keep) {
    if (keeper_ != 0) drop_client(keeper_);
    keeper_ = client.id;
    kept_until_ = std::min(request.from, log_.end());
  }
  drain_outputs({});
  pump_log(client);
}

// What has been written is to be seen, even if its turn in the loop has not come.
void Server::drain_outputs(std::optional<std::uint64_t> source) {
  std::vector<std::uint64_t> outputs;
  for (const auto& [id, output] : outputs_) {
    if (!source || output.source == *source) outputs.push_back(id);
  }
  for (const std::uint64_t id : outputs) {
    // A command that writes faster than we read must not keep us here.
    for (std::size_t i = 0; i < kLogBytes / kLogPiece && read_output(id); ++i) {
    }
  }
}

void Server::pump_log(Client& client) {
  if (!client.reading_log) return;
  const auto listen_for = [&](std::uint32_t events) {
    watch(client.channel.fd(), tag_of(Tag::client, client.id), events, /*modify=*/true);
  };
  while (const auto piece = log_.read(client.log_position, kLogPiece, client.log_source)) {
    // Go on when there is room; what is forgotten meanwhile is forgotten.
    if (!client.channel.try_send(encode(Reply(*piece)))) return listen_for(EPOLLIN | EPOLLOUT);
    client.log_position = piece->position + piece->bytes.size();
  }
  // Past what others wrote, for who wants one command's part only.
  client.log_position = std::max(client.log_position, log_.end());
  const bool is_over = client.attached_end ? client.drained : !client.follow_log;
  listen_for(is_over && !say_end_of_log(client) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// False while there is no room for it: unlike other replies it comes after as much as a client can
// be sent.
bool Server::say_end_of_log(Client& client) {
  if (!client.channel.try_send(encode(Reply(client.attached_end.value_or(Exited{}))))) return false;
  client.attached_end.reset();
  client.log_source.reset();
  client.drained = false;
  client.reading_log = false;
  client.follow_log = false;
  return true;
}

}  // namespace hearth::guest
