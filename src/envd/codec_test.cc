#include "envd/codec.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "envd/messages.h"

namespace hearth::envd {
namespace {

using namespace std::chrono_literals;

StartRequest start_request() {
  StartRequest request;
  request.process.emplace();
  request.process->cmd = "/bin/bash";
  request.process->args = {"-l", "-c", "echo \"hi\"\n"};
  request.process->envs = {{"A", "1"}, {"B", ""}};
  request.process->cwd = "";
  request.pty = Pty{.size = PtySize{.cols = 80, .rows = 24}};
  request.tag = "t";
  request.stdin_wanted = false;
  return request;
}

EntryInfo entry_info() {
  return {.name = "a.txt",
          .type = FileType::file,
          .path = "/home/user/a.txt",
          .size = 5,
          .mode = 0644,
          .permissions = "-rw-r--r--",
          .owner = "user",
          .group = "user",
          .modified_time = Time(1767323045s + 123456789ns),
          .symlink_target = std::nullopt,
          .metadata = {{"k", "v"}},
          .is_symlink = true};
}

TEST(JsonCodec, WritesAsTheMappingHasIt) {
  EXPECT_EQ(to_json(start_request()),
            R"({"process":{"cmd":"/bin/bash","args":["-l","-c","echo \"hi\"\n"],)"
            R"("envs":{"A":"1","B":""},"cwd":""},"pty":{"size":{"cols":80,"rows":24}},)"
            R"("tag":"t","stdin":false})");
  EXPECT_EQ(
      to_json(EntryResponse{.entry = entry_info()}),
      R"({"entry":{"name":"a.txt","type":"FILE_TYPE_FILE","path":"/home/user/a.txt","size":"5",)"
      R"("mode":420,"permissions":"-rw-r--r--","owner":"user","group":"user",)"
      R"("modifiedTime":"2026-01-02T03:04:05.123456789Z","metadata":{"k":"v"},"isSymlink":true}})");
}

TEST(JsonCodec, LeavesDefaultsOutAndKeepsEmptyMessages) {
  EXPECT_EQ(to_json(Empty{}), "{}");
  EXPECT_EQ(to_json(ListResponse{}), "{}");
  ProcessEvent end;
  end.end = EndEvent{.exit_code = {0}, .exited = true, .status = "exit status 0"};
  EXPECT_EQ(to_json(ProcessResponse{.event = end}),
            R"({"event":{"end":{"exited":true,"status":"exit status 0"}}})");
  ProcessEvent quiet;
  quiet.keepalive.emplace();
  EXPECT_EQ(to_json(ProcessResponse{.event = quiet}), R"({"event":{"keepalive":{}}})");
}

TEST(JsonCodec, ReadsBothSpellingsAndBothKindsOfNumbers) {
  const auto watch = from_json<WatchRequest>(R"({"include_entry":true,"allowNetworkMounts":true})");
  EXPECT_TRUE(watch.include_entry);
  EXPECT_TRUE(watch.allow_network_mounts);
  EXPECT_EQ(from_json<SelectRequest>(R"({"process":{"pid":"12"}})").process->pid, 12U);
  EXPECT_EQ(from_json<SelectRequest>(R"({"process":{"pid":12}})").process->pid, 12U);
  EXPECT_EQ(from_json<SelectRequest>(R"({"process":{"pid":1.2e1}})").process->pid, 12U);
  EXPECT_EQ(from_json<EntryInfo>(R"({"size":7})").size, 7);
  EXPECT_EQ(from_json<SendSignalRequest>(R"({"signal":"SIGNAL_SIGKILL"})").signal, Signal::kill);
  EXPECT_EQ(from_json<SendSignalRequest>(R"({"signal":15})").signal, Signal::terminate);
}

TEST(JsonCodec, PassesOverWhatItDoesNotKnow) {
  const auto request =
      from_json<PathRequest>(R"({"new":{"deep":[1,2,{"x":null}]},"path":"a","other":1e99})");
  EXPECT_EQ(request.path, "a");
  EXPECT_EQ(from_json<PathRequest>(R"({"path":null})").path, "");
}

TEST(JsonCodec, ReadsBase64OfEitherAlphabet) {
  const auto bytes = [](const char* text) {
    return from_json<SendInputRequest>(fmt::format(R"({{"input":{{"stdin":"{}"}}}})", text))
        .input->in->data;
  };
  EXPECT_EQ(bytes("aGkK"), "hi\n");
  EXPECT_EQ(bytes("YQ=="), "a");
  EXPECT_EQ(bytes("YQ"), "a");
  EXPECT_EQ(bytes("-_-_"), "\xfb\xff\xbf");
  EXPECT_THROW(bytes("a b"), Error);
}

TEST(JsonCodec, RefusesWhatDoesNotFit) {
  for (const char* text :
       {"", "[]", "{", R"({"path":1})", R"({"path":"\ud800"})", R"({"path":"a"} x)"}) {
    EXPECT_THROW(from_json<PathRequest>(text), Error) << text;
  }
  for (const char* pid : {"-1", "4294967296", "1.5", "\"x\"", "\"\"", "true", "1e300", "{}"}) {
    EXPECT_THROW(from_json<SelectRequest>(fmt::format(R"({{"process":{{"pid":{}}}}})", pid)), Error)
        << pid;
  }
  EXPECT_THROW(from_json<SendSignalRequest>(R"({"signal":"SIGNAL_SIGHUP"})"), Error);
  EXPECT_THROW(from_json<StartRequest>(R"({"process":{"envs":{"A":1}}})"), Error);
  EXPECT_THROW(from_json<StartRequest>(R"({"process":{"args":"ls"}})"), Error);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"x":)";
  EXPECT_THROW(from_json<PathRequest>(deep), Error);
}

TEST(ProtoCodec, WritesTheBytesThatOthersWrite) {
  EXPECT_EQ(to_proto(SelectRequest{.process = ProcessSelector{.pid = 300, .tag = {}}}),
            std::string("\x0a\x03\x08\xac\x02", 5));
  EXPECT_EQ(to_proto(WatchRequest{.path = "ab", .recursive = true}), std::string("\x0a\x02"
                                                                                 "ab\x10\x01",
                                                                                 6));
  // exit_code is a sint32: -1 is one byte.
  ProcessEvent event;
  event.end = EndEvent{.exit_code = {-1}, .exited = false, .status = "", .error = std::nullopt};
  EXPECT_EQ(to_proto(ProcessResponse{.event = event}), std::string("\x0a\x04\x1a\x02\x08\x01", 6));
  // A member of a oneof is written also when it is a default.
  EXPECT_EQ(to_proto(SelectRequest{.process = ProcessSelector{.pid = 0, .tag = {}}}),
            std::string("\x0a\x02\x08\x00", 4));
}

TEST(ProtoCodec, ReadsWhatItWrote) {
  const auto start = from_proto<StartRequest>(to_proto(start_request()));
  EXPECT_EQ(to_json(start), to_json(start_request()));
  const auto entry = from_proto<EntryInfo>(to_proto(entry_info()));
  EXPECT_EQ(to_json(entry), to_json(entry_info()));
  EndEvent end{.exit_code = {INT32_MIN}, .exited = true, .status = "s", .error = ""};
  ProcessEvent event;
  event.end = end;
  const auto again = from_proto<ProcessResponse>(to_proto(ProcessResponse{.event = event}));
  EXPECT_EQ(again.event->end->exit_code.value, INT32_MIN);
  EXPECT_EQ(again.event->end->error, "");
}

TEST(ProtoCodec, PassesOverWhatItDoesNotKnow) {
  // Fields 15 (varint), 14 (64 bit), 13 (counted), 12 (32 bit), then path.
  const std::string bytes("\x78\x01\x71--------\x6a\x02xx\x65----\x0a\x01p", 23);
  EXPECT_EQ(from_proto<PathRequest>(bytes).path, "p");
}

TEST(ProtoCodec, NeverReadsPastTheEnd) {
  for (const std::string_view bytes :
       {std::string_view("\x0a"),
        std::string_view("\x0a\x05"
                         "abc"),
        std::string_view("\x71--"),
        std::string_view("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), std::string_view("\x0b"),
        std::string_view("\x08\x01")}) {
    EXPECT_THROW(from_proto<PathRequest>(bytes), Error);
  }
}

}  // namespace
}  // namespace hearth::envd
