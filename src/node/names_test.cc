// Names as pods ask for them.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "linux/fd.h"
#include "model/json.h"
#include "node/dns_message.h"
#include "node/name_server.h"
#include "node/resolv_conf.h"

namespace hearth::node {
namespace {

constexpr std::uint32_t kLoopback = 0x7f000001;

// "3web5local" and so on.
std::string question_for(std::string_view name, std::uint16_t type = dns::kTypeA) {
  std::string out("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    out.push_back(static_cast<char>(label.size()));
    out += label;
    name.remove_prefix(std::min(label.size() + 1, name.size()));
  }
  out.push_back('\0');
  out += {'\0', static_cast<char>(type), '\0', '\1'};
  return out;
}

TEST(DnsMessage, ReadsAQuestion) {
  const auto question = dns::parse_question(question_for("Web.NS.svc.cluster.local", 28));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->id, 0x1234);
  EXPECT_EQ(question->name, "web.ns.svc.cluster.local");
  EXPECT_EQ(question->type, 28);
}

TEST(DnsMessage, PassesOverWhatIsNone) {
  const std::string good = question_for("a.b");
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(dns::parse_question(good.substr(0, size))) << size;
  std::string answer = good;
  answer[2] = '\x81';
  EXPECT_FALSE(dns::parse_question(answer)) << "or two servers would talk for ever";
  std::string two = good;
  two[5] = 2;
  EXPECT_FALSE(dns::parse_question(two));
  std::string pointer = good.substr(0, 12) + "\xc0\x0c" + std::string("\0\1\0\1", 4);
  EXPECT_FALSE(dns::parse_question(pointer));
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += "aa.";
  EXPECT_FALSE(dns::parse_question(question_for(endless + "a")));
}

// An answer to it, with these records: type and data each.
std::string answer_to(const std::string& question,
                      const std::vector<std::pair<std::uint16_t, std::string>>& records) {
  std::string out = question;
  out[2] = '\x81';
  out[7] = static_cast<char>(records.size());
  for (const auto& [type, data] : records) {
    out += {'\xc0',
            '\x0c',
            static_cast<char>(type >> 8),
            static_cast<char>(type & 0xff),
            '\0',
            '\1',
            '\0',
            '\0',
            '\0',
            '\5',
            '\0',
            static_cast<char>(data.size())};
    out += data;
  }
  return out;
}

TEST(DnsMessage, FindsAddressesAlongAliases) {
  const std::string question = question_for("A.example");
  const auto asked = dns::parse_question(question);
  const std::string good = answer_to(
      question, {{5, std::string("\1b\xc0\x0e")}, {1, "\1\2\3\4"}, {1, "\5\6\7\10"}, {28, "no"}});
  EXPECT_EQ(dns::parse_addresses(good, *asked),
            (std::vector<std::uint32_t>{0x01020304, 0x05060708}));
  EXPECT_EQ(dns::parse_addresses(answer_to(question, {}), *asked), std::vector<std::uint32_t>());
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(dns::parse_addresses(good.substr(0, size), *asked)) << size;
  EXPECT_FALSE(dns::parse_addresses(question, *asked)) << "a question";
  EXPECT_FALSE(dns::parse_addresses(answer_to(question_for("b.example"), {}), *asked));
  EXPECT_FALSE(dns::parse_addresses(answer_to(question_for("a.example", 28), {}), *asked));
}

TEST(DnsMessage, ADotWithinAPartIsNoneBetweenParts) {
  std::string tricky = question_for("x.y.org");
  tricky[14] = '.';  // the y's length: a part of its own no longer
  tricky[12] = 3;
  const auto question = dns::parse_question(tricky);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->name, "x\\.y.org");
}

class NameServerTest : public testing::Test {
 protected:
  static std::string ask(std::uint16_t port, const std::string& message, int patience = 3000) {
    const linux::Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(kLoopback);
    to.sin_port = htons(port);
    ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
    ::send(fd.get(), message.data(), message.size(), 0);
    pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, patience) != 1) return {};
    std::string answer(4096, '\0');
    const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), 0);
    answer.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return answer;
  }
  // Over a stream, which has lengths before messages.
  static std::string ask_stream(std::uint16_t port, const std::string& message) {
    const linux::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(kLoopback);
    to.sin_port = htons(port);
    ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
    const timeval patience{.tv_sec = 3, .tv_usec = 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const std::string framed = std::string{'\0', static_cast<char>(message.size())} + message;
    // In two pieces: a message may come in any.
    ::send(fd.get(), framed.data(), 5, MSG_NOSIGNAL);
    ::send(fd.get(), framed.data() + 5, framed.size() - 5, MSG_NOSIGNAL);
    std::string answer(4096, '\0');
    std::size_t got = 0;
    while (got < 2 || got < 2U + static_cast<std::uint8_t>(answer[1])) {
      const ssize_t more = ::recv(fd.get(), answer.data() + got, answer.size() - got, 0);
      if (more <= 0) return {};
      got += static_cast<std::size_t>(more);
    }
    return answer.substr(2, got - 2);
  }
  static NameServerOptions options() {
    NameServerOptions made;
    made.clients = network::parse_cidr("127.0.0.0/8");
    made.address = kLoopback;
    return made;
  }
};

TEST_F(NameServerTest, AnswersWhatItKnowsAndPassesOnTheRest) {
  NameServer far(options());
  far.set_names({{"x.cluster.local", {1}}});
  NameServerOptions near_options = options();
  near_options.domain = "here";
  near_options.upstream = kLoopback;
  near_options.upstream_port = far.port();
  NameServer server(near_options);
  server.set_names({{"web.here", {0x0a600009}}});

  const std::string known = ask(server.port(), question_for("web.here"));
  ASSERT_GE(known.size(), 16U);
  EXPECT_EQ(known[3] & 0xf, 0);
  EXPECT_EQ(known.substr(known.size() - 4), std::string("\x0a\x60\x00\x09", 4));
  EXPECT_EQ(ask(server.port(), question_for("web.here", 28))[7], 0) << "no IPv6, but the name is";
  EXPECT_EQ(ask(server.port(), question_for("nobody.here"))[3] & 0xf, 3);
  const std::string passed = ask(server.port(), question_for("x.cluster.local"));
  ASSERT_GE(passed.size(), 16U);
  EXPECT_EQ(passed.substr(0, 2), "\x12\x34");
  EXPECT_EQ(passed.substr(passed.size() - 4), std::string("\0\0\0\1", 4));
  EXPECT_EQ(ask(far.port(), question_for("web.here"))[3] & 0xf, 2) << "it has nobody to ask";
  // The same over streams, which are passed on as streams.
  EXPECT_EQ(ask_stream(server.port(), question_for("web.here")), known);
  EXPECT_EQ(ask_stream(server.port(), question_for("x.cluster.local")), passed);
}

TEST_F(NameServerTest, AResolverThatIsAwayIsSaidSo) {
  NameServerOptions far = options();
  far.domain = "here";
  far.upstream = 0xffffffff;  // no address that anything can be sent to
  NameServer server(far);
  for (const std::string& said : {ask(server.port(), question_for("web.there")),
                                  ask_stream(server.port(), question_for("web.there"))}) {
    ASSERT_GE(said.size(), 12U);
    EXPECT_EQ(said[3] & 0xf, 2);
  }
  far.upstream = kLoopback;
  far.upstream_port = 1;  // where nobody listens
  NameServer other(far);
  EXPECT_EQ(ask_stream(other.port(), question_for("web.there")), "") << "closed, and not in vain";
}

// Who may ask for what, and what was let through before the answer came.
class NamedRulesTest : public NameServerTest {
 protected:
  NamedRulesTest() {
    far_.set_names({{"api.cluster.local", {0x01020304}}, {"inside.cluster.local", {0x7f000009}}});
    NameServerOptions gated = options();
    gated.domain = "here";
    gated.upstream = kLoopback;
    gated.upstream_port = far_.port();
    gated.judge = [](std::uint32_t client, std::string_view name) {
      EXPECT_EQ(client, kLoopback);
      if (name.starts_with("free")) return NameRuling::free;
      return name.ends_with(".cluster.local") ? NameRuling::named : NameRuling::refused;
    };
    gated.admit = [this](std::uint32_t, const std::string& name,
                         std::span<const std::uint32_t> answered) {
      if (is_runtime_away_) fail(Code::unavailable, "nobody is there");
      admitted_ += fmt::format("{}={:x} ", name, fmt::join(answered, ","));
    };
    server_.emplace(gated);
    server_->set_names({{"web.here", {5}}});
  }
  // Over both, which have to agree.
  std::string said(const std::string& question) {
    const std::string answer = ask(server_->port(), question);
    EXPECT_EQ(ask_stream(server_->port(), question), answer);
    return answer;
  }

  NameServer far_{options()};
  std::atomic<bool> is_runtime_away_ = false;
  std::string admitted_;  // read when the answer is here
  std::optional<NameServer> server_;
};

TEST_F(NamedRulesTest, AnAnswerComesWhenItMayBeReached) {
  const std::string answer = said(question_for("API.cluster.local"));
  ASSERT_GE(answer.size(), 16U);
  EXPECT_EQ(answer.substr(answer.size() - 4), "\1\2\3\4");
  EXPECT_EQ(admitted_, "api.cluster.local=1020304 api.cluster.local=1020304 ");
}

TEST_F(NamedRulesTest, OtherNamesAreNotThereAndOursAre) {
  EXPECT_EQ(said(question_for("evil.example"))[3] & 0xf, 3);
  EXPECT_EQ(said(question_for("web.here"))[3] & 0xf, 0);
  EXPECT_EQ(said(question_for("nobody.cluster.local"))[3] & 0xf, 3) << "as upstream says";
  EXPECT_EQ(said(question_for("free.cluster.local"))[3] & 0xf, 3);
  EXPECT_EQ(admitted_, "");
}

TEST_F(NamedRulesTest, ANameOfTheOutsideOpensNothingInside) {
  EXPECT_EQ(said(question_for("inside.cluster.local"))[3] & 0xf, 0);
  EXPECT_EQ(admitted_, "") << "127.0.0.9 is one of the clients' addresses";
}

TEST_F(NamedRulesTest, WhatCannotBeReachedIsNotAnswered) {
  is_runtime_away_ = true;
  EXPECT_EQ(said(question_for("api.cluster.local"))[3] & 0xf, 2);
}

TEST_F(NameServerTest, StrangersAreNotHeard) {
  NameServerOptions strict = options();
  strict.clients = network::parse_cidr("10.0.0.0/8");
  NameServer server(strict);
  EXPECT_EQ(ask(server.port(), question_for("a.cluster.local"), 100), "");
}

TEST(ResolvConf, FollowsThePolicy) {
  const auto text = [](const char* spec) {
    return resolv_conf_of(
        model::parse_yaml(std::string("metadata: {namespace: ns}\nspec: ") + spec).value,
        "10.77.0.1", "cluster.local");
  };
  const std::string first =
      "nameserver 10.77.0.1\nsearch ns.svc.cluster.local svc.cluster.local cluster.local\n"
      "options ndots:5\n";
  EXPECT_EQ(text("{}"), first);
  EXPECT_EQ(text("{dnsPolicy: ClusterFirst}"), first);
  EXPECT_EQ(text("{dnsPolicy: Default}"), "nameserver 10.77.0.1\n");
  EXPECT_EQ(text("{dnsPolicy: None, dnsConfig: {nameservers: [8.8.8.8, 1.1.1.1], searches: [a.b], "
                 "options: [{name: ndots, value: '1'}, {name: rotate}]}}"),
            "nameserver 8.8.8.8\nnameserver 1.1.1.1\nsearch a.b\noptions ndots:1 rotate\n");
  EXPECT_EQ(text("{dnsPolicy: None, dnsConfig: {nameservers: [\"8.8.8.8\\nsearch evil\"]}}"), "");
}

}  // namespace
}  // namespace hearth::node
