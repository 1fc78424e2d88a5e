// Events on their way to a client: what becomes one, and in which order they come.
#include "interpreter/event_stream.h"

#include <functional>

#include <gtest/gtest.h>

#include "interpreter/testing.h"

namespace hearth::interpreter {
namespace {

// What a client gets of the events that `add` adds.
Executed events_of(const std::function<void(EventStream&)>& add) {
  serve::Listening door = serve::listen_on_loopback();
  std::vector<serve::Entrance> entrances;
  entrances.push_back({.listen = std::move(door.socket), .handler = [&](serve::Exchange& exchange) {
                         EventStream stream(exchange);
                         add(stream);
                         stream.finish();
                       }});
  const serve::Server server(std::move(entrances));
  return read_events(serve::TestClient(door.port).ask({.method = "POST", .target = "/"}));
}

using Kinds = std::vector<std::string>;

TEST(Events, OutputInQuickSuccessionIsOne) {
  const Executed executed = events_of([](EventStream& stream) {
    for (const char* text : {"1", "\n", "2", "\n"}) stream.add_output("stdout", text);
  });

  EXPECT_EQ(executed.kinds, (Kinds{"stdout", "end_of_execution"}));
  EXPECT_EQ(executed.output, "1\n2\n");
}

TEST(Events, OutputKeepsItsPlace) {
  const Executed executed = events_of([](EventStream& stream) {
    stream.add_output("stdout", "1");
    stream.add_output("stderr", "2");
    stream.add_output("stderr", "3");
    stream.add_output("stdout", "4");
    stream.add("{\"type\":\"res");
    stream.add("ult\"}\n");
    stream.add_output("stdout", "5");
    stream.add_error("E", "", "");
  });

  EXPECT_EQ(executed.kinds,
            (Kinds{"stdout", "stderr", "stdout", "result", "stdout", "error", "end_of_execution"}));
  EXPECT_EQ(executed.error_output, "23");
}

TEST(Events, OutputThatWasSentIsOver) {
  const Executed executed = events_of([](EventStream& stream) {
    stream.add_output("stdout", "1");
    stream.flush();
    EXPECT_FALSE(stream.holds_output());
    stream.add_output("stdout", "2");
    stream.send_events();
    EXPECT_TRUE(stream.holds_output());
    stream.add_output("stdout", "3");
  });

  EXPECT_EQ(executed.kinds, (Kinds{"stdout", "stdout", "end_of_execution"}));
  EXPECT_EQ(executed.output, "123");
}

}  // namespace
}  // namespace hearth::interpreter
