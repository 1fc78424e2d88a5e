#!/usr/bin/env python3
"""Writes api/builtin/types.txt: the facts about the built-in types of Kubernetes.

    tools/extract_builtin.py KUBERNETES_REPOSITORY [REVISION]

reads the published Go types (of a git repository, also a bare one). Their tags hold what the proto
files and the OpenAPI documents are generated from, and one thing more: which zero values vanish
from JSON. Only facts are taken: names, numbers, types, defaults, how lists merge. What the fields
mean is said in our own words in api/builtin/descriptions.txt.
"""
import pathlib
import re
import subprocess
import sys

API = "staging/src/k8s.io/api/%s/types.go"
SOURCES = {
    "core.v1": [API % "core/v1"],
    "discovery.v1": [API % "discovery/v1"],
    "storage.v1": [API % "storage/v1"],
    "events.v1": [API % "events/v1"],
    "coordination.v1": [API % "coordination/v1"],
    "networking.v1": [API % "networking/v1"],
    "node.v1": [API % "node/v1"],
    "rbac.v1": [API % "rbac/v1"],
    "policy.v1": [API % "policy/v1"],
    "autoscaling.v1": [API % "autoscaling/v1"],
    "authorization.v1": [API % "authorization/v1"],
    "authentication.v1": [API % "authentication/v1"],
    "meta.v1": ["staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go"],
    "apiextensions.v1": ["staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go"],
}
# Everything that these reach is described.
ROOTS = """
    core.v1.Pod core.v1.Service core.v1.Endpoints discovery.v1.EndpointSlice core.v1.PersistentVolume
    core.v1.PersistentVolumeClaim storage.v1.StorageClass core.v1.Namespace core.v1.Event
    events.v1.Event core.v1.Secret core.v1.ConfigMap core.v1.ServiceAccount core.v1.Node
    coordination.v1.Lease networking.v1.NetworkPolicy node.v1.RuntimeClass rbac.v1.Role
    rbac.v1.ClusterRole rbac.v1.RoleBinding rbac.v1.ClusterRoleBinding
    apiextensions.v1.CustomResourceDefinition meta.v1.DeleteOptions policy.v1.Eviction
    autoscaling.v1.Scale authorization.v1.SelfSubjectAccessReview
    authorization.v1.SelfSubjectRulesReview authorization.v1.SubjectAccessReview
    authorization.v1.LocalSubjectAccessReview authentication.v1.SelfSubjectReview
    authentication.v1.TokenReview authentication.v1.TokenRequest core.v1.Binding meta.v1.Status
    meta.v1.ObjectMeta meta.v1.ListMeta meta.v1.Condition core.v1.PodTemplateSpec
""".split()
# Types that are more than their struct says.
SPECIAL = {
    "byte": "byte", "string": "string", "bool": "bool", "int": "int32", "int32": "int32", "int64": "int64",
    "meta.v1.Time": "time", "meta.v1.MicroTime": "microtime",
    "resource.Quantity": "quantity", "intstr.IntOrString": "intorstring", "types.UID": "string",
    "types.NodeName": "string", "meta.v1.FieldsV1": "json", "runtime.RawExtension": "json",
    # The schema of a schema has no end; what it says is checked when a CRD is created.
    "apiextensions.v1.JSONSchemaProps": "free",
}
FIELD = re.compile(r"^\t(?P<names>[\w.*]+(?: +[^`]+?)?)\s*`(?P<tag>[^`]*)`")
CONSTANT = re.compile(r'^\s+\w+\s+(\w+)\s*=\s*"([^"]*)"')


class Type:
    def __init__(self, group, name, markers):
        self.group, self.name, self.markers = group, name, markers
        self.fields = []   # of a struct
        self.alias = None  # of anything else


def read(repository, revision, path):
    return subprocess.run(["git", "-C", repository, "show", "%s:%s" % (revision, path)],
                          check=True, capture_output=True, text=True).stdout


def parse(group, text, types, constants):
    imports = dict(re.findall(r'^\t(\w+) "k8s.io/(?:api|apimachinery/pkg/apis)/(\w+/v1)"', text, re.M))
    imports = {name: path.replace("/", ".") for name, path in imports.items()}
    if group != "meta.v1":
        imports["metav1"] = "meta.v1"
    markers, current = [], None
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("//"):
            marker = re.match(r"//\s*\+(\S.*)", stripped)
            if marker:
                markers.append(marker.group(1).strip())
            continue
        if not stripped:
            # A blank line may stand between a type and its markers.
            if current is not None:
                markers = []
            continue
        start = re.match(r"^type (\w+) (struct \{|.+)$", line)
        if start:
            kind = Type(group, start.group(1), markers)
            types["%s.%s" % (group, kind.name)] = kind
            if start.group(2) == "struct {":
                current = kind
            elif start.group(2) != "struct {}" and not start.group(2).startswith("struct{"):
                kind.alias = resolve(start.group(2), group, imports)
        elif line == "}":
            current = None
        elif current is not None:
            field = FIELD.match(line)
            if field:
                current.fields.append((field.group("names").split(None, 1), field.group("tag"),
                                       markers, imports))
        constant = CONSTANT.match(line)
        if constant and current is None:
            kind, value = constant.groups()
            constants.setdefault("%s.%s" % (group, kind), []).append(value)
        markers = []


def resolve(text, group, imports):
    """A Go type with full names: []core.v1.Volume."""
    text = text.split("//")[0].strip()
    for prefix in ("*", "[]"):
        if text.startswith(prefix):
            return prefix + resolve(text[len(prefix):], group, imports)
    pair = re.match(r"map\[([\w.]+)\](.+)$", text)
    if pair:
        return "{}" + resolve(pair.group(2), group, imports)
    if "." in text:
        package, name = text.split(".")
        return "%s.%s" % (imports.get(package, package), name)
    if text in SPECIAL:
        return text
    return "%s.%s" % (group, text)


class Writer:
    def __init__(self, types, constants):
        self.types, self.constants = types, constants
        self.lines, self.seen, self.waiting = [], set(), []

    def reach(self, name):
        if name not in self.seen:
            self.seen.add(name)
            self.waiting.append(name)

    def shape(self, text):
        """(type as the table writes it, allowed values)."""
        if text in SPECIAL:
            return SPECIAL[text], []
        if text == "[]byte":
            return "bytes", []
        if text.startswith("[]") or text.startswith("{}"):
            inner, values = self.shape(text[2:])
            return text[:2] + inner, values
        known = self.types.get(text)
        if known is None:
            raise SystemExit("type '%s' is not known" % text)
        if known.alias:
            inner, _ = self.shape(known.alias)
            values = self.constants.get(text, []) if "enum" in known.markers else []
            if text in ("authentication.v1.ExtraValue", "authorization.v1.ExtraValue"):
                return "strings", []  # a message around the list, in protobuf
            return inner, sorted(set(values))
        self.reach(text)
        return text, []

    def field(self, names, tag, markers, imports, group):
        json = re.search(r'json:"([^"]*)"', tag)
        proto = re.search(r'protobuf:"[^,]*,(\d+)', tag)
        if not json or json.group(1) == "-":
            return None
        name, *options = json.group(1).split(",")
        text = resolve(names[-1], group, imports)
        if text.endswith("meta.v1.TypeMeta"):
            return None
        pointer = text.startswith("*")
        kind, values = self.shape(text.lstrip("*").replace("[]*", "[]"))
        number = proto.group(1) if proto else "0"
        if "inline" in options or not name:
            return "%s - %s inline" % (number, kind)
        vanishes = "omitempty" in options or "omitzero" in options
        words = [number, name, kind]
        optional = any(m in ("optional", "k8s:optional") for m in markers)
        if "required" in markers or (not vanishes and not optional):
            words.append("required")
        if pointer:
            words.append("pointer")
        elif not vanishes:
            words.append("always")
        marks = dict(m.split("=", 1) for m in markers if "=" in m)
        keys = [m.split("=", 1)[1] for m in markers if m.startswith("listMapKey=")]
        if marks.get("listType") == "map":
            words.append("map:" + ",".join(keys))
        elif marks.get("listType") in ("set", "atomic"):
            words.append(marks["listType"])
        elif "atomic" in (marks.get("mapType"), marks.get("structType")):
            words.append("atomic")
        strategy = re.search(r'patchStrategy:"([^"]*)"', tag)
        key = re.search(r'patchMergeKey:"([^"]*)"', tag)
        if strategy:
            words.append("patch:" + strategy.group(1) + (":" + key.group(1) if key else ""))
        # ref(NAME) is a default that only code applies.
        if "default" in marks and not marks["default"].startswith("ref("):
            words.append("default:" + marks["default"])
        if values:
            words.append("enum:" + "|".join(values))
        return " ".join(words)

    def type(self, full):
        known = self.types[full]
        atomic = " atomic" if "structType=atomic" in known.markers else ""
        fields = [self.field(*field, known.group) for field in known.fields]
        fields = sorted((f for f in fields if f), key=lambda line: int(line.split()[0]))
        self.lines.append("\n".join(["type %s%s" % (full, atomic)] + [" " + f for f in fields]))

    def run(self):
        for root in ROOTS:
            self.reach(root)
        while self.waiting:
            self.type(self.waiting.pop(0))
        return "\n".join(sorted(self.lines)) + "\n"


HEADER = """\
# Built-in types of the Kubernetes API. Made by tools/extract_builtin.py; do not edit.
#
# type NAME [atomic]
#  NUMBER FIELD TYPE [WORD...]     NUMBER is protobuf's; FIELD '-' with the word 'inline' is a struct
#                                  whose fields are the outer one's in JSON
# TYPE: []T list, {}T map from strings, another type's name, or string bool int32 int64 bytes time
# microtime quantity intorstring, strings (a list that is a message in protobuf), json
# (any JSON, bytes in protobuf), free (any JSON).
# WORD: required; pointer (zero values stay); always (zero values stay, too); map:KEYS, set, atomic
# (who owns what in server-side apply); patch:STRATEGY[:KEY] (strategic merge); default:JSON;
# enum:A|B.
"""


def main(repository, revision="HEAD"):
    types, constants = {}, {}
    for group, paths in SOURCES.items():
        for path in paths:
            parse(group, read(repository, revision, path), types, constants)
    target = pathlib.Path(__file__).resolve().parent.parent / "api/builtin/types.txt"
    target.write_text(HEADER + Writer(types, constants).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
