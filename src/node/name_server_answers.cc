// What is answered, by whom, and when.
#include <array>

#include "node/name_server_internal.h"

namespace hearth::node {
namespace {

constexpr std::size_t kMostPassedOn = 512;  // and not answered yet

}  // namespace

std::optional<std::string> NameServer::State::answer(std::string_view message,
                                                     const sockaddr_in& client,
                                                     std::uint64_t stream) {
  const auto question = dns::parse_question(message);
  if (!question) return std::nullopt;
  const bool is_ours =
      question->name == options_.domain || question->name.ends_with("." + options_.domain);
  if (!is_ours) {
    const NameRuling ruling = options_.judge
                                  ? options_.judge(ntohl(client.sin_addr.s_addr), question->name)
                                  : NameRuling::free;
    // As one that is not there: programs then say so at once, instead of trying again.
    if (ruling == NameRuling::refused)
      return dns::make_answer(*question, dns::Outcome::no_such_name, {});
    const Asker asker{.client = client,
                      .stream = stream,
                      .is_named = ruling == NameRuling::named,
                      .question = *question};
    if (stream != 0 ? ask_for(message, asker) : pass_on(message, asker)) return std::nullopt;
    return dns::make_answer(*question, dns::Outcome::failed, {});
  }
  return names.with([&](const Names& known) {
    const auto found = known.find(question->name);
    if (found == known.end() || question->qclass != dns::kClassIn)
      return dns::make_answer(*question, dns::Outcome::no_such_name, {});
    if (question->type != dns::kTypeA) return dns::make_answer(*question, dns::Outcome::ok, {});
    return dns::make_answer(*question, dns::Outcome::ok, found->second);
  });
}

bool NameServer::State::pass_on(std::string_view message, const Asker& asker) {
  if (options_.upstream == 0 || passed_.size() >= kMostPassedOn) return false;
  std::uint16_t id = 0;
  do {
    id = static_cast<std::uint16_t>(random_());
  } while (passed_.contains(id));
  std::string out(message);
  out[0] = static_cast<char>(id >> 8);
  out[1] = static_cast<char>(id & 0xff);
  if (::sendto(upstream_.get(), out.data(), out.size(), 0,
               reinterpret_cast<const sockaddr*>(&resolver_), sizeof resolver_) < 0)
    return false;
  passed_[id] = {.asker = asker, .until = std::chrono::steady_clock::now() + kNamePatience};
  return true;
}

void NameServer::State::take_answers() {
  std::array<char, 65536> buffer;
  for (int round = 0; round < 64; ++round) {
    sockaddr_in sender{};
    socklen_t size = sizeof sender;
    const ssize_t got = ::recvfrom(upstream_.get(), buffer.data(), buffer.size(), 0,
                                   reinterpret_cast<sockaddr*>(&sender), &size);
    if (got < 0) return;
    if (got < 12 || sender.sin_addr.s_addr != resolver_.sin_addr.s_addr ||
        sender.sin_port != resolver_.sin_port)
      continue;
    const auto id = static_cast<std::uint16_t>(static_cast<std::uint8_t>(buffer[0]) << 8 |
                                               static_cast<std::uint8_t>(buffer[1]));
    const auto found = passed_.find(id);
    if (found == passed_.end()) continue;
    const Passed passed = found->second;
    passed_.erase(found);
    buffer[0] = static_cast<char>(passed.asker.question.id >> 8);
    buffer[1] = static_cast<char>(passed.asker.question.id & 0xff);
    give(passed.asker, {buffer.data(), static_cast<std::size_t>(got)});
  }
}

void NameServer::State::give(const Asker& asker, std::string_view answer) {
  if (!asker.is_named) return say(asker.client, asker.stream, answer);
  auto addresses = dns::parse_addresses(answer, asker.question);
  // Nothing that we cannot read, or it might hear an address that it is not let through to.
  if (!addresses)
    return say(asker.client, asker.stream,
               dns::make_answer(asker.question, dns::Outcome::failed, {}));
  std::erase_if(*addresses, [this](std::uint32_t address) { return !is_outside(address); });
  if (addresses->empty()) return say(asker.client, asker.stream, answer);
  hold_back(asker, answer, std::move(*addresses));
}

void NameServer::State::hold_back(const Asker& asker, std::string_view answer,
                                  std::vector<std::uint32_t> addresses) {
  std::string refusal = dns::make_answer(asker.question, dns::Outcome::failed, {});
  Admissions::Answer held{.client = ntohl(asker.client.sin_addr.s_addr),
                          .port = ntohs(asker.client.sin_port),
                          .stream = asker.stream,
                          .name = asker.question.name,
                          .addresses = std::move(addresses),
                          .message = std::string(answer),
                          .refusal = refusal};
  if (!admissions_ || !admissions_->submit(std::move(held)))
    say(asker.client, asker.stream, refusal);
}

void NameServer::State::say(const sockaddr_in& client, std::uint64_t stream,
                            std::string_view answer) {
  if (stream == 0) {
    ::sendto(datagrams_.get(), answer.data(), answer.size(), 0,
             reinterpret_cast<const sockaddr*>(&client), sizeof client);
    return;
  }
  for (Stream& each : streams_)
    if (each.number == stream && each.fd) send_all(each, framed(answer));
}

void NameServer::State::take_admitted() {
  for (const Admissions::Answer& answer : admissions_->take_ready())
    say(socket_address(answer.client, answer.port), answer.stream, answer.message);
}

bool NameServer::State::ask_for(std::string_view message, const Asker& asker) {
  if (options_.upstream == 0 || asked_.size() >= kMostStreams) return false;
  linux::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return false;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&resolver_), sizeof resolver_) != 0 &&
      errno != EINPROGRESS)
    return false;
  asked_.push_back({.asker = asker,
                    .fd = std::move(fd),
                    .question = framed(message),
                    .until = std::chrono::steady_clock::now() + kNamePatience});
  return true;
}

// Whoever waits sees it at once.
void NameServer::State::give_up(Asked& asked) {
  asked.fd.reset();
  for (Stream& stream : streams_)
    if (stream.number == asked.asker.stream) stream.fd.reset();
}

// What comes back has its length before it.
void NameServer::State::carry_on(Asked& asked) {
  if (!asked.question.empty()) {
    const ssize_t sent =
        ::send(asked.fd.get(), asked.question.data(), asked.question.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN ? void() : give_up(asked);
    asked.question.erase(0, static_cast<std::size_t>(sent));
    return;
  }
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(asked.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) return give_up(asked);
  asked.answer.append(buffer.data(), static_cast<std::size_t>(got));
  const auto size = framed_size(asked.answer);
  if (!size || asked.answer.size() < *size) return;
  asked.fd.reset();
  give(asked.asker, std::string_view(asked.answer).substr(2, *size - 2));
}

}  // namespace hearth::node
