#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/error.h"
#include "model/json.h"

namespace hearth::model {
namespace {

// Events instead of the library's node graph: half the memory, and aliases can be refused before
// anything is made of them.
class JsonFromYaml final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { put(mark, nullptr); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(Code::invalid, "YAML line {}: aliases are not allowed", mark.line + 1);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    if (!levels_.empty() && levels_.back().value.is_object() && !levels_.back().has_key) {
      enter(text);
      return;
    }
    // "!" is a quoted scalar, "?" a plain one.
    put(mark, tag == "?" ? plain_scalar(text) : Json(text));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    begin(mark, JsonArray());
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    begin(mark, JsonObject());
  }
  void OnMapEnd() override { end(); }

  ParsedJson take() { return {std::move(result_), std::move(duplicates_)}; }

 private:
  struct Level {
    Json value;
    std::string key;
    bool has_key = false;
  };

  // As YAML 1.2's core schema has it, with the spellings of YAML 1.1 that Kubernetes' own reader
  // takes for booleans left out: a country's code is no boolean.
  static Json plain_scalar(const std::string& text) {
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
      return nullptr;
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    std::int64_t integer = 0;
    const char* const digits = *begin == '+' ? begin + 1 : begin;
    if (const auto [at, error] = std::from_chars(digits, end, integer);
        error == std::errc() && at == end)
      return integer;
    double number = 0;
    const bool may_be_number = text.find_first_not_of("+-.eE0123456789") == std::string::npos;
    if (const auto [at, error] = std::from_chars(digits, end, number);
        may_be_number && error == std::errc() && at == end && std::isfinite(number))
      return number;
    return Json(text);
  }

  void enter(const std::string& key) {
    Level& level = levels_.back();
    level.key = key;
    level.has_key = true;
    if (level.value.get_object().contains(key)) duplicates_.push_back(path());
  }
  void begin(const YAML::Mark& mark, Json value) {
    if (levels_.size() >= kMostDepth)
      fail(Code::invalid, "YAML line {}: nested deeper than {} levels", mark.line + 1, kMostDepth);
    if (!levels_.empty() && levels_.back().value.is_object() && !levels_.back().has_key)
      fail(Code::invalid, "YAML line {}: a key must be a scalar", mark.line + 1);
    levels_.push_back({std::move(value), {}, false});
  }
  void end() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    put({}, std::move(value));
  }
  void put(const YAML::Mark& mark, Json value) {
    if (levels_.empty()) {
      result_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (JsonArray* array = level.value.if_array()) {
      array->push_back(std::move(value));
      return;
    }
    if (!level.has_key) fail(Code::invalid, "YAML line {}: a key must be a text", mark.line + 1);
    level.value.get_object()[level.key] = std::move(value);
    level.has_key = false;
  }
  std::string path() const {
    std::string text;
    for (const Level& level : levels_) {
      if (const JsonArray* array = level.value.if_array())
        text += fmt::format("[{}]", array->size());
      else
        text += (text.empty() ? "" : ".") + level.key;
    }
    return text;
  }

  std::vector<Level> levels_;
  std::vector<std::string> duplicates_;
  Json result_;
};

}  // namespace

ParsedJson parse_yaml(std::string_view text) {
  // yaml-cpp takes flow brackets by recursion; depth is refused before it starts.
  if (std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; }) >
          static_cast<std::ptrdiff_t>(kMostDepth) &&
      text.find_first_not_of(" \t\r\n") != std::string_view::npos &&
      text[text.find_first_not_of(" \t\r\n")] == '{')
    return parse_json(text);
  std::istringstream stream{std::string(text)};
  JsonFromYaml handler;
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(handler)) return {};
  } catch (const YAML::Exception& error) {
    fail(Code::invalid, "invalid YAML at line {}: {}", error.mark.line + 1, error.msg);
  }
  return handler.take();
}

}  // namespace hearth::model
