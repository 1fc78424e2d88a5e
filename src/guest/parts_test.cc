#include <gtest/gtest.h>

#include "base/error.h"
#include "guest/boot.h"
#include "guest/log_ring.h"
#include "guest/ports.h"
#include "guest/protocol.h"
#include "guest/spawner.h"
#include "guest/users.h"

namespace hearth::guest {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\nbroken line\nuser:x:1000:1000:,,,:/home/user:/bin/sh\n";
constexpr std::string_view kGroup =
    "root:x:0:\nwheel:x:10:root,user\ndocker:x:999:user\nuser:x:1000:\n";

TEST(Users, AreFoundByNameAndNumber) {
  const User user = find_user(kPasswd, kGroup, "user");
  EXPECT_EQ(user.uid, 1000u);
  EXPECT_EQ(user.home, "/home/user");
  EXPECT_EQ(user.groups, (std::vector<std::uint32_t>{1000, 10, 999}));
  EXPECT_EQ(find_user(kPasswd, kGroup, "1000").name, "user");
  EXPECT_EQ(find_user(kPasswd, kGroup, "user:wheel").groups, (std::vector<std::uint32_t>{10}));
}

TEST(Users, ABareNumberNeedsNoEntry) {
  const User user = find_user(kPasswd, kGroup, "4242:77");
  EXPECT_EQ(user.uid, 4242u);
  EXPECT_EQ(user.gid, 77u);
  EXPECT_EQ(user.home, "/");
  EXPECT_EQ(find_user("", "", "root").uid, 0u);
}

TEST(Users, UnknownOnesAreNamed) {
  EXPECT_THROW(find_user(kPasswd, kGroup, "nobody-here"), Error);
  EXPECT_THROW(find_user(kPasswd, kGroup, "user:nothing"), Error);
  EXPECT_THROW(find_user(kPasswd, kGroup, "4294967295"),
               Error);  // "leave it as it is" to the kernel
  EXPECT_THROW(find_user(kPasswd, kGroup, "99999999999"), Error);
  EXPECT_THROW(find_user(kPasswd, kGroup, ""), Error);
}

constexpr Time kThen{std::chrono::seconds(100)};
constexpr Time kLater{std::chrono::seconds(200)};

TEST(LogRing, KnowsWhenAndWhereAndFromAnyPosition) {
  LogRing ring(100'000);
  ring.append(Stream::output, kThen, "abc\n");
  ring.append(Stream::error, kLater, "oh\n");

  const Output first = *ring.read(0, 100);
  EXPECT_EQ(first.bytes, "abc\n");
  EXPECT_EQ(first.stream, Stream::output);
  EXPECT_EQ(first.time, kThen);
  EXPECT_EQ(ring.read(1, 2)->bytes, "bc");
  EXPECT_EQ(ring.read(1, 2)->position, 1u);
  const Output second = *ring.read(4, 100);
  EXPECT_EQ(second.bytes, "oh\n");
  EXPECT_EQ(second.stream, Stream::error);
  EXPECT_EQ(second.time, kLater);
  EXPECT_FALSE(ring.read(7, 100));
  EXPECT_FALSE(ring.read(UINT64_MAX, 100));
}

TEST(LogRing, ALineHasTheTimeOfItsBeginning) {
  LogRing ring(100'000);
  ring.append(Stream::output, kThen, "be");
  ring.append(Stream::output, kLater, "gun\nnext\n");

  EXPECT_EQ(ring.read(0, 100)->bytes, "begun\n");
  EXPECT_EQ(ring.read(2, 100)->bytes, "gun\n");
  EXPECT_EQ(ring.read(2, 100)->time, kThen);
  EXPECT_EQ(ring.read(6, 100)->bytes, "next\n");
  EXPECT_EQ(ring.read(6, 100)->time, kLater);
}

TEST(LogRing, TellsItsSourcesApart) {
  LogRing ring(100'000);
  ring.append(Stream::output, kThen, "of o", 1);
  ring.append(Stream::output, kThen, "of two\n", 2);
  ring.append(Stream::output, kThen, "ne\n", 1);

  EXPECT_EQ(ring.read(0, 100, 1)->bytes, "of o");
  EXPECT_EQ(ring.read(4, 100, 1)->bytes, "ne\n");
  EXPECT_EQ(ring.read(0, 100, 2)->bytes, "of two\n");
  EXPECT_FALSE(ring.read(0, 100, 3));
  EXPECT_EQ(ring.read(4, 100)->bytes, "of two\n");
}

TEST(LogRing, ForgetsTheOldestFirst) {
  LogRing ring(2 * LogRing::kPieceOverhead + 10);
  ring.append(Stream::output, kThen, "one\n");
  ring.append(Stream::output, kThen, "two\n");
  EXPECT_EQ(ring.read(0, 100)->bytes, "one\n");
  ring.append(Stream::output, kThen, "three\n");

  EXPECT_EQ(ring.read(0, 100)->bytes, "two\n");
  EXPECT_EQ(ring.read(0, 100)->position, 4u);
  EXPECT_EQ(ring.end(), 14u);
}

TEST(LogRing, HoldsNoMoreThanItMayHowEverItIsWritten) {
  LogRing ring(10'000);
  for (int i = 0; i < 100'000; ++i)
    ring.append(i % 2 == 0 ? Stream::output : Stream::error, kThen, "x");
  std::uint64_t pieces = 0;
  for (std::uint64_t from = 0; const auto piece = ring.read(from, 1); from = piece->position + 1)
    ++pieces;
  EXPECT_LE(pieces, 10'000 / LogRing::kPieceOverhead);

  ring.append(Stream::output, kThen, std::string(50'000, 'y'));
  EXPECT_EQ(ring.end(), 150'000u);
  EXPECT_EQ(ring.read(0, 100'000)->bytes, std::string(10'000, 'y'));
}

TEST(LogRing, KnowsWhatWouldBeForgotten) {
  LogRing ring(1000);
  EXPECT_TRUE(ring.has_room(0, 5000)) << "there is nothing to forget";
  ring.append(Stream::output, kThen, std::string(400, 'x') + "\n");

  EXPECT_TRUE(ring.has_room(0, 300));
  EXPECT_FALSE(ring.has_room(0, 500));
  EXPECT_TRUE(ring.has_room(401, 5000));
}

TEST(GuestProtocol, ReadsWhatWasWritten) {
  ExecRequest request;
  request.command = {"ls", "-l"};
  request.environment = {"A=b"};
  request.directory = "/tmp";
  request.user = "user";
  request.terminal = true;
  request.rows = 24;
  request.columns = 80;
  request.timeout_milliseconds = 1500;

  const auto parsed = std::get<ExecRequest>(parse_request(encode(Request(request))));

  EXPECT_EQ(parsed.command, request.command);
  EXPECT_EQ(parsed.environment, request.environment);
  EXPECT_EQ(parsed.directory, "/tmp");
  EXPECT_EQ(parsed.columns, 80);
  EXPECT_EQ(parsed.timeout_milliseconds, 1500u);
  EXPECT_TRUE(parsed.terminal);
  EXPECT_FALSE(parsed.detached);

  const auto failed = std::get<Failed>(
      parse_reply(encode(Reply(Failed{.code = Code::exhausted, .message = "full"}))));
  EXPECT_EQ(failed.code, Code::exhausted);
  EXPECT_EQ(failed.message, "full");
}

TEST(GuestProtocol, RefusesWhatIsNone) {
  EXPECT_THROW(parse_request(""), Error);
  EXPECT_THROW(parse_request("\x63"), Error);
  EXPECT_THROW(parse_request(encode(Request(HelloRequest{})) + "x"), Error);
  EXPECT_THROW(parse_reply("\x02\x01"), Error);
}

TEST(GuestProtocol, CarriesConfigurations) {
  Configuration sent;
  sent.environment = {"A=b"};
  sent.user = "user";
  sent.token = "secret";
  sent.drops_token = true;
  sent.hosts = "127.0.0.1 box";
  sent.files = {{.path = "/run/key", .content = std::string("\0k", 2), .mode = 0440, .user = "0"}};

  const Configuration read =
      std::get<ConfigureRequest>(parse_request(encode(Request(ConfigureRequest{sent}))))
          .configuration;

  EXPECT_EQ(read.environment, sent.environment);
  EXPECT_EQ(read.user, "user");
  EXPECT_EQ(read.token, "secret");
  EXPECT_TRUE(read.drops_token);
  EXPECT_EQ(read.hosts, sent.hosts);
  ASSERT_EQ(read.files.size(), 1u);
  EXPECT_EQ(read.files[0].content, sent.files[0].content);
  EXPECT_EQ(read.files[0].mode, 0440u);
}

TEST(Ports, AreThoseThatListen) {
  const std::string_view text =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      "   0: 00000000:C34F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
      "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
      "   2: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0\n"
      "   3: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0\n"
      "   4: nonsense 0 0A\n   5: 0:zz 0:0 0A\n\n 6:";
  EXPECT_EQ(parse_listening(text), (std::vector<std::uint16_t>{8080, 49999}));
}

TEST(Environment, IsPassedOnWhole) {
  const Settings settings{.environment = {"A=1", "B=2"}};
  EXPECT_EQ(environment_for_commands(settings), settings.environment);
}

TEST(Environment, IsPassedOnByName) {
  const Settings settings{.environment = {"HF_TOKEN=secret", "PATH=/bin", "A=1", "AB=2", "LC_ALL=C",
                                          "LANG=C", "SUBPROCESS_ENV_PASSTHROUGH=HF_TOKEN",
                                          "SUBPROCESS_ENV_PASSTHROUGH= A ,,NOT_THERE"}};
  EXPECT_EQ(environment_for_commands(settings),
            (std::vector<std::string>{"PATH=/bin", "A=1", "LC_ALL=C", "LANG=C"}));
}

TEST(Surfaces, HaveNamesAndPorts) {
  EXPECT_EQ(find_surface("code"), Surface::interpreter);
  EXPECT_EQ(find_surface("shell"), std::nullopt);
  EXPECT_EQ(to_string(Surface::runtime_api), "runtime-api");
  EXPECT_EQ(usual_port(Surface::envd), 49983);
}

TEST(Boot, MessagesAreReadAsTheyWereWritten) {
  const NurseryConfig config{.common_filter = std::string("\0\1\2", 3), .capabilities = 0xff};
  EXPECT_EQ(parse_nursery_config(encode(config)).common_filter, config.common_filter);

  const ShellOrder order{.ids = {.first = 7, .count = 9}, .join_count = 3, .command_cgroup = true};
  const ShellOrder order_read = parse_shell_order(encode(order));
  EXPECT_EQ(order_read.ids, order.ids);
  EXPECT_EQ(order_read.join_count, 3u);
  EXPECT_TRUE(order_read.command_cgroup);

  Assignment assignment;
  assignment.hostname = "box";
  assignment.environment = {"A=b"};
  assignment.cpus = {1, 3};
  assignment.ulimits = {{.resource = RLIMIT_NOFILE, .soft = 7, .hard = 9}};
  assignment.attachments = {{.target = "/data", .folder = false}};
  assignment.resolv_conf = "nameserver";
  assignment.surfaces = {{.surface = Surface::sandboxd, .port = 80}};
  assignment.token = "secret";
  assignment.sudoers = {"user", "admin"};
  assignment.disk = true;
  assignment.read_only_root = true;
  const Assignment read = parse_assignment(encode(assignment));
  EXPECT_EQ(read.hostname, "box");
  EXPECT_EQ(read.cpus, assignment.cpus);
  EXPECT_EQ(read.ulimits, assignment.ulimits);
  EXPECT_EQ(read.attachments.at(0).target, "/data");
  EXPECT_FALSE(read.attachments.at(0).folder);
  EXPECT_EQ(read.resolv_conf, "nameserver");
  EXPECT_EQ(read.surfaces, assignment.surfaces);
  EXPECT_EQ(read.sudoers, assignment.sudoers);
  EXPECT_EQ(read.token, "secret");
  EXPECT_TRUE(read.disk);
  EXPECT_TRUE(read.read_only_root);
}

TEST(Boot, RefusesWhatIsNone) {
  EXPECT_THROW(parse_assignment("\x01"), Error);
  EXPECT_THROW(parse_shell_order(encode(ShellOrder{}) + "x"), Error);
}

}  // namespace
}  // namespace hearth::guest
