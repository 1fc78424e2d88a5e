// A pod that an earlier life of this process had begun with: its sandboxes have lived on.
#include <algorithm>

#include "base/error.h"
#include "guest/client.h"
#include "model/meta.h"
#include "node/keeper.h"
#include "node/sandbox_ids.h"

namespace hearth::node {
namespace {

constexpr int kKilled = 137;

}  // namespace

void Keeper::adopt(const Json& pod, const std::vector<runtime::Sandbox>& found) {
  bool is_any_alive = false;
  for (const runtime::Sandbox& sandbox : found) {
    sandboxes_.insert(sandbox.id);
    if (sandbox.state != runtime::State::exited && !sandbox.address.empty()) {
      known_.address = sandbox.address;
      is_any_alive = true;
    }
  }
  if (!is_any_alive && !known_.is_ending) known_.address.clear();  // the next one has another
  for (Container& container : known_.containers) {
    std::map<unsigned, const runtime::Sandbox*> attempts;
    for (const runtime::Sandbox& sandbox : found) {
      const auto name = parse_sandbox_name(sandbox.id);
      if (name && name->container_hash == model::name_hash(container.name))
        attempts.emplace(name->attempt, &sandbox);
    }
    adopt_container(pod, container, attempts);
  }
}

void Keeper::adopt_container(const Json& pod, Container& container,
                             const std::map<unsigned, const runtime::Sandbox*>& attempts) {
  const bool is_here = !attempts.empty() && attempts.rbegin()->first >= container.attempt;
  if (!is_here) {
    if (container.stage != Stage::running) return;
    note_end(pod, container, {.how = SandboxEnd::How::vanished});
    container.end->exit_code = kKilled;
    container.end->reason = "ContainerStatusUnknown";
    container.end->message = "The container could not be located when the pod was terminated";
    return;
  }
  const auto& [attempt, sandbox] = *attempts.rbegin();
  // Its end was written down, and nothing has begun since.
  if (container.stage == Stage::terminated && attempt == container.attempt) return;
  if (container.stage == Stage::waiting && container.before &&
      container.before->sandbox == sandbox->id)
    return;
  if (container.stage == Stage::terminated) container.before = std::exchange(container.end, {});
  if (container.stage != Stage::running || attempt != container.attempt)
    container.started = sandbox->created;
  container.attempt = attempt;
  container.stage = Stage::running;
  container.sandbox = sandbox->id;
  container.has_lived = true;
  const Json& spec = spec_of(pod, container);
  const auto image = tools_.images.look(pod, spec);
  container.has_main = !image || !image->image || runs_command(spec, *image->image);
  ProbeState probes(spec, container.started, container.is_started);
  if (probes.has_probes()) {
    work_of(container).probes.emplace(std::move(probes));
  } else {
    container.is_started = container.is_ready = true;
  }
  if (sandbox->state == runtime::State::paused) {
    container.is_paused = work_of(container).is_unwatched = true;
    return;
  }
  try {
    watch_end(sandbox->id, guest::Connection(tools_.runtime.connect(sandbox->id)),
              container.has_main);
  } catch (const Error&) {
    note_end(pod, container, {.how = SandboxEnd::How::vanished});
  }
}

void Keeper::watch_end(const std::string& sandbox, guest::Connection connection, bool has_main) {
  tools_.ends.watch(sandbox, std::move(connection), has_main,
                    [mailbox = mailbox_, sandbox](const SandboxEnd& end) {
                      mailbox->post(MainEnded{.sandbox = sandbox, .end = end});
                    });
}

}  // namespace hearth::node
