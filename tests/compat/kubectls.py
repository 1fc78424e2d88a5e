"""Which kubectls there are, by version: on the PATH, in HEARTH_KUBECTLS (paths with ':' between), and Debian's old one."""
import functools
import json
import os
import pathlib
import subprocess
import unittest

from kubectl import debian_kubectl


def fetch_debians():
    try:
        return [debian_kubectl()]
    except unittest.SkipTest:
        return []


@functools.cache
def find_kubectls():
    """{"1.32": path, ...}, oldest first; those of Google's SDK, which brings several, too."""
    paths = os.environ.get("HEARTH_KUBECTLS", "").split(":")
    paths += [f"{folder}/kubectl" for folder in os.environ.get("PATH", "").split(":")]
    paths += map(str, sorted(pathlib.Path("/usr/lib/google-cloud-sdk/bin").glob("kubectl.*")))
    paths += fetch_debians()
    found = {}
    for path in paths:
        if not path or not os.access(path, os.X_OK):
            continue
        done = subprocess.run([path, "version", "--client", "-o", "json"], capture_output=True, text=True, timeout=30)
        if done.returncode == 0:
            version = json.loads(done.stdout)["clientVersion"]
            found.setdefault(f"{version['major']}.{version['minor'].rstrip('+')}", path)
    return dict(sorted(found.items(), key=lambda item: [int(part) for part in item[0].split(".")]))
