"""Namespaces for a whole cluster, so that nothing of it is left on the machine.

A kubelet and a container runtime make mounts, links, packet filters and processes that outlive them, and set the machine's
sysctls. Here all of it happens in namespaces for network, mounts and processes, which the kernel takes down with their
first process. What namespaces do not hold, cgroups, is in one folder per hierarchy, which `hide` removes in the end.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")
# What a kubelet insists on. It reads them here and finds nothing to change.
SYSCTLS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
           "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}


def hide(command):
    """Runs it behind walls, with a TMPDIR and a cgroup of its own. Returns its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # or nobody would clean up
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hearth-walls-"))
    group = folder.name
    try:
        make_cgroups(group)
        env = dict(os.environ, TMPDIR=str(folder), HEARTH_CLUSTER_CGROUP=f"/{group}")
        # The shell is the first process in there: it buries orphans.
        return subprocess.run(["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
                               "--", "sh", "-c", '"$@"; exit $?', "sh", *command], env=env).returncode
    finally:
        remove_cgroups(group)
        shutil.rmtree(folder)


def hierarchies():
    """All of version 1, or the one of version 2."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir() and (path / "cgroup.procs").exists()]


def make_cgroups(group):
    for hierarchy in hierarchies():
        (hierarchy / group).mkdir(exist_ok=True)


def remove_cgroups(group):
    """Their processes are dead; the kernel may need a moment to notice."""
    for hierarchy in hierarchies():
        # Innermost first.
        for path, _, _ in os.walk(hierarchy / group, topdown=False):
            for _ in range(500):
                try:
                    os.rmdir(path)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)
            else:
                print(f"left behind: {path}", file=sys.stderr)


def furnish(folder):
    """Behind the walls: places that programs insist on are made private, and a network is there."""
    run("mount", "--make-rshared", "/")  # among the namespaces in here
    for place in ("/run", "/var/log"):
        run("mount", "-t", "tmpfs", "tmpfs", place)
    upper, work = folder / "var-lib", folder / "var-lib-work"
    upper.mkdir()
    work.mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/var/lib,upperdir={upper},workdir={work}", "/var/lib")
    for name, value in SYSCTLS.items():
        shown = folder / name.replace("/", ".")
        shown.write_text(value + "\n")
        run("mount", "--bind", str(shown), f"/proc/sys/{name}")


def make_network(address):
    """A machine with one address, which routes."""
    run("ip", "link", "set", "lo", "up")
    # A cable of which nobody holds the other end: pods have such links anyway, and not every kernel has dummies.
    run("ip", "link", "add", "node", "type", "veth", "peer", "name", "nowhere")
    run("ip", "link", "set", "nowhere", "up")
    run("ip", "address", "add", f"{address}/24", "dev", "node")
    run("ip", "link", "set", "node", "up")
    run("ip", "route", "add", "default", "dev", "node")
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    with contextlib.suppress(FileNotFoundError):  # bridges that are not filtered anyway
        pathlib.Path("/proc/sys/net/bridge/bridge-nf-call-iptables").write_text("1")


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
