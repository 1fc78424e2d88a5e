#!/usr/bin/env python3
"""Writes api/crds/*.yaml: our CRDs, complete, as a cluster takes them.

The sources in api/crds/source are what people write. A node there may say
    $builtin: core.v1.PodSpec     the schema of a built-in type (api/builtin/types.txt)
    $part: conditions             a piece of api/crds/source/parts.yaml
and members beside it are added. `make_crds.py --check` writes nothing and fails if a file is out of
date.
"""
import pathlib
import sys

import yaml

API = pathlib.Path(__file__).resolve().parent.parent / "api"
SOURCE = API / "crds/source"
HEADER = "# Made by tools/make_crds.py from api/crds/source/%s; do not edit.\n"

QUANTITY = (r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
            r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$")
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALARS = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "quantity": dict(INT_OR_STRING, pattern=QUANTITY),
    "intorstring": INT_OR_STRING,
    "strings": {"type": "array", "items": {"type": "string"}},
    "json": FREE,
    "free": FREE,
}


def read_types():
    """{name: (atomic, [words of a field])}"""
    types, fields = {}, None
    for line in (API / "builtin/types.txt").read_text().splitlines():
        if line.startswith("type "):
            name, *words = line.split()[1:]
            fields = []
            types[name] = ("atomic" in words, fields)
        elif line.startswith(" "):
            fields.append(line.split())
    return types


class Schemas:
    def __init__(self):
        self.types = read_types()

    def type(self, name):
        # Nested metadata is left to the server, as CRD generators do.
        if name == "meta.v1.ObjectMeta":
            return {"type": "object"}
        atomic, fields = self.types[name]
        properties, required = {}, []
        self.add_fields(fields, properties, required)
        # An inner struct that is atomic makes the outer one so, also as they do.
        atomic = atomic or any("inline" in words and self.types[kind][0]
                               for _, _, kind, *words in fields)
        schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = sorted(required)
        if atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def add_fields(self, fields, properties, required):
        for _, name, kind, *words in fields:
            if "inline" in words:
                self.add_fields(self.types[kind][1], properties, required)
                continue
            properties[name] = self.field(kind, words)
            if "required" in words:
                required.append(name)

    def field(self, kind, words):
        if kind.startswith("[]"):
            schema = {"type": "array", "items": self.one(kind[2:])}
        elif kind.startswith("{}"):
            schema = {"type": "object", "additionalProperties": self.one(kind[2:])}
        else:
            schema = dict(self.one(kind))
        is_list = schema.get("type") == "array"
        for word in words:
            if word.startswith("default:"):
                schema["default"] = yaml.safe_load(word[len("default:"):])
            elif word.startswith("map:"):
                schema["x-kubernetes-list-type"] = "map"
                schema["x-kubernetes-list-map-keys"] = word[len("map:"):].split(",")
            elif word in ("atomic", "set"):
                schema["x-kubernetes-list-type" if is_list else "x-kubernetes-map-type"] = word
        return schema

    def one(self, kind):
        return SCALARS[kind] if kind in SCALARS else self.type(kind)

    def expand(self, node, parts):
        if isinstance(node, list):
            return [self.expand(item, parts) for item in node]
        if not isinstance(node, dict):
            return node
        base = {}
        if "$builtin" in node:
            base = self.type(node["$builtin"])
        elif "$part" in node:
            base = self.expand(parts[node["$part"]], parts)
        own = {key: self.expand(value, parts) for key, value in node.items()
               if key not in ("$builtin", "$part")}
        return {**base, **own}


class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):
    """Small leaves on one line; the same thing twice is written twice."""

    def ignore_aliases(self, data):
        return True


def text_of(source, schemas, parts):
    crd = schemas.expand(yaml.safe_load(source.read_text()), parts)
    return HEADER % source.name + yaml.dump(crd, Dumper=Dumper, default_flow_style=None, width=110)


def main(arguments):
    schemas = Schemas()
    parts = yaml.safe_load((SOURCE / "parts.yaml").read_text())
    stale = []
    for source in sorted(SOURCE.glob("*.yaml")):
        if source.name == "parts.yaml":
            continue
        target = API / "crds" / source.name
        text = text_of(source, schemas, parts)
        if "--check" not in arguments:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            stale.append(target.name)
    if stale:
        sys.exit("out of date, run tools/make_crds.py: " + ", ".join(stale))


if __name__ == "__main__":
    main(sys.argv[1:])
