// A client that answers everything with nothing, for tests that care about one or two calls.
#pragma once

#include "client/client.h"

namespace hearth::client {

class SilentClient : public Client {
 public:
  Json get(const ResourceId&, std::string_view, std::string_view) override { return {}; }
  List list(const ResourceId&, const ListOptions&) override { return {}; }
  Json create(const ResourceId&, const Json&, const WriteOptions&) override { return {}; }
  Json update(const ResourceId&, const Json&, std::string_view, const WriteOptions&) override {
    return {};
  }
  Json patch(const ResourceId&, std::string_view, std::string_view, PatchKind, const Json&,
             const PatchOptions&) override {
    return {};
  }
  Json remove(const ResourceId&, std::string_view, std::string_view,
              const DeleteOptions&) override {
    return {};
  }
  Json post(const ResourceId&, std::string_view, std::string_view, std::string_view,
            const Json&) override {
    return {};
  }
  WatchEnd watch(const ResourceId&, const WatchOptions&, const std::function<void(Event)>&,
                 const std::stop_token&) override {
    return WatchEnd::closed;
  }
};

}  // namespace hearth::client
