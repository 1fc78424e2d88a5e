#include "node/images.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time_text.h"
#include "client/kinds.h"
#include "model/meta.h"
#include "node/runtime_sink.h"
#include "runtime/client.h"

namespace hearth::node {
namespace {

using model::text_at;
using std::chrono::seconds;

constexpr Duration kFirstPause = seconds(10);
constexpr Duration kMostPause = seconds(300);
// How long a list of images is believed. One that names what is wanted and is wrong costs a failed
// start; one that does not is read again.
constexpr Duration kListLife = seconds(2);
// "Always" asks the registry whether a tag has moved; not for each of a hundred pods at once.
constexpr Duration kFreshFor = seconds(10);
constexpr std::size_t kMostRemembered = 10000;

class LogProgress final : public registry::Progress {
 public:
  void report(const registry::LayerProgress&) override {}
  void note(const std::string& text) override { log::info("image pull", {{"note", text}}); }
};

class RuntimeSource final : public ImageSource {
 public:
  RuntimeSource(std::string state_dir, registry::PullOptions pull)
      : state_dir_(std::move(state_dir)), pull_(std::move(pull)) {}

  std::vector<image::Image> list() override {
    return runtime::RuntimeClient(state_dir_).list_images();
  }
  // On a connection of its own: layers take long, and belong to the connection until an image
  // names them.
  image::Image pull(const registry::Reference& reference,
                    const registry::DockerConfig& credentials) override {
    registry::PullOptions options = pull_;
    auto& entries = options.docker_config.entries;
    // The pod's come first: where both are as specific, they win.
    entries.insert(entries.begin(), credentials.entries.begin(), credentials.entries.end());
    runtime::RuntimeClient runtime(state_dir_);
    RuntimeSink sink(runtime);
    LogProgress progress;
    return registry::pull(reference, options, sink, progress);
  }

 private:
  const std::string state_dir_;
  const registry::PullOptions pull_;
};

image::Image host_image() {
  image::Image image;
  image.name = kHostImage;
  return image;
}

// By its full name, by the name as written, or by a whole id.
const image::Image* find_image(const std::vector<image::Image>& images, std::string_view word,
                               const std::string& full) {
  const auto found = std::ranges::find_if(images, [&](const image::Image& image) {
    return image.name == full || image.name == word || image.id == word;
  });
  return found == images.end() ? nullptr : &*found;
}

ImageOutcome refused(std::string_view reason, std::string message, std::string_view event_reason) {
  ImageOutcome outcome;
  outcome.reason = reason;
  outcome.event = message;
  outcome.event_reason = event_reason;
  outcome.message = std::move(message);
  outcome.retry_after = kMostPause;
  return outcome;
}

ImageOutcome present(image::Image image, std::string_view word) {
  ImageOutcome outcome;
  outcome.image = std::move(image);
  if (word != kHostImage)
    outcome.event = fmt::format("Container image \"{}\" already present on machine", word);
  return outcome;
}

std::string seconds_text(Duration took) {
  return fmt::format("{:.3f}s", std::chrono::duration<double>(took).count());
}

// One pull, and everybody who waits for it.
struct Flight {
  bool is_over = false;
  std::optional<image::Image> image;
  std::string problem;
};

struct Pause {
  Duration length{};
  Time until;
  std::string problem;
};

}  // namespace

std::unique_ptr<ImageSource> make_runtime_image_source(std::string state_dir,
                                                       registry::PullOptions pull) {
  return std::make_unique<RuntimeSource>(std::move(state_dir), std::move(pull));
}

struct Images::State {
  client::Client& client;
  ImageSource& source;
  const Clock& clock;

  std::mutex mutex;  // guards what follows
  std::condition_variable landed;
  std::vector<image::Image> images;
  Time listed;
  std::map<std::string, std::shared_ptr<Flight>> flights;       // by name and credentials
  std::map<std::string, Time> fresh;                            // the same; when it was pulled
  std::map<std::pair<std::string, std::string>, Pause> pauses;  // by pod and image

  // What is here, read anew when it is old, or `word` is not in it.
  std::optional<image::Image> find(std::string_view word, const std::string& full);
  void relist();
  std::optional<ImageOutcome> check_pause(const std::string& pod, const std::string& word);
  ImageOutcome record_failure(const std::string& pod, const std::string& word,
                              const std::string& problem);
  registry::DockerConfig credentials_of(const Json& pod);
  void add_secret(registry::DockerConfig& all, std::string_view ns, std::string_view name);
  std::shared_ptr<Flight> fly(const std::string& key, const registry::Reference& reference,
                              const registry::DockerConfig& credentials);
};

namespace {

std::string policy_of(const Json& container) {
  const std::string_view policy = text_at(container, {"imagePullPolicy"});
  return std::string(policy.empty() ? "IfNotPresent" : policy);
}

std::string flight_key(const std::string& name, const registry::DockerConfig& credentials) {
  std::string key = name;
  for (const auto& entry : credentials.entries)
    for (const std::string* part : {&entry.host, &entry.path, &entry.credentials.username,
                                    &entry.credentials.password, &entry.credentials.identity_token})
      key += '\n' + *part;
  return key;
}

}  // namespace

void Images::State::relist() {
  std::vector<image::Image> now = source.list();
  const std::lock_guard lock(mutex);
  images = std::move(now);
  listed = clock.now();
}

std::optional<image::Image> Images::State::find(std::string_view word, const std::string& full) {
  {
    const std::lock_guard lock(mutex);
    const image::Image* found = find_image(images, word, full);
    if (found && clock.now() - listed < kListLife) return *found;
  }
  relist();
  const std::lock_guard lock(mutex);
  const image::Image* found = find_image(images, word, full);
  return found ? std::optional(*found) : std::nullopt;
}

std::optional<ImageOutcome> Images::State::check_pause(const std::string& pod,
                                                       const std::string& word) {
  const std::lock_guard lock(mutex);
  const auto found = pauses.find({pod, word});
  if (found == pauses.end() || clock.now() >= found->second.until) return std::nullopt;
  ImageOutcome outcome;
  outcome.reason = "ImagePullBackOff";
  outcome.event = fmt::format("Back-off pulling image \"{}\"", word);
  outcome.event_reason = "BackOff";
  outcome.message = fmt::format("{}: ErrImagePull: {}", outcome.event, found->second.problem);
  outcome.retry_after = found->second.until - clock.now();
  return outcome;
}

ImageOutcome Images::State::record_failure(const std::string& pod, const std::string& word,
                                           const std::string& problem) {
  const std::lock_guard lock(mutex);
  if (pauses.size() >= kMostRemembered) pauses.clear();
  Pause& pause = pauses[{pod, word}];
  pause.length = pause.length == Duration() ? kFirstPause : std::min(pause.length * 2, kMostPause);
  pause.until = clock.now() + pause.length;
  pause.problem = fmt::format("failed to pull image \"{}\": {}", word, problem);
  ImageOutcome outcome;
  outcome.reason = "ErrImagePull";
  outcome.event = fmt::format("Failed to pull image \"{}\": {}", word, problem);
  outcome.message = pause.problem;
  outcome.retry_after = seconds(1);  // only to say that it waits now
  return outcome;
}

void Images::State::add_secret(registry::DockerConfig& all, std::string_view ns,
                               std::string_view name) {
  const auto secret = client.find(client::kSecrets, ns, name);
  if (!secret) return;  // as elsewhere: the image may need none
  for (const std::string_view key : {".dockerconfigjson", ".dockercfg"}) {
    const auto text = base64_decode(text_at(*secret, {"data", key}));
    if (!text || text->empty()) continue;
    try {
      const std::string json = key == ".dockercfg" ? "{\"auths\":" + *text + "}" : *text;
      const registry::DockerConfig config = registry::parse_docker_config(json);
      // Its helpers are programs of ours that a pod may not name.
      all.entries.insert(all.entries.end(), config.entries.begin(), config.entries.end());
    } catch (const Error& error) {
      log::warning("pull secret is no good",
                   {{"namespace", ns}, {"secret", name}, {"why", error.what()}});
    }
  }
}

registry::DockerConfig Images::State::credentials_of(const Json& pod) {
  registry::DockerConfig all;
  const std::string_view ns = model::namespace_of(pod);
  const auto add_all = [&](const model::JsonArray* secrets) {
    if (!secrets) return;
    for (const Json& one : *secrets)
      if (const std::string_view name = text_at(one, {"name"}); !name.empty())
        add_secret(all, ns, name);
  };
  const model::JsonArray* own = model::array_at(pod, {"spec", "imagePullSecrets"});
  if (own && !own->empty()) {
    add_all(own);
    return all;
  }
  std::string_view name = text_at(pod, {"spec", "serviceAccountName"});
  if (name.empty()) name = "default";
  if (const auto account = client.find(client::kServiceAccounts, ns, name))
    add_all(model::array_at(*account, {"imagePullSecrets"}));
  return all;
}

// Whoever comes first pulls; all others wait for that.
std::shared_ptr<Flight> Images::State::fly(const std::string& key,
                                           const registry::Reference& reference,
                                           const registry::DockerConfig& credentials) {
  std::unique_lock lock(mutex);
  if (const auto found = flights.find(key); found != flights.end()) {
    const std::shared_ptr<Flight> flight = found->second;
    landed.wait(lock, [&] { return flight->is_over; });
    return flight;
  }
  const auto flight = std::make_shared<Flight>();
  flights.emplace(key, flight);
  lock.unlock();
  std::optional<image::Image> image;
  std::string problem;
  try {
    image = source.pull(reference, credentials);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  lock.lock();
  flight->image = std::move(image);
  flight->problem = std::move(problem);
  flight->is_over = true;
  flights.erase(key);
  if (flight->image) {
    if (fresh.size() >= kMostRemembered) fresh.clear();
    fresh[key] = clock.now();
    listed = Time();  // it is not in the list we have
  }
  landed.notify_all();
  return flight;
}

Images::Images(client::Client& client, ImageSource& source, const Clock& clock)
    : state_(new State{client, source, clock, {}, {}, {}, {}, {}, {}, {}}) {}

Images::~Images() = default;

std::optional<ImageOutcome> Images::look(const Json& pod, const Json& container) {
  const std::string word(text_at(container, {"image"}));
  if (word == kHostImage) return present(host_image(), word);
  std::string full = word;
  if (!image::is_digest(word)) {
    try {
      full = registry::parse_reference(word).text();
    } catch (const Error& error) {
      return refused("InvalidImageName",
                     fmt::format("Failed to apply default image tag \"{}\": couldn't parse image "
                                 "name \"{}\": {}",
                                 word, word, error.what()),
                     "InspectFailed");
    }
  }
  const std::string policy = policy_of(container);
  if (policy != "Always" || image::is_digest(word)) {
    if (auto found = state_->find(word, full)) return present(std::move(*found), word);
    if (policy == "Never" || image::is_digest(word))
      return refused(
          "ErrImageNeverPull",
          fmt::format("Container image \"{}\" is not present with pull policy of {}", word, policy),
          "ErrImageNeverPull");
  }
  return state_->check_pause(std::string(model::uid_of(pod)), word);
}

ImageOutcome Images::ensure(const Json& pod, const Json& container) {
  if (auto known = look(pod, container)) return std::move(*known);
  const std::string word(text_at(container, {"image"}));
  const registry::Reference reference = registry::parse_reference(word);
  const registry::DockerConfig credentials = state_->credentials_of(pod);
  const std::string key = flight_key(reference.text(), credentials);
  const Time begun = state_->clock.now();
  bool is_fresh = false;
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->fresh.find(key);
    is_fresh = found != state_->fresh.end() && begun - found->second < kFreshFor;
  }
  if (is_fresh)
    if (auto found = state_->find(word, reference.text())) return present(std::move(*found), word);
  const std::shared_ptr<Flight> flight = state_->fly(key, reference, credentials);
  const std::string uid(model::uid_of(pod));
  if (!flight->image) return state_->record_failure(uid, word, flight->problem);
  ImageOutcome outcome;
  outcome.image = flight->image;
  outcome.pulled = true;
  const std::string took = seconds_text(state_->clock.now() - begun);
  outcome.event = fmt::format(
      "Successfully pulled image \"{}\" in {} ({} including waiting). Image size: {} bytes.", word,
      took, took, flight->image->bytes);
  const std::lock_guard lock(state_->mutex);
  state_->pauses.erase({uid, word});
  return outcome;
}

void Images::forget(std::string_view pod_uid) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->pauses, [&](const auto& entry) { return entry.first.first == pod_uid; });
}

std::vector<image::Image> Images::list() {
  state_->relist();
  const std::lock_guard lock(state_->mutex);
  return state_->images;
}

}  // namespace hearth::node
