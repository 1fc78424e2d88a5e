// filesystem.Filesystem on the wire.
#include <sys/stat.h>

#include <thread>

#include "envd/messages.h"
#include "envd/stream_testing.h"
#include "envd/wire_testing.h"

namespace hearth::envd {
namespace {

using namespace std::chrono_literals;

class EnvdFilesystem : public EnvdTest {
 protected:
  http::Response fs(const std::string& method, const std::string& json,
                    const http::Headers& headers = {}) const {
    return call("filesystem.Filesystem/" + method, json, headers);
  }
  std::string of_path(const std::string& name, const std::string& more = {}) const {
    return fmt::format(R"({{"path":"{}"{}}})", path(name), more);
  }
  EntryInfo stat(const std::string& name) const {
    const http::Response answer = fs("Stat", of_path(name));
    EXPECT_EQ(answer.status, 200U) << answer.body;
    return from_json<EntryResponse>(answer.body).entry.value_or(EntryInfo{});
  }
  std::vector<std::string> names(const http::Response& answer) const {
    std::vector<std::string> all;
    for (const EntryInfo& entry : from_json<ListDirResponse>(answer.body).entries)
      all.push_back(entry.path.substr(folder_.size()));
    return all;
  }
};

using Names = std::vector<std::string>;

TEST_F(EnvdFilesystem, DescribesFiles) {
  ::chmod(write("a.txt", "hello").c_str(), 0640);
  const EntryInfo info = stat("a.txt");
  EXPECT_EQ(info.name, "a.txt");
  EXPECT_EQ(info.path, path("a.txt"));
  EXPECT_EQ(info.type, FileType::file);
  EXPECT_EQ(info.size, 5);
  EXPECT_EQ(info.mode, 0640U);
  EXPECT_EQ(info.permissions, "-rw-r-----");
  EXPECT_FALSE(info.owner.empty());
  EXPECT_TRUE(info.modified_time);
  EXPECT_FALSE(info.symlink_target);
  EXPECT_EQ(stat("work").type, FileType::directory);
  EXPECT_EQ(stat("work").permissions.at(0), 'd');
}

TEST_F(EnvdFilesystem, DescribesLinksByWhereTheyLead) {
  ::chmod(write("a.txt", "hello").c_str(), 0600);
  std::filesystem::create_symlink("a.txt", path("link"));
  std::filesystem::create_symlink("nowhere", path("dangling"));
  ::mkfifo(path("fifo").c_str(), 0600);
  const EntryInfo link = stat("link");
  EXPECT_EQ(link.type, FileType::file);
  EXPECT_TRUE(link.is_symlink);
  EXPECT_FALSE(stat("a.txt").is_symlink);
  EXPECT_EQ(link.mode, 0600U);
  EXPECT_EQ(link.permissions, "Lrwxrwxrwx");
  EXPECT_EQ(link.symlink_target, std::filesystem::canonical(path("a.txt")).string());
  const EntryInfo dangling = stat("dangling");
  EXPECT_EQ(dangling.type, FileType::unspecified);
  EXPECT_TRUE(dangling.is_symlink);
  EXPECT_EQ(dangling.mode, 0U);
  EXPECT_EQ(dangling.symlink_target, path("dangling"));
  EXPECT_EQ(stat("fifo").type, FileType::unspecified);
  EXPECT_EQ(stat("fifo").permissions, "prw-------");
}

TEST_F(EnvdFilesystem, SaysWhatIsMissing) {
  const http::Response answer = fs("Stat", of_path("nope"));
  EXPECT_EQ(answer.status, 404U);
  EXPECT_EQ(answer.body,
            fmt::format(R"({{"code":"not_found","message":"file not found: {}"}})", path("nope")));
  EXPECT_EQ(fs("Stat", of_path("nope/deeper")).status, 404U);
  EXPECT_EQ(fs("ListDir", of_path("nope")).status, 404U);
  EXPECT_EQ(fs("Stat", R"({"path":"~other"})").status, 400U);
  EXPECT_EQ(
      fs("Move", fmt::format(R"({{"source":"{}","destination":"{}"}})", path("nope"), path("x/y")))
          .status,
      404U);
  EXPECT_FALSE(std::filesystem::exists(path("x")));
  const http::Response user =
      fs("Stat", of_path("work"), {{"Authorization", "Basic " + base64_encode("nobody-here:")}});
  EXPECT_EQ(user.status, 401U);
  EXPECT_EQ(user.body, R"({"code":"unauthenticated","message":"invalid username: 'nobody-here'"})");
}

TEST_F(EnvdFilesystem, GivesOldClientsWhatTheyKnow) {
  write("a", "x");
  const http::Response answer = fs("Stat", of_path("a"), {{"User-Agent", "connect-python/0.4.0"}});
  EXPECT_EQ(
      answer.body,
      fmt::format(R"({{"entry":{{"name":"a","type":"FILE_TYPE_FILE","path":"{}"}}}})", path("a")));
}

TEST_F(EnvdFilesystem, MakesDirectories) {
  const http::Response made = fs("MakeDir", of_path("one/two/three"));
  EXPECT_EQ(made.status, 200U);
  EXPECT_EQ(from_json<EntryResponse>(made.body).entry->mode, 0755U);
  const http::Response again = fs("MakeDir", of_path("one/two"));
  EXPECT_EQ(again.status, 409U);
  EXPECT_EQ(again.body,
            fmt::format(R"({{"code":"already_exists","message":"directory already exists: {}"}})",
                        path("one/two")));
  write("file", "");
  EXPECT_EQ(fs("MakeDir", of_path("file")).status, 400U);
  EXPECT_EQ(fs("MakeDir", of_path("file/below")).status, 400U);
}

TEST_F(EnvdFilesystem, ListsInOrderAndDepth) {
  for (const char* folder : {"t", "t/b", "t/b/c"}) std::filesystem::create_directory(path(folder));
  write("t/z", "");
  write("t/a", "");
  write("t/b/inner", "");
  std::filesystem::create_directory_symlink(path("t/b"), path("t/link"));
  EXPECT_EQ(names(fs("ListDir", of_path("t"))), (Names{"/t/a", "/t/b", "/t/link", "/t/z"}));
  EXPECT_EQ(names(fs("ListDir", of_path("t", R"(,"depth":2)"))),
            (Names{"/t/a", "/t/b", "/t/b/c", "/t/b/inner", "/t/link", "/t/z"}));
  // The root may be a link; what it is called stays.
  EXPECT_EQ(names(fs("ListDir", of_path("t/link"))), (Names{"/t/link/c", "/t/link/inner"}));
  EXPECT_EQ(fs("ListDir", of_path("t/b/c")).body, "{}");
  const http::Response file = fs("ListDir", of_path("t/a"));
  EXPECT_EQ(file.status, 400U);
  EXPECT_NE(file.body.find("path is not a directory: "), std::string::npos);
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_EQ(fs("ListDir", of_path("loop")).body.find(R"({"code":"failed_precondition")"), 0U);
}

TEST_F(EnvdFilesystem, ListsMoreThanItKeeps) {
  std::filesystem::create_directory(path("many"));
  for (int i = 0; i < 3000; ++i) write(fmt::format("many/{:05}", i), "");
  const http::Response answer = fs("ListDir", of_path("many"));
  EXPECT_TRUE(answer.headers.has_token("Transfer-Encoding", "chunked"));
  EXPECT_EQ(names(answer).size(), 3000U);
  const http::Response binary = ask("POST", "/filesystem.Filesystem/ListDir",
                                    to_proto(ListDirRequest{.path = path("many"), .depth = 1}),
                                    {{"Content-Type", "application/proto"}});
  EXPECT_EQ(from_proto<ListDirResponse>(binary.body).entries.size(), 3000U);
}

TEST_F(EnvdFilesystem, MovesAndRemoves) {
  write("a", "content");
  const http::Response moved = fs("Move", fmt::format(R"({{"source":"{}","destination":"{}"}})",
                                                      path("a"), path("new/folder/b")));
  EXPECT_EQ(moved.status, 200U);
  EXPECT_EQ(from_json<EntryResponse>(moved.body).entry->path, path("new/folder/b"));
  EXPECT_EQ(read(path("new/folder/b")), "content");
  EXPECT_EQ(fs("Move", fmt::format(R"({{"source":"{}","destination":"{}"}})", path("new"),
                                   path("new/below")))
                .status,
            400U);
  // What a link leads to stays.
  write("kept", "kept");
  std::filesystem::create_symlink(path("kept"), path("new/link"));
  EXPECT_EQ(fs("Remove", of_path("new")).body, "{}");
  EXPECT_FALSE(std::filesystem::exists(path("new")));
  EXPECT_EQ(read(path("kept")), "kept");
  EXPECT_EQ(fs("Remove", of_path("new")).body, "{}");
  EXPECT_EQ(fs("Remove", R"({"path":"/"})").status, 400U);
}

// Clients tell a link from what it leads to by this alone.
TEST_F(EnvdFilesystem, TellsLinksWhereverItTellsOfEntries) {
  std::filesystem::create_directory(path("t"));
  std::filesystem::create_symlink("work", path("t/link"));
  const auto listed = from_json<ListDirResponse>(fs("ListDir", of_path("t")).body).entries;
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_TRUE(listed[0].is_symlink);
  const http::Response moved = fs("Move", fmt::format(R"({{"source":"{}","destination":"{}"}})",
                                                      path("t/link"), path("t/moved")));
  EXPECT_TRUE(from_json<EntryResponse>(moved.body).entry->is_symlink);
  const http::Headers old{{"User-Agent", "connect-python/0.4.0"}};
  EXPECT_EQ(fs("Stat", of_path("t/moved"), old).body.find("isSymlink"), std::string::npos);
}

class EnvdWatch : public EnvdFilesystem {
 protected:
  TestStream watch(const std::string& name, const std::string& more = {}) const {
    return TestStream(port_, "filesystem.Filesystem/WatchDir", of_path(name, more));
  }
  static std::string event(const std::string& name, const char* type) {
    return fmt::format(R"({{"filesystem":{{"name":"{}","type":"EVENT_TYPE_{}"}}}})", name, type);
  }
  std::string create(const std::string& name, const std::string& more = {}) const {
    const http::Response answer = fs("CreateWatcher", of_path(name, more));
    EXPECT_EQ(answer.status, 200U) << answer.body;
    return answer.body;
  }
  // "CREATE a" and so on.
  Names events(const std::string& id) const {
    Names all;
    const http::Response answer = fs("GetWatcherEvents", id);
    EXPECT_EQ(answer.status, 200U) << answer.body;
    for (const auto& each : from_json<WatcherEventsResponse>(answer.body).events) {
      for (const EnumName& name : EnumNames<EventType>::all()) {
        if (name.value == static_cast<int>(each.type))
          all.push_back(std::string(name.name.substr(11)) + " " + each.name);
      }
    }
    return all;
  }
  void upload(const std::string& name) const {
    EXPECT_EQ(ask("POST", "/files?path=" + path(name), "content",
                  {{"Content-Type", "application/octet-stream"}})
                  .status,
              200U);
  }
};

TEST_F(EnvdWatch, TellsOfAnUploadInThreeEvents) {
  TestStream stream = watch("work");
  EXPECT_EQ(stream.next(), R"({"start":{}})");
  upload("work/new");
  EXPECT_EQ(stream.next(), event("new", "CREATE"));
  EXPECT_EQ(stream.next(), event("new", "CHMOD"));
  EXPECT_EQ(stream.next(), event("new", "WRITE"));
  std::filesystem::rename(path("work/new"), path("work/other"));
  EXPECT_EQ(stream.next(), event("new", "RENAME"));
  EXPECT_EQ(stream.next(), event("other", "CREATE"));
  std::filesystem::remove(path("work/other"));
  EXPECT_EQ(stream.next(), event("other", "REMOVE"));
}

TEST_F(EnvdWatch, HasEverythingThatHappenedWhenItIsAsked) {
  const std::string id = create("work");
  EXPECT_EQ(events(id), Names{});
  upload("work/f");
  EXPECT_EQ(events(id), (Names{"CREATE f", "CHMOD f", "WRITE f"}));
  EXPECT_EQ(events(id), Names{});
  EXPECT_EQ(fs("RemoveWatcher", id).body, "{}");
  const http::Response gone = fs("GetWatcherEvents", R"({"watcherId":"w1"})");
  EXPECT_EQ(gone.status, 404U);
  EXPECT_EQ(gone.body, R"({"code":"not_found","message":"watcher with id w1 not found"})");
  EXPECT_EQ(fs("RemoveWatcher", id).status, 404U);
}

TEST_F(EnvdWatch, FollowsNewFolders) {
  const std::string id = create("work", R"(,"recursive":true)");
  std::filesystem::create_directories(path("work/x/y"));
  for (int i = 0; i < 100 && events(id).empty(); ++i) std::this_thread::sleep_for(1ms);
  events(id);
  write("work/x/y/file", "1");
  EXPECT_EQ(events(id), (Names{"CREATE x/y/file", "WRITE x/y/file"}));
  // Folders keep being watched under their new names; those that leave are not.
  std::filesystem::rename(path("work/x"), path("work/renamed"));
  EXPECT_EQ(events(id), (Names{"RENAME x", "CREATE renamed"}));
  write("work/renamed/y/more", "1");
  EXPECT_EQ(events(id), (Names{"CREATE renamed/y/more", "WRITE renamed/y/more"}));
  std::filesystem::rename(path("work/renamed"), path("outside"));
  EXPECT_EQ(events(id), Names{"RENAME renamed"});
  write("outside/y/unseen", "1");
  EXPECT_EQ(events(id), Names{});
}

TEST_F(EnvdWatch, DoesNotFollowUnlessAsked) {
  const std::string id = create("work");
  std::filesystem::create_directories(path("work/x/y"));
  write("work/x/file", "1");
  EXPECT_EQ(events(id), Names{"CREATE x"});
}

TEST_F(EnvdWatch, TellsAboutTheFileIfAsked) {
  const std::string id = create("work", R"(,"includeEntry":true)");
  write("work/f", "12345");
  std::filesystem::remove(path("work/f"));
  upload("work/g");
  const auto told = from_json<WatcherEventsResponse>(fs("GetWatcherEvents", id).body).events;
  for (const auto& each : told) {
    EXPECT_EQ(each.entry.has_value(), each.name == "g") << each.name;
    if (each.entry) EXPECT_EQ(each.entry->path, path("work/g"));
  }
  EXPECT_EQ(told.back().entry->size, 7);
  std::filesystem::create_symlink("g", path("work/link"));
  const auto link = from_json<WatcherEventsResponse>(fs("GetWatcherEvents", id).body).events;
  ASSERT_EQ(link.size(), 1U);
  EXPECT_TRUE(link[0].entry->is_symlink);
}

TEST_F(EnvdWatch, SaysWhatCannotBeWatched) {
  EXPECT_EQ(watch("nope").rest(),
            fmt::format("end:{{\"error\":{{\"code\":\"not_found\",\"message\":\"path {} not "
                        "found\"}}}}\n",
                        path("nope")));
  write("file", "");
  EXPECT_EQ(fs("CreateWatcher", of_path("file")).status, 400U);
  EXPECT_EQ(fs("CreateWatcher", of_path("nope")).status, 404U);
}

TEST_F(EnvdWatch, EndsAtItsDeadlineAndStaysAliveUntilThen) {
  TestStream stream(port_, "filesystem.Filesystem/WatchDir", of_path("work"),
                    {{"Connect-Timeout-Ms", "1500"}, {"Keepalive-Ping-Interval", "1"}});
  stream.next();
  EXPECT_EQ(stream.next(), R"({"keepalive":{}})");
  EXPECT_TRUE(stream.rest().starts_with("end:{\"error\":{\"code\":\"deadline_exceeded\""));
}

}  // namespace
}  // namespace hearth::envd
