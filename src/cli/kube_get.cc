// `hearth get`, and `ls`, `show` and `delete` of claims, pools and templates.
#include <algorithm>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/kube_text.h"
#include "client/http_client.h"
#include "client/query.h"
#include "model/meta.h"
#include "model/yaml_text.h"

namespace hearth::cli {
namespace {

using model::Json;
using model::text_at;

constexpr std::string_view kTableType = "application/json;as=Table;v=v1;g=meta.k8s.io";
// A server that ends every watch at once is not asked a thousand times a second.
constexpr auto kBetweenWatches = std::chrono::milliseconds(200);

std::string cell_text(const Json& cell) {
  if (cell.is_string()) return std::string(cell.as_string());
  return cell.is_null() ? "<none>" : model::to_text(cell);
}

std::string heading_text(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

Json without_bookkeeping(Json object) {
  model::erase_at(object, {"metadata", "managedFields"});
  return object;
}

// One call of the verb: what it asks for, and how it shows the answer.
class Getter {
 public:
  explicit Getter(const GetOptions& options)
      : options_(options),
        cluster_(options.cluster),
        kind_(find_kind(options.kind, cluster_)),
        ns_(options.all_namespaces || !kind_.resource.namespaced ? "" : cluster_.ns) {}

  int run() {
    try {
      const std::string version = is_table() ? show_table() : show_objects();
      if (options_.watch) follow(version);
    } catch (const model::StatusError& error) {
      // A kind that is not there has no object to name.
      if (error.status().code != 404 || !error.status().name.empty()) throw;
      fail(Code::not_found,
           "the cluster has no {}; 'hearth crds | kubectl apply -f -' brings our kinds",
           kind_.resource.plural);
    }
    return 0;
  }

 private:
  bool is_table() const {
    return options_.format == ObjectFormat::table || options_.format == ObjectFormat::wide;
  }
  bool shows_namespace() const { return options_.all_namespaces && kind_.resource.namespaced; }

  ObjectTable fetch_table(const std::string& ns, const std::string& name) {
    std::string path = client::resource_path(kind_.resource, ns, name);
    if (name.empty() && !options_.selector.empty())
      path += "?" + client::query_of(client::ListOptions{.label_selector = options_.selector});
    return read_table(fetch_json(cluster_, path, kTableType), options_.format == ObjectFormat::wide,
                      shows_namespace());
  }

  std::string show_table() {
    const ObjectTable table = fetch_table(ns_, options_.name);
    if (table.rows.empty()) {
      tell_none();
    } else {
      say(columns_.heading(table));
      has_heading_ = true;
    }
    for (const Row& row : table.rows) say(columns_.line(row));
    return table.resource_version;
  }

  void tell_none() const {
    const std::string where = ns_.empty() ? "" : fmt::format(" in the namespace '{}'", ns_);
    const std::string which =
        options_.selector.empty() ? "" : fmt::format(" with '{}'", options_.selector);
    std::fputs(fmt::format("no {}{}{}\n", kind_.resource.plural, which, where).c_str(), stderr);
  }

  std::string show_objects() {
    if (!options_.name.empty()) {
      const Json object = cluster_.api->get(kind_.resource, ns_, options_.name);
      show(object);
      return std::string(model::resource_version_of(object));
    }
    client::List list =
        cluster_.api->list_all(kind_.resource, {.ns = ns_, .label_selector = options_.selector});
    if (options_.format == ObjectFormat::name || options_.watch) {
      for (const Json& object : list.items) show(object);
      return list.resource_version;
    }
    model::JsonArray items;
    for (Json& object : list.items) items.push_back(without_bookkeeping(std::move(object)));
    show(model::JsonObject{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}});
    return list.resource_version;
  }

  void show(const Json& object) const {
    if (options_.format == ObjectFormat::name) {
      const model::GroupResource of{.group = kind_.resource.group, .resource = kind_.singular};
      return say(fmt::format("{}/{}\n", of.text(), model::name_of(object)));
    }
    const Json plain = without_bookkeeping(object);
    if (options_.format == ObjectFormat::json) return say(model::to_pretty_text(plain) + "\n");
    say((options_.watch ? "---\n" : "") + model::to_yaml(plain));
  }

  void follow(std::string version) {
    client::WatchOptions watch{.ns = ns_, .label_selector = options_.selector};
    if (!options_.name.empty()) watch.field_selector = "metadata.name=" + options_.name;
    for (;;) {
      watch.resource_version = version;
      const auto end =
          cluster_.api->watch(kind_.resource, watch,
                              [&](const client::Event& event) {
                                version = std::string(model::resource_version_of(*event.object));
                                if (event.kind != client::EventKind::bookmark) show_change(event);
                              },
                              {});
      if (end == client::WatchEnd::expired) version = is_table() ? show_table() : show_objects();
      std::this_thread::sleep_for(kBetweenWatches);
    }
  }

  void show_change(const client::Event& event) {
    if (!is_table()) return show(*event.object);
    const std::string ns(model::namespace_of(*event.object));
    const std::string name(model::name_of(*event.object));
    if (event.kind == client::EventKind::deleted) return show_end(ns, name);
    try {
      const ObjectTable table = fetch_table(ns, name);
      if (!has_heading_) say(columns_.heading(table));
      has_heading_ = true;
      for (const Row& row : table.rows) say(columns_.line(row));
    } catch (const model::StatusError& error) {
      if (error.status().code != 404) throw;  // gone meanwhile: its end comes next
    }
  }

  void show_end(const std::string& ns, const std::string& name) {
    say(columns_.line(shows_namespace() ? Row{ns, name, "(deleted)"} : Row{name, "(deleted)"}));
  }

  const GetOptions& options_;
  Cluster cluster_;
  ApiKind kind_;
  std::string ns_;
  Columns columns_;
  bool has_heading_ = false;
};

}  // namespace

ObjectTable read_table(const Json& table, bool is_wide, bool with_namespace) {
  const model::JsonArray* columns = model::array_at(table, {"columnDefinitions"});
  if (text_at(table, {"kind"}) != "Table" || columns == nullptr)
    fail(Code::unavailable, "the server gave no table; try -o yaml");
  ObjectTable result{.heading = {},
                     .rows = {},
                     .resource_version = std::string(model::resource_version_of(table))};
  const auto is_shown = [&](const Json& column) {
    return is_wide || model::number_at(column, {"priority"}).value_or(0) == 0;
  };
  if (with_namespace) result.heading.emplace_back("NAMESPACE");
  for (const Json& column : *columns)
    if (is_shown(column)) result.heading.push_back(heading_text(text_at(column, {"name"})));
  const model::JsonArray* rows = model::array_at(table, {"rows"});
  if (rows == nullptr) return result;
  for (const Json& entry : *rows) {
    Row row;
    if (with_namespace) row.emplace_back(text_at(entry, {"object", "metadata", "namespace"}));
    const model::JsonArray* cells = model::array_at(entry, {"cells"});
    for (std::size_t i = 0; cells != nullptr && i < std::min(cells->size(), columns->size()); ++i)
      if (is_shown((*columns)[i])) row.push_back(cell_text((*cells)[i]));
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::string Columns::heading(const ObjectTable& table) {
  widest_.clear();
  for (const Row& row : table.rows) widen(row);
  return line(table.heading);
}

std::string Columns::line(const Row& row) {
  widen(row);
  const std::string text = format_table(widest_, {row});
  return text.substr(text.find('\n') + 1);
}

void Columns::widen(const Row& row) {
  widest_.resize(std::max(widest_.size(), row.size()));
  for (std::size_t i = 0; i < row.size(); ++i) {
    // Only its width matters. Newlines would be shown as something else.
    if (row[i].size() > widest_[i].size()) widest_[i] = row[i];
  }
}

int get_objects(const GetOptions& options) {
  return Getter(options).run();
}

int delete_objects(const DeleteObjectsOptions& options) {
  Cluster cluster(options.cluster);
  const ApiKind kind = find_kind(options.kind, cluster);
  int code = 0;
  for (const std::string& name : options.names) {
    try {
      cluster.api->remove(kind.resource, cluster.ns, name, {});
      say(name + "\n");
    } catch (const Error& error) {
      complain(options.kind, error.what());
      code = kExitFailure;
    }
  }
  return code;
}

int perform(const KubeOrder& order) {
  struct Perform {
    int operator()(const GetOptions& options) const { return get_objects(options); }
    int operator()(const DescribeOptions& options) const { return describe_object(options); }
    int operator()(const DeleteObjectsOptions& options) const { return delete_objects(options); }
    int operator()(const ClaimOptions& options) const { return claim(options); }
    int operator()(const PoolCreateOptions& options) const { return create_pool(options); }
    int operator()(const PoolScaleOptions& options) const { return scale_pool(options); }
    int operator()(const TemplateCreateOptions& options) const { return create_template(options); }
  };
  return std::visit(Perform{}, order);
}

}  // namespace hearth::cli
