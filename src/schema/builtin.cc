#include "schema/builtin.h"

#include <map>

#include "base/error.h"
#include "schema/table.h"
#include "schema/words.h"

namespace hearth::schema {
namespace {

using model::JsonObject;

// Makes schemas of the table's rows, each type once.
class SchemaMaker {
 public:
  explicit SchemaMaker(const Table& table) : table_(table) {}

  // The type itself. Types do not contain themselves, so this ends.
  const SchemaPtr& type(const Message& message) {
    SchemaPtr& made = types_[&message];
    if (!made) made = make_type(message);
    return made;
  }

 private:
  SchemaPtr make_type(const Message& message) {
    auto schema = std::make_shared<Schema>();
    schema->type = Type::object;
    schema->name = open_api_name(message.name);
    schema->description = table_.description(message.name);
    if (message.is_atomic) schema->grain = Grain::atomic;
    add_fields(*schema, message);
    return schema;
  }

  std::string open_api_name(std::string_view name) const {
    for (const Table::Prefix& prefix : table_.prefixes)
      if (name.starts_with(prefix.types) && name[prefix.types.size()] == '.')
        return std::string(prefix.open_api).append(name.substr(prefix.types.size()));
    return {};
  }

  void add_fields(Schema& schema, const Message& message) {
    for (const Field& field : message.fields) {
      if (field.is_inline) {
        const Schema& inner = *type(*field.message);
        schema.properties.insert(inner.properties.begin(), inner.properties.end());
        schema.required.insert(schema.required.end(), inner.required.begin(), inner.required.end());
        continue;
      }
      const std::string name(field.name);
      if (field.is_required) schema.required.push_back(name);
      schema.properties.emplace(name, property(message, field));
    }
  }

  SchemaPtr property(const Message& message, const Field& field) {
    Schema schema = value(field);
    if (const auto text =
            table_.description(std::string(message.name).append(".").append(field.name));
        !text.empty())
      schema.description = text;
    // A struct is written even if it is empty, unless it is a pointer that is not there.
    schema.omits_zero =
        !field.keeps_zero && (field.shape != Shape::message || field.is_list || field.is_map);
    // A time that is a struct is written as null where there is none. Metadata's are the server's,
    // and custom kinds have them too.
    if (schema.omits_zero && message.name != "meta.v1.ObjectMeta" &&
        (field.shape == Shape::time || field.shape == Shape::micro_time))
      schema.nullable = true;
    if (!field.default_to.empty()) schema.default_value = model::parse_json(field.default_to).value;
    set_grain(schema, field.grain);
    if (!field.patch.empty()) {
      const auto words = split(field.patch, ':');
      schema.patch_strategy = words[0];
      if (words.size() > 1) schema.patch_merge_key = words[1];
    }
    return shared(std::move(schema));
  }

  static void set_grain(Schema& schema, std::string_view grain) {
    if (grain == "set") {
      schema.grain = Grain::set;
    } else if (grain == "atomic") {
      schema.grain = Grain::atomic;
    } else if (grain.starts_with("map:")) {
      schema.grain = Grain::keyed;
      for (const auto key : split(grain.substr(4), ',')) schema.list_keys.emplace_back(key);
    }
  }

  Schema value(const Field& field) {
    if (!field.is_list && !field.is_map) return one(field);
    Schema schema;
    if (field.is_list) {
      schema.type = Type::array;
      schema.grain = Grain::atomic;
      schema.items = element(field);
    } else {
      schema.type = Type::object;
      schema.additional = element(field);
    }
    return schema;
  }

  SchemaPtr element(const Field& field) {
    return field.shape == Shape::message ? type(*field.message) : shared(one(field));
  }

  Schema one(const Field& field) {
    if (field.shape == Shape::message) return *type(*field.message);
    Schema schema = scalar(field.shape);
    for (const auto word : split(field.allowed, '|')) schema.allowed.emplace_back(word);
    return schema;
  }

  Schema scalar(Shape shape) {
    Schema schema;
    schema.type = Type::string;
    switch (shape) {
      case Shape::string:
        break;
      case Shape::boolean:
        schema.type = Type::boolean;
        break;
      case Shape::int32:
      case Shape::int64:
        schema.type = Type::integer;
        schema.format = shape == Shape::int32 ? "int32" : "int64";
        break;
      case Shape::bytes:
        schema.format = "byte";
        break;
      case Shape::time:
      case Shape::micro_time:
        schema.format = "date-time";
        schema.name = shape == Shape::time ? "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
                                           : "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
        break;
      case Shape::quantity:
        // A number is understood, too, as in 'cpu: 0.5'.
        schema.type = Type::any;
        schema.any_of = {typed(Type::string), typed(Type::number)};
        schema.pattern = kQuantityPattern;
        schema.name = "io.k8s.apimachinery.pkg.api.resource.Quantity";
        break;
      case Shape::int_or_string:
        schema.type = Type::any;
        schema.int_or_string = true;
        schema.format = "int-or-string";
        schema.name = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
        break;
      case Shape::strings:
        schema.type = Type::array;
        schema.grain = Grain::atomic;
        schema.items = typed(Type::string);
        break;
      case Shape::json:
      case Shape::free:
        schema.type = Type::object;
        schema.preserve_unknown = true;
        break;
      case Shape::message:
        HEARTH_ASSERT(false);
    }
    return schema;
  }

  SchemaPtr typed(Type wanted) {
    Schema schema;
    schema.type = wanted;
    return shared(std::move(schema));
  }

  // Most fields are plain strings, numbers and flags: they share one schema each.
  SchemaPtr shared(Schema schema) {
    const bool is_plain = schema.type != Type::object && schema.type != Type::array &&
                          schema.type != Type::any && schema.description.empty() &&
                          schema.name.empty() && schema.allowed.empty() && !schema.default_value &&
                          schema.patch_strategy.empty();
    if (!is_plain) return std::make_shared<const Schema>(std::move(schema));
    SchemaPtr& known = plain_[{schema.type, schema.format, schema.omits_zero}];
    if (!known) known = std::make_shared<const Schema>(std::move(schema));
    return known;
  }

  const Table& table_;
  std::map<const Message*, SchemaPtr> types_;
  std::map<std::tuple<Type, std::string, bool>, SchemaPtr> plain_;
};

struct Builtins {
  std::vector<BuiltinKind> kinds;
  std::vector<std::pair<const KindRow*, SchemaPtr>> all;  // also what is no resource
  SchemaPtr object_meta;
};

std::vector<std::string> words_of(std::string_view text) {
  const auto words = split(text, ',');
  return {words.begin(), words.end()};
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

BuiltinKind make_kind(const KindRow& row, const SchemaPtr& schema) {
  BuiltinKind kind;
  const auto slash = row.api_version.find('/');
  if (slash != std::string_view::npos) kind.group = row.api_version.substr(0, slash);
  kind.version =
      slash == std::string_view::npos ? row.api_version : row.api_version.substr(slash + 1);
  kind.kind = row.kind;
  kind.plural = row.plural;
  kind.singular = lower(row.kind);
  kind.short_names = words_of(row.short_names);
  kind.categories = words_of(row.categories);
  kind.namespaced = row.namespaced;
  kind.has_status = row.has_status;
  kind.schema = schema;
  return kind;
}

// The type of an object: it says what it is.
SchemaPtr with_type_fields(const Schema& type) {
  auto schema = std::make_shared<Schema>(type);
  Schema text;
  text.type = Type::string;
  text.description = "The version of the API that the object is written in.";
  schema->properties["apiVersion"] = std::make_shared<const Schema>(text);
  text.description = "What kind of object this is.";
  schema->properties["kind"] = std::make_shared<const Schema>(text);
  return schema;
}

Builtins load() {
  Builtins builtins;
  const Table& rows = table();
  SchemaMaker maker(rows);
  for (const KindRow& row : rows.kinds) {
    const SchemaPtr schema = with_type_fields(*maker.type(*row.message));
    builtins.all.emplace_back(&row, schema);
    if (!row.plural.empty()) builtins.kinds.push_back(make_kind(row, schema));
  }
  builtins.object_meta = maker.type(*rows.find("meta.v1.ObjectMeta"));
  return builtins;
}

const Builtins& builtins() {
  static const Builtins loaded = load();
  return loaded;
}

}  // namespace

const std::vector<BuiltinKind>& builtin_kinds() {
  return builtins().kinds;
}

SchemaPtr find_builtin(std::string_view api_version, std::string_view kind) {
  for (const auto& [row, schema] : builtins().all) {
    // Clients send it in the version of whatever they delete.
    const bool any_version = row->kind == "DeleteOptions";
    if (row->kind == kind && (any_version || row->api_version == api_version)) return schema;
  }
  return nullptr;
}

const Schema& object_meta() {
  return *builtins().object_meta;
}

const std::vector<BuiltinCrd>& builtin_crds() {
  static const std::vector<BuiltinCrd> crds = [] {
    std::vector<BuiltinCrd> found;
    constexpr std::string_view kFolder = "crds/";
    for (const EmbeddedFile& file : embedded_files())
      if (file.name.starts_with(kFolder))
        found.push_back({file.name.substr(kFolder.size()), file.text});
    return found;
  }();
  return crds;
}

}  // namespace hearth::schema
