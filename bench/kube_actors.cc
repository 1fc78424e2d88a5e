#include "bench/kube_actors.h"

#include <atomic>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "bench/interrupt.h"

namespace hearth::bench {
namespace {

const client::ResourceId kConfigMaps{"", "v1", "configmaps"};

// A kilobyte of settings, as people keep them.
std::string payload() {
  std::string text;
  while (text.size() < 1024) text += "some.setting = of a program; ";
  return text;
}

}  // namespace

std::string config_map(std::string_view ns, std::string_view name, std::string_view extra) {
  return fmt::format(
      R"({{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{}","namespace":"{}",)"
      R"("labels":{{"app":"bench"}}}},"data":{{"settings":"{}","extra":"{}"}}}})",
      name, ns, payload(), extra);
}

std::string target_of(std::string_view ns, std::string_view name) {
  return fmt::format("/api/v1/namespaces/{}/configmaps{}{}", ns, name.empty() ? "" : "/", name);
}

std::string new_name() {
  static std::atomic<unsigned> last = 0;
  return fmt::format("object-{}", ++last);
}

Actor hearth_actor(const ApiServer& server) {
  const auto client = std::make_shared<SurfaceClient>(server.connect());
  const std::string own = new_name();
  client->ask(kube_request("POST", target_of("default"), config_map("default", own, "")));
  return {.create =
              [client] {
                const std::string name = new_name();
                client->ask(
                    kube_request("POST", target_of("default"), config_map("default", name, "")));
              },
          .update =
              [client, own] {
                client->ask(kube_request("PUT", target_of("default", own),
                                         config_map("default", own, new_name())));
              },
          .get = [client, own] { client->ask(kube_request("GET", target_of("default", own))); }};
}

Actor local_actor(client::Client& client) {
  const std::string own = new_name();
  const auto object = [](const std::string& name, const std::string& extra) {
    return model::parse_json(config_map("default", name, extra)).value;
  };
  client.create(kConfigMaps, object(own, ""));
  return {
      .create = [&client, object] { client.create(kConfigMaps, object(new_name(), "")); },
      .update = [&client, object, own] { client.update(kConfigMaps, object(own, new_name()), ""); },
      .get = [&client, own] { client.get(kConfigMaps, "default", own); }};
}

Actor store_actor(store::Store& store, const std::string& value) {
  const auto write = [&store, &value](const std::string& name, store::Revision expected) {
    store::Write change;
    change.key = {"configmaps", "default", name};
    change.expected = expected;
    change.text = value;
    change.durability = store::Durability::power;
    return store.write(std::move(change)).object->revision;
  };
  const std::string own = new_name();
  const auto seen = std::make_shared<store::Revision>(write(own, 0));
  return {.create = [write] { write(new_name(), 0); },
          .update = [write, own, seen] { *seen = write(own, *seen); },
          .get = [&store, own] { store.find({"configmaps", "default", own}); }};
}

Actor etcd_actor(const Etcd& etcd, const std::string& value) {
  const auto client = std::make_shared<EtcdClient>(etcd.connect());
  const std::string own = "/default/" + new_name();
  client->put(own, value);
  return {.create = [&value, client] { client->put("/default/" + new_name(), value); },
          .update = [&value, client, own] { client->put(own, value); },
          .get = [client, own] { client->get(own); }};
}

double write_rate(const std::vector<Actor>& actors, Duration time) {
  std::atomic<std::size_t> count = 0;
  std::atomic<bool> failed = false;
  const Moment begin = now();
  {
    std::vector<std::jthread> threads;
    for (const Actor& actor : actors) {
      threads.emplace_back([&] {
        try {
          while (now() - begin < time && !was_interrupted()) {
            actor.create();
            ++count;
          }
        } catch (const Error&) {
          failed = true;
        }
      });
    }
  }
  if (failed) fail(Code::internal, "a write failed");
  return static_cast<double>(count) / us_between(begin, now()) * 1e6;
}

}  // namespace hearth::bench
