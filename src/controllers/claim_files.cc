#include "controllers/claim_files.h"

#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "controllers/claim_cold.h"

namespace hearth::controllers {
namespace {

using model::JsonObject;
using model::text_at;

JsonArray& make_array(JsonObject& in, std::string_view name) {
  Json& value = in[name];
  if (!value.is_array()) value = JsonArray();
  return value.get_array();
}

// What a pod's volume needs to show the one file under the name "file".
JsonObject source_of(const Json& file, const std::string& annotation, std::int64_t mode) {
  if (const auto secret = text_at(file, {"secretKeyRef", "name"}); !secret.empty())
    return {{"secret",
             {{"secretName", secret},
              {"items", JsonArray{{{"key", text_at(file, {"secretKeyRef", "key"})},
                                   {"path", "file"},
                                   {"mode", mode}}}}}}};
  if (const auto map = text_at(file, {"configMapKeyRef", "name"}); !map.empty())
    return {{"configMap",
             {{"name", map},
              {"items", JsonArray{{{"key", text_at(file, {"configMapKeyRef", "key"})},
                                   {"path", "file"},
                                   {"mode", mode}}}}}}};
  return {{"downwardAPI",
           {{"items",
             JsonArray{{{"path", "file"},
                        {"fieldRef",
                         {{"apiVersion", "v1"},
                          {"fieldPath", fmt::format("metadata.annotations['{}']", annotation)}}},
                        {"mode", mode}}}}}}};
}

}  // namespace

void check_file_path(std::string_view path) {
  if (!path.starts_with('/') || path.ends_with('/') || path.find('\0') != std::string_view::npos)
    fail(Code::invalid, "path '{}' of a file is not absolute", path);
  if (fmt::format("{}/", path).find("/../") != std::string::npos)
    fail(Code::invalid, "path '{}' of a file must not contain '..'", path);
}

void add_files(const Json& claim, Json& pod) {
  const JsonArray* files = model::array_at(claim, {"spec", "files"});
  if (!files || files->empty()) return;
  for (std::size_t i = 0; i < files->size(); ++i) {
    const Json& file = (*files)[i];
    check_file_path(text_at(file, {"path"}));
    const std::string name = fmt::format("claim-file-{}", i);
    const std::string annotation = fmt::format("{}{}", kFileAnnotationPrefix, i);
    JsonObject volume =
        source_of(file, annotation, model::number_at(file, {"mode"}).value_or(0644));
    if (volume.contains("downwardAPI"))
      model::make_object_at(pod, {"metadata", "annotations"})[annotation] =
          text_at(file, {"content"});
    volume["name"] = name;
    make_array(model::make_object_at(pod, {"spec"}), "volumes").push_back(std::move(volume));
    Json* container = find_container(pod.get_object()["spec"], {});
    if (!container) fail(Code::invalid, "the template has no container");
    make_array(container->get_object(), "volumeMounts")
        .push_back(JsonObject{{"name", name},
                              {"mountPath", text_at(file, {"path"})},
                              {"subPath", "file"},
                              {"readOnly", true}});
  }
}

}  // namespace hearth::controllers
