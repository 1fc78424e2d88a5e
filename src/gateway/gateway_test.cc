// Requests through the gateway.
#include "gateway/gateway_testing_internal.h"

namespace hearth::gateway {
namespace {

TEST(Gateway, PassesARequestOnAndItsAnswerBack) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  const Answer answer = client.ask(request("GET /a%2Fb?c=d", 8000, "X-Mine: 1\r\n"));

  EXPECT_EQ(answer.head.status, 200U);
  EXPECT_TRUE(answer.body.starts_with("GET /a%2Fb?c=d\n")) << answer.body;
  EXPECT_NE(answer.body.find("Host: gw\n"), std::string::npos);
  EXPECT_NE(answer.body.find("X-Mine: 1\n"), std::string::npos);
  EXPECT_NE(answer.body.find("X-Forwarded-For: 127.0.0.1\n"), std::string::npos);
  EXPECT_NE(answer.body.find("X-Forwarded-Proto: http\n"), std::string::npos);
  EXPECT_EQ(answer.body.find("E2b-Sandbox"), std::string::npos);
}

TEST(Gateway, KeepsConnectionsOnBothSides) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  for (int i = 0; i < 50; ++i) {
    const Answer answer = client.ask(request(fmt::format("GET /{}", i)));
    ASSERT_TRUE(answer.body.starts_with(fmt::format("GET /{}\n", i)));
  }
  EXPECT_EQ(program.connections(), 1U);
  EXPECT_EQ(house.reach.dials(), 1);
}

TEST(Gateway, AnswersRequestsThatCameTogetherInTheirOrder) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += request(fmt::format("POST /{}", i), 8000, "Content-Length: 3\r\n") + "abc";
  }
  client.send(all);
  for (int i = 0; i < 20; ++i) {
    const Answer answer = client.read_answer();
    ASSERT_TRUE(answer.body.starts_with(fmt::format("POST /{}\n", i)));
    ASSERT_TRUE(answer.body.ends_with("\n\nabc"));
  }
}

TEST(Gateway, PassesLargeBodiesInBothFramings) {
  House house;
  Program program([](Peer& peer) {
    for (std::string body; !peer.read_request(body).method.empty();) {
      std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
      for (std::size_t at = 0; at < body.size(); at += 70'000) {
        const std::string piece = body.substr(at, 70'000);
        text += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
      }
      peer.send(text + "0\r\n\r\n");
    }
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();
  std::string body(5 << 20, 'x');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i * 7 % 26);

  Peer first = house.connect();
  std::jthread sender([&] {
    first.send(request("PUT /", 8000, fmt::format("Content-Length: {}\r\n", body.size())) + body);
  });
  EXPECT_EQ(first.read_answer().body, body);

  Peer second = house.connect();
  std::jthread chunks([&] {
    second.send(request("PUT /", 8000, "Transfer-Encoding: chunked\r\n"));
    for (std::size_t at = 0; at < body.size(); at += 100'000) {
      const std::string piece = body.substr(at, 100'000);
      second.send(fmt::format("{:x};ext=1\r\n{}\r\n", piece.size(), piece));
    }
    second.send("0\r\nTrailer: t\r\n\r\n");
  });
  EXPECT_EQ(second.read_answer().body, body);
}

TEST(Gateway, StreamsBothWaysAtOnce) {
  House house;
  Program program([](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
    // Answers each piece of the request before the next one comes.
    for (int i = 0; i < 3; ++i) peer.send("6\r\n" + peer.read(6) + "\r\n");
    peer.read(5);
    peer.send("0\r\n\r\n");
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(request("POST /", 8000, "Transfer-Encoding: chunked\r\n"));
  EXPECT_NE(client.read_head(), "");
  EXPECT_EQ(client.read(7), "2\r\nhi\r\n");
  for (int i = 0; i < 3; ++i) {
    const std::string piece = fmt::format("1\r\n{}\r\n", i);
    client.send(piece);
    EXPECT_EQ(client.read(11), "6\r\n" + piece + "\r\n");
  }
  client.send("0\r\n\r\n");
  EXPECT_EQ(client.rest(), "0\r\n\r\n");
}

TEST(Gateway, PassesContinue) {
  House house;
  Program program([](Peer& peer) {
    EXPECT_NE(peer.read_head().find("Expect: 100-continue"), std::string::npos);
    peer.send("HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(peer.read(2), "ok");
    peer.send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(request("PUT /", 8000, "Expect: 100-continue\r\nContent-Length: 2\r\n"));
  EXPECT_EQ(client.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(client.read_answer().head.status, 204U);
}

TEST(Gateway, PassesAnUpgradeAsBytes) {
  House house;
  Program program([](Peer& peer) {
    const std::string head = peer.read_head();
    EXPECT_NE(head.find("Upgrade: websocket\r\n"), std::string::npos);
    EXPECT_NE(head.find("Connection: Upgrade\r\n"), std::string::npos);
    peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nfirst");
    peer.send(peer.read(4));
    EXPECT_EQ(peer.rest(), "");  // the client said that it sends no more
    peer.send("last");
    peer.close();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(
      request("GET /ws", 8000, "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"));
  const std::string head = client.read_head();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 ")) << head;
  EXPECT_NE(head.find("Sec-WebSocket-Accept: x\r\n"), std::string::npos);
  EXPECT_EQ(client.read(5), "first");
  client.send("\x01\x02\xff\n");
  EXPECT_EQ(client.read(4), "\x01\x02\xff\n");
  client.finish();
  EXPECT_EQ(client.rest(), "last");
}

TEST(Gateway, AnswerThatEndsWithItsConnectionEndsTheClients) {
  House house;
  Program program([](Peer& peer) {
    peer.read_head();
    peer.send("HTTP/1.0 200 OK\r\n\r\nold times");
    peer.close();
  });
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(request("GET /"));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.body, "old times");
  EXPECT_TRUE(answer.is_whole);
  EXPECT_FALSE(answer.head.wants_keep_alive());
}

TEST(Gateway, SpeaksWithOldClients) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(fmt::format(
      "GET /old HTTP/1.0\r\nE2b-Sandbox-Id: {}\r\nE2b-Sandbox-Port: 8000\r\n\r\n", kId));
  EXPECT_NE(client.rest().find("\r\n\r\nGET /old\n"), std::string::npos);
}

TEST(Gateway, HeadHasNoBodyWhateverItSays) {
  House house;
  Program program(echo);
  house.reach.open(8000, program.port());
  house.make_sandbox();

  Peer client = house.connect();
  client.send(request("HEAD /x"));
  EXPECT_EQ(client.read_answer(true).head.status, 200U);
  EXPECT_TRUE(client.ask(request("GET /y")).body.starts_with("GET /y\n"));
}

}  // namespace
}  // namespace hearth::gateway
