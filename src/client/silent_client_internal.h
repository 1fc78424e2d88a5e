// A client that answers everything with nothing, for tests that care about one or two calls.
#pragma once

#include "client/client.h"

namespace hearth::client {

class SilentClient : public Client {
 public:
  Answer get(const ResourceId&, std::string_view, std::string_view) override { return Json(); }
  List list(const ResourceId&, const ListOptions&) override { return {}; }
  Answer create(const ResourceId&, const Json&, const WriteOptions&) override { return Json(); }
  Answer update(const ResourceId&, const Json&, std::string_view, const WriteOptions&) override {
    return Json();
  }
  Answer patch(const ResourceId&, std::string_view, std::string_view, PatchKind, const Json&,
               const PatchOptions&) override {
    return Json();
  }
  Answer remove(const ResourceId&, std::string_view, std::string_view,
                const DeleteOptions&) override {
    return Json();
  }
  Answer post(const ResourceId&, std::string_view, std::string_view, std::string_view,
              const Json&) override {
    return Json();
  }
  WatchEnd watch(const ResourceId&, const WatchOptions&, const std::function<void(Event)>&,
                 const std::stop_token&) override {
    return WatchEnd::closed;
  }
};

}  // namespace hearth::client
