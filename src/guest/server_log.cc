// The server's logs: what detached commands write, and who reads it.
#include <sys/epoll.h>
#include <unistd.h>

#include <array>

#include "base/error.h"
#include "guest/server_internal.h"

namespace hearth::guest {

// True while there may be more to read right now.
bool Server::read_output(std::uint64_t id) {
  const auto found = outputs_.find(id);
  if (found == outputs_.end()) return false;
  std::array<char, kLogPiece> buffer{};
  const ssize_t got = ::read(found->second.get(), buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  if (got == 0) {
    unwatch(found->second.get());
    outputs_.erase(found);
    return false;
  }
  log_.append({buffer.data(), static_cast<std::size_t>(got)});
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
  client.follow_log = request.follow;
  client.log_position = 0;
  // What has been written is to be seen, even if its turn in the loop has not come.
  std::vector<std::uint64_t> outputs;
  for (const auto& [id, output] : outputs_) outputs.push_back(id);
  for (const std::uint64_t id : outputs) {
    // A command that writes faster than we read must not keep us here.
    for (std::size_t i = 0; i < kLogBytes / kLogPiece && read_output(id); ++i) {
    }
  }
  pump_log(client);
}

void Server::pump_log(Client& client) {
  if (!client.reading_log) return;
  while (true) {
    std::uint64_t position = client.log_position;
    const std::string piece = log_.read(position, kLogPiece);
    if (piece.empty()) break;
    if (!client.channel.try_send(encode(Reply(Output{.bytes = piece})))) {
      // Go on when there is room; what is forgotten meanwhile is forgotten.
      return watch(client.channel.fd(), tag_of(Tag::client, client.id), EPOLLIN | EPOLLOUT, true);
    }
    client.log_position = position;
  }
  watch(client.channel.fd(), tag_of(Tag::client, client.id), EPOLLIN, /*modify=*/true);
  if (client.follow_log) return;
  client.reading_log = false;
  reply(client, Exited{});
}

}  // namespace hearth::guest
