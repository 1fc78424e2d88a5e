// The guest as a plain process of this user: commands, streams, ends. What needs namespaces is
// tested with real sandboxes.
#include "guest/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "guest/client.h"
#include "linux/pty.h"

namespace hearth::guest {
namespace {

using namespace std::chrono_literals;
using linux::ExitStatus;

class GuestServer : public testing::Test {
 protected:
  void SetUp() override {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP()
        << "the thread sanitizer does not survive a clone that shares memory; the guest has "
           "one thread anyway";
#endif
    char path[] = "/tmp/hearth-guest-test-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_path_ = path;
    folder_ = linux::open_file(path, O_RDONLY | O_DIRECTORY);
    linux::Fd listen = linux::listen_at(folder_.get(), "guest.sock");
    server_ = ::fork();
    if (server_ == 0) {
      ServerOptions options;
      options.listen = std::move(listen);
      Settings settings;
      settings.environment = {"FROM_SANDBOX=yes"};
      settings.user = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
      try {
        Core core(std::move(settings));
        Spawner spawner({});
        Server(std::move(options), core, spawner).run();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "guest: %s\n", error.what());
      }
      ::_exit(1);
    }
  }

  void TearDown() override {
    if (server_ == 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
    std::filesystem::remove_all(folder_path_);
  }

  Connection connect() { return Connection(linux::connect_at(folder_.get(), "guest.sock")); }

  static ExecRequest shell(const std::string& script) {
    ExecRequest request;
    request.command = {"/bin/sh", "-c", script};
    request.directory = "/";
    return request;
  }

  // Everything that arrives until all writers are gone.
  static std::string read_to_end(int fd) {
    std::string text;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = ::read(fd, buffer, sizeof buffer)) > 0)
      text.append(buffer, static_cast<std::size_t>(got));
    return text;
  }

  struct Finished {
    Exited exited;
    std::string output;
  };
  Finished run(const ExecRequest& request) {
    Connection connection = connect();
    linux::Pipe out = linux::make_pipe();
    connection.start(request, {.input = -1, .output = out.write.get(), .error = out.write.get()});
    out.write.reset();
    std::string output = read_to_end(out.read.get());
    return {.exited = *connection.wait(), .output = std::move(output)};
  }

  std::string folder_path_;
  linux::Fd folder_;
  pid_t server_ = 0;
};

TEST_F(GuestServer, SaysWhichProtocolItSpeaks) {
  const Hello hello = connect().hello(Deadline::after(60s)).hello;

  EXPECT_EQ(hello.protocol, kProtocolVersion);
  EXPECT_EQ(hello.version, HEARTH_VERSION);
}

TEST_F(GuestServer, GivesOutputAndExitCode) {
  const Finished finished = run(shell("echo one; echo two >&2; exit 7"));

  EXPECT_EQ(finished.output, "one\ntwo\n");
  EXPECT_EQ(finished.exited.status, (ExitStatus{.code = 7, .signal = 0}));
}

TEST_F(GuestServer, TellsASignalFromAnExitCode) {
  EXPECT_EQ(run(shell("kill -TERM $$")).exited.status, (ExitStatus{.code = 0, .signal = SIGTERM}));
}

TEST_F(GuestServer, PassesStdin) {
  Connection connection = connect();
  linux::Pipe in = linux::make_pipe();
  linux::Pipe out = linux::make_pipe();
  connection.start(shell("cat; echo end"),
                   {.input = in.read.get(), .output = out.write.get(), .error = -1});
  in.read.reset();
  out.write.reset();

  linux::write_all(in.write.get(), "hello ");
  in.write.reset();

  EXPECT_EQ(read_to_end(out.read.get()), "hello end\n");
}

TEST_F(GuestServer, MergesEnvironments) {
  ExecRequest request = shell("echo $FROM_SANDBOX-$FROM_CALL-$HOME");
  request.environment = {"FROM_CALL=a=b", "HOME=/elsewhere"};

  EXPECT_EQ(run(request).output, "yes-a=b-/elsewhere\n");
}

TEST_F(GuestServer, StartsInTheDirectoryAskedFor) {
  ExecRequest request = shell("pwd");
  request.directory = "/usr";
  EXPECT_EQ(run(request).output, "/usr\n");

  request.directory = "/not/there";
  try {
    run(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid);
    EXPECT_STREQ(error.what(),
                 "enter the working directory '/not/there': ENOENT: No such file or directory");
  }
}

TEST_F(GuestServer, SaysWhenThereIsNoSuchProgram) {
  ExecRequest request;
  request.command = {"no-such-program"};
  request.directory = "/";
  try {
    run(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_STREQ(error.what(), "there is no program 'no-such-program' in the sandbox");
  }
  request.command = {"/etc/passwd"};
  EXPECT_THROW(run(request), Error);
}

TEST_F(GuestServer, RefusesBadRequestsAndServesOn) {
  linux::Channel channel = linux::connect_at(folder_.get(), "guest.sock");
  channel.send("nonsense");
  const auto reply = channel.receive(Deadline::after(60s));
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::get<Failed>(parse_reply(reply->bytes)).code, Code::invalid);

  ExecRequest no_fds = shell("true");
  channel.send(encode(Request(no_fds)));
  EXPECT_TRUE(
      std::holds_alternative<Failed>(parse_reply(channel.receive(Deadline::after(60s))->bytes)));

  ExecRequest bad = shell("true");
  bad.environment = {"no-equals-sign"};
  EXPECT_THROW(run(bad), Error);
  EXPECT_EQ(run(shell("echo fine")).output, "fine\n");
}

TEST_F(GuestServer, KillsTheWholeTreeWhenTheTimeIsUp) {
  ExecRequest request =
      shell("setsid sleep 1000 & sleep 1000 & (sleep 1000; true) & echo $!; wait");
  request.timeout_milliseconds = 200;

  const Finished finished = run(request);  // returns only when nobody holds the pipe any more

  EXPECT_TRUE(finished.exited.timed_out);
  EXPECT_EQ(finished.exited.status.signal, SIGKILL);
}

TEST_F(GuestServer, EndsACommandWhoseClientIsGone) {
  linux::Pipe out = linux::make_pipe();
  {
    Connection connection = connect();
    connection.start(shell("echo started; setsid sleep 1000 & sleep 1000"),
                     {.input = -1, .output = out.write.get(), .error = -1});
    out.write.reset();
    char line[8];
    ASSERT_EQ(::read(out.read.get(), line, sizeof line), 8);
  }

  EXPECT_EQ(read_to_end(out.read.get()), "");  // all of them closed it
}

TEST_F(GuestServer, ReportsTheEndAlthoughABackgroundProcessHoldsTheOutput) {
  Connection connection = connect();
  linux::Pipe out = linux::make_pipe();
  connection.start(shell("sleep 1000 & exit 3"),
                   {.input = -1, .output = out.write.get(), .error = -1});

  EXPECT_EQ(connection.wait(Deadline::after(10s))->status.code, 3);
}

TEST_F(GuestServer, ForwardsSignalsToTheGroup) {
  Connection connection = connect();
  linux::Pipe out = linux::make_pipe();
  connection.start(
      shell("trap 'echo got it; exit 9' USR1; echo ready; while :; do sleep 0.01; done"),
      {.input = -1, .output = out.write.get(), .error = -1});
  out.write.reset();
  char line[6];
  ASSERT_EQ(::read(out.read.get(), line, sizeof line), 6);

  connection.send_signal(SIGUSR1);

  EXPECT_EQ(connection.wait(Deadline::after(10s))->status.code, 9);
  EXPECT_EQ(read_to_end(out.read.get()), "got it\n");
}

TEST_F(GuestServer, RunsOneCommandAfterTheOtherOnAConnection) {
  Connection connection = connect();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(connection.run(shell("exit " + std::to_string(i)), {}).status.code, i);
  }
}

TEST_F(GuestServer, GivesATerminal) {
  Connection connection = connect();
  ExecRequest request =
      shell("test -t 0 && test -t 1 && stty size && read line && echo \"<$line>\"");
  request.terminal = true;
  request.rows = 33;
  request.columns = 77;
  const Connection::Process process = connection.start(request, {});

  linux::write_all(process.terminal.get(), "typed\n");
  const auto exited = connection.wait(Deadline::after(10s));

  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->status.code, 0);
  char buffer[256];
  const ssize_t got = ::read(process.terminal.get(), buffer, sizeof buffer);
  const std::string seen(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  EXPECT_NE(seen.find("33 77"), std::string::npos) << seen;
}

TEST_F(GuestServer, KeepsWhatDetachedCommandsWrite) {
  {
    Connection connection = connect();
    ExecRequest request = shell("echo kept; echo too >&2");
    request.detached = true;
    connection.start(request, {});
  }  // the command goes on without its client

  std::string output;
  std::string error;
  connect().read_log({.follow = true}, [&](const Output& piece) {
    (piece.stream == Stream::output ? output : error) += piece.bytes;
    EXPECT_LT(std::chrono::system_clock::now() - piece.time, 1min);
    return output.empty() || error.empty();
  });
  EXPECT_EQ(output, "kept\n");
  EXPECT_EQ(error, "too\n");
}

// A keeper is sent everything, however slowly it takes it, and the commands wait for it.
TEST_F(GuestServer, HoldsCommandsBackForTheKeeperOfTheLog) {
  linux::Channel keeper = linux::connect_at(folder_.get(), "guest.sock");
  LogRequest kept{.follow = true, .keep = true, .from = 0};
  keeper.send(encode(Request(kept)));
  ExecRequest request = shell("seq 1 300000; echo end");
  request.detached = true;
  connect().start(request, {});

  std::uint64_t lines = 0;
  std::string last;
  while (!last.ends_with("end\n")) {
    auto message = keeper.receive(Deadline::after(10s));
    ASSERT_TRUE(message);
    const Output piece = std::get<Output>(parse_reply(message->bytes));
    ASSERT_EQ(piece.position, kept.from) << "something was forgotten";
    lines += static_cast<std::uint64_t>(std::ranges::count(piece.bytes, '\n'));
    last = piece.bytes;
    kept.from += piece.bytes.size();
    keeper.send(encode(Request(kept)));
  }
  EXPECT_EQ(lines, 300'001u);
}

// What the keeper had not written down when it went away is there for the next one.
TEST_F(GuestServer, AKeeperThatComesBackGoesOnWhereItWas) {
  LogRequest kept{.follow = true, .keep = true, .from = 0};
  std::string seen;
  const auto take_one = [&](linux::Channel& keeper) {
    const auto message = keeper.receive(Deadline::after(10s));
    const Output piece = std::get<Output>(parse_reply(message.value().bytes));
    EXPECT_EQ(piece.position, kept.from);
    return piece.bytes;
  };
  {
    linux::Channel keeper = linux::connect_at(folder_.get(), "guest.sock");
    keeper.send(encode(Request(kept)));
    ExecRequest request = shell("seq 1 20000; echo end");
    request.detached = true;
    connect().start(request, {});
    seen = take_one(keeper);
    kept.from = seen.size();
    take_one(keeper);  // and is gone before it has written it
  }
  linux::Channel again = linux::connect_at(folder_.get(), "guest.sock");
  again.send(encode(Request(kept)));
  while (!seen.ends_with("end\n") && !HasFailure()) {
    seen += take_one(again);
    kept.from = seen.size();
  }
  EXPECT_EQ(std::ranges::count(seen, '\n'), 20'001);
}

TEST_F(GuestServer, WithoutAKeeperAFloodDoesNotWait) {
  ExecRequest request = shell("seq 1 300000; echo end");
  request.detached = true;
  connect().start(request, {});
  std::string last;
  connect().read_log({.follow = true}, [&](const Output& piece) {
    last = piece.bytes;
    return !last.ends_with("end\n");
  });
  EXPECT_TRUE(last.ends_with("end\n"));
}

// What an attached connection hears until the end.
struct Heard {
  std::string output;
  std::string error;
  Exited exited;
};

Heard listen_to(Connection& connection) {
  Heard heard;
  while (true) {
    const auto event = connection.next_of_attached();
    if (const auto* exited = std::get_if<Exited>(&event)) {
      heard.exited = *exited;
      return heard;
    }
    const Output& output = std::get<Output>(event);
    (output.stream == Stream::output ? heard.output : heard.error) += output.bytes;
  }
}

TEST_F(GuestServer, AttachedOnesTypeAndSeeUntilTheEnd) {
  ExecRequest request = shell("while read word; do echo $word; done; echo no more >&2; exit 5");
  request.detached = true;
  request.keep_input = true;
  const std::uint32_t pid = connect().start(request, {}).pid;
  ExecRequest other = shell("echo of another; sleep 60");
  other.detached = true;
  connect().start(other, {});

  Connection first = connect();
  Connection::Attached one = first.attach();
  EXPECT_EQ(one.pid, pid) << "the first that was started";
  Connection second = connect();
  Connection::Attached two = second.attach(pid);
  linux::write_all(one.input.get(), "from one\n");
  linux::write_all(two.input.get(), "from two\n");
  linux::write_all(one.input.get(), "stop\n");
  Connection signaller = connect();
  const Connection::Attached three = signaller.attach(pid);
  // Its input stays open, whoever leaves.
  one.input.reset();
  two.input.reset();
  std::string seen;
  while (seen.find("stop\n") == std::string::npos)
    seen += std::get<Output>(first.next_of_attached()).bytes;
  EXPECT_EQ(seen, "from one\nfrom two\nstop\n");
  signaller.send_signal(SIGTERM);

  EXPECT_EQ(listen_to(first).exited.status.signal, SIGTERM);
  const Heard heard = listen_to(second);
  EXPECT_EQ(heard.output, "from one\nfrom two\nstop\n");
  EXPECT_EQ(heard.exited.status.signal, SIGTERM);
  EXPECT_THROW(connect().attach(pid), Error);
}

TEST_F(GuestServer, AnAttachedOneSeesTheLastWords) {
  ExecRequest request = shell("read go; seq 1 5000; echo bye >&2; exit 7");
  request.detached = true;
  request.keep_input = true;
  connect().start(request, {});
  Connection connection = connect();
  linux::write_all(connection.attach().input.get(), "\n");

  const Heard heard = listen_to(connection);
  EXPECT_TRUE(heard.output.ends_with("\n5000\n"));
  EXPECT_EQ(heard.error, "bye\n");
  EXPECT_EQ(heard.exited.status.code, 7);
  // And may be used for something else then.
  EXPECT_EQ(connection.run(shell("exit 3"), {}).status.code, 3);
}

TEST_F(GuestServer, TheEndOfTheMainCommandIsHeardAndRemembered) {
  Connection early = connect();
  early.ask_for_end();
  EXPECT_THROW(early.wait(), Error) << "there is none yet";
  ExecRequest request = shell("trap 'exit 9' TERM; echo up; while :; do sleep 0.02; done");
  request.main = true;
  EXPECT_THROW(connect().start(request, {}), Error) << "it must be detached";
  request.detached = true;
  connect().start(request, {});
  EXPECT_THROW(connect().start(request, {}), Error) << "there is one already";
  connect().read_log({.follow = true}, [](const Output&) { return false; });  // its trap is set

  Connection first = connect();
  first.ask_for_end();
  Connection second = connect();
  second.ask_for_end();
  EXPECT_FALSE(first.wait(Deadline::after(Duration(0)))) << "it runs";
  second.send_signal(SIGTERM, /*to_group=*/false);
  EXPECT_EQ(first.wait()->status.code, 9);
  EXPECT_EQ(second.wait()->status.code, 9);
  Connection late = connect();
  late.ask_for_end();
  EXPECT_EQ(late.wait()->status.code, 9);
  EXPECT_EQ(late.run(shell("exit 3"), {}).status.code, 3);
}

TEST_F(GuestServer, FilesAreReadFromTheirEnd) {
  const std::string& folder = folder_path_;
  connect().run(shell("cd " + folder + "; printf 0123456789 > file; ln -s file link; mkfifo pipe"),
                {});
  EXPECT_EQ(connect().read_file(folder + "/file", 4), "6789");
  EXPECT_EQ(connect().read_file(folder + "/file", 100), "0123456789");
  EXPECT_EQ(connect().read_file(folder + "/link", 2), "89");
  for (const std::string& path : {folder + "/pipe", folder + "/none", folder})
    EXPECT_THROW(connect().read_file(path, 100), Error) << path;
  EXPECT_THROW(connect().read_file(folder + "/file", kMostFileBytes + 1), Error);
}

TEST_F(GuestServer, AMainCommandThatCannotStartMayBeTriedAgain) {
  ExecRequest request;
  request.command = {"/no/such/program"};
  request.detached = true;
  request.main = true;
  EXPECT_THROW(connect().start(request, {}), Error);
  request.command = {"/bin/true"};
  connect().start(request, {});
  Connection connection = connect();
  connection.ask_for_end();
  EXPECT_EQ(connection.wait()->status.code, 0);
}

TEST_F(GuestServer, ADetachedTerminalIsOneForWhoAttaches) {
  ExecRequest request = shell("read go; test -t 0 && stty size; exit 4");
  request.detached = true;
  request.terminal = true;
  request.rows = 20;
  request.columns = 70;
  connect().start(request, {});
  Connection connection = connect();
  const Connection::Attached attached = connection.attach();
  linux::set_window_size(attached.input.get(), 33, 77);
  linux::write_all(attached.input.get(), "go\r");

  const Heard heard = listen_to(connection);
  EXPECT_NE(heard.output.find("33 77"), std::string::npos) << heard.output;
  EXPECT_EQ(heard.exited.status.code, 4);
}

TEST_F(GuestServer, WhoDoesNotReadBlocksNobody) {
  ExecRequest request = shell("read go; seq 1 500000; echo end; exit 6");
  request.detached = true;
  request.keep_input = true;
  connect().start(request, {});
  Connection sleeper = connect();
  const Connection::Attached asleep = sleeper.attach();
  Connection reader = connect();
  reader.attach();
  linux::write_all(asleep.input.get(), "\n");

  const Heard heard = listen_to(reader);
  EXPECT_EQ(heard.exited.status.code, 6);
  EXPECT_TRUE(heard.output.ends_with("end\n"));
  // It missed some, and hears of the end.
  const Heard missed = listen_to(sleeper);
  EXPECT_LT(missed.output.size(), 3'000'000u);
  EXPECT_TRUE(missed.output.ends_with("end\n"));
  EXPECT_EQ(missed.exited.status.code, 6);
}

// The end may be the one message that does not fit any more.
TEST_F(GuestServer, WhoReadsLateHearsOfTheEndHoweverMuchCameBefore) {
  for (std::size_t pieces = 1; pieces <= 16; ++pieces) {
    ExecRequest request =
        shell(fmt::format("read go; head -c {} /dev/zero; exit 6", pieces << 14U));
    request.detached = true;
    request.keep_input = true;
    connect().start(request, {});
    Connection late = connect();
    const Connection::Attached attached = late.attach();
    Connection reader = connect();
    reader.attach();
    linux::write_all(attached.input.get(), "\n");
    EXPECT_EQ(listen_to(reader).exited.status.code, 6);

    EXPECT_EQ(listen_to(late).exited.status.code, 6) << pieces;
  }
}

TEST_F(GuestServer, ThereMustBeSomethingToAttachTo) {
  Connection running = connect();
  const std::uint32_t pid = running.start(shell("sleep 60"), {}).pid;
  for (const std::uint32_t wrong : {0u, pid, 999'999u}) {
    try {
      connect().attach(wrong);
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::not_found);
    }
  }
}

TEST_F(GuestServer, TakesACommandLineOfAMegabyte) {
  ExecRequest request = shell("echo ${#LONG1} $#");
  for (int i = 1; i <= 10; ++i) {
    request.environment.push_back("LONG" + std::to_string(i) + "=" + std::string(100'000, 'x'));
  }
  request.command.push_back("zero");
  request.command.push_back("one");

  EXPECT_EQ(run(request).output, "100000 1\n");
}

TEST_F(GuestServer, TellsOfPortsAndConnectsToThem) {
  linux::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(listener.get(), 1), 0);  // on a port that the kernel chooses
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);

  EXPECT_TRUE(std::ranges::binary_search(connect().ports(), port));
  const linux::Fd near = connect().connect(port);
  const linux::Fd far(::accept(listener.get(), nullptr, nullptr));
  linux::write_all(near.get(), "hello");
  char text[5];
  EXPECT_EQ(::recv(far.get(), text, 5, MSG_WAITALL), 5);

  Connection follower = connect();
  int seen = 0;
  follower.follow_ports([&](const std::vector<std::uint16_t>& ports) {
    const bool listed = std::ranges::binary_search(ports, port);
    if (++seen == 1) {
      EXPECT_TRUE(listed);
      listener.reset();
      return true;
    }
    return listed;  // until it is gone
  });
  EXPECT_THROW(connect().connect(port), Error);
}

// What a resolver calls localhost may be ::1 alone, and some servers take one address.
TEST_F(GuestServer, FindsWhoListensOnOneAddress) {
  sockaddr_in6 six{.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  sockaddr_in four{.sin_family = AF_INET};
  four.sin_addr.s_addr = htonl(0x7f000203);
  const auto check = [&](sockaddr* address, socklen_t size) {
    const linux::Fd listener(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), address, size) != 0 && errno == EADDRNOTAVAIL)
      GTEST_SKIP() << "this machine has no IPv6";
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), address, &size), 0);
    const std::uint16_t port = ntohs(reinterpret_cast<sockaddr_in*>(address)->sin_port);
    const linux::Fd near = connect().connect(port);
    const linux::Fd far(::accept(listener.get(), nullptr, nullptr));
    linux::write_all(near.get(), "hello");
    char text[5];
    EXPECT_EQ(::recv(far.get(), text, 5, MSG_WAITALL), 5);
  };
  check(reinterpret_cast<sockaddr*>(&four), sizeof four);
  check(reinterpret_cast<sockaddr*>(&six), sizeof six);
}

TEST_F(GuestServer, IsConfiguredOnceAndAtOnce) {
  Configuration configuration;
  configuration.environment = {"FROM_SANDBOX=no", "TENANT=alice"};
  configuration.directory = folder_path_;
  configuration.files = {{.path = folder_path_ + "/deep/er/key", .content = "secret", .mode = 0440},
                         {.path = "relative", .content = "x"}};

  // One file that is no good, and nothing has happened.
  EXPECT_THROW(connect().configure(configuration, Deadline::after(60s)), Error);
  EXPECT_EQ(run(shell("echo $FROM_SANDBOX$TENANT")).output, "yes\n");
  EXPECT_FALSE(std::filesystem::exists(folder_path_ + "/deep/er/key"));

  configuration.files.pop_back();
  connect().configure(configuration, Deadline::after(60s));
  ExecRequest request = shell("pwd; echo $FROM_SANDBOX $TENANT; cat deep/er/key; ls -a deep/er");
  request.directory.clear();
  EXPECT_EQ(run(request).output, folder_path_ + "\nno alice\nsecret.\n..\nkey\n");
  EXPECT_THROW(connect().configure({}, Deadline::after(60s)), Error);
}

TEST_F(GuestServer, ServesManyClientsAtOnce) {
  std::vector<Connection> connections;
  for (int i = 0; i < 100; ++i) connections.push_back(connect());
  for (Connection& connection : connections) connection.start(shell("sleep 0.05; exit 4"), {});
  for (Connection& connection : connections) {
    EXPECT_EQ(connection.wait(Deadline::after(30s))->status.code, 4);
  }
}

}  // namespace
}  // namespace hearth::guest
