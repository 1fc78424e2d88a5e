// What happens to a pod while its keeper does something else: noted here, read at its next step.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/guarded.h"
#include "model/meta.h"
#include "node/ends.h"
#include "node/images.h"
#include "node/probes.h"

namespace hearth::node {

struct MainEnded {
  std::string sandbox;
  SandboxEnd end;
};
struct ImageFound {
  std::size_t container = 0;
  ImageOutcome outcome;
};
struct Probed {
  std::string sandbox;
  ProbeKind kind = ProbeKind::readiness;
  unsigned round = 0;
  ProbeResult result;
};
struct Hooked {
  std::string sandbox;
  bool is_stop = false;  // preStop; else postStart
  ProbeResult result;
};
struct Evicted {
  std::string message;
};
using News = std::variant<MainEnded, ImageFound, Probed, Hooked, Evicted>;
// Outlives the keeper for as long as somebody may write.
struct Mailbox {
  model::Key key;
  std::function<void(const model::Key& key)> wake;
  Guarded<std::vector<News>> news;

  void post(News one);
};

}  // namespace hearth::node
