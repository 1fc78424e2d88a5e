"""Runs a command on a whole cluster, made for it, with Hearth deployed as deploy/ says; or a shell, if no command is given.

    python3 tests/cluster/run.py [COMMAND [WORD...]]

The command finds the cluster in KUBECONFIG and HEARTH_E2E_KUBECONFIG. Everything ends with it: docs/controllers.md.
"""
import os
import pathlib
import subprocess
import sys

import images
import node
import walls

DEPLOY = node.HERE.parents[1] / "deploy"
SERVES_E2B = '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--e2b-bind-address=:8090"}]'


def deploy(cluster):
    cluster.apply_crds("--conversion-service", "hearth-system/hearth-webhook")
    for name in ("controller.yaml", "claims-with-secrets.yaml", "e2b.yaml"):
        cluster.kubectl("apply", "-f", str(DEPLOY / name))
    cluster.kubectl("-n", "hearth-system", "patch", "deployment", "hearth-controller", "--type=json", "-p", SERVES_E2B)
    done = subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig, "-n", "hearth-system", "rollout", "status",
                           "deployment/hearth-controller", "--timeout=120s"], capture_output=True, text=True)
    if done.returncode != 0:
        words = (("describe", "pods"), ("logs", "-l", "app.kubernetes.io/name=hearth-controller", "--prefix"))
        said = [cluster.kubectl("-n", "hearth-system", *each, check=False).stdout for each in words]
        raise AssertionError(f"the controller does not start: {done.stderr}{''.join(said)}")


def run_inside(command):
    cluster = node.WholeCluster()
    try:
        deploy(cluster)
        env = dict(os.environ, KUBECONFIG=cluster.kubeconfig, HEARTH_E2E_KUBECONFIG=cluster.kubeconfig,
                   HEARTH_E2E_IMAGE=images.SHELL, HEARTH_CLUSTER_LOGS=str(cluster.folder))
        return subprocess.run(command, env=env).returncode
    finally:
        cluster.end()


def main(words):
    if words[:1] == ["--inside"]:
        return run_inside(words[1:])
    node.need_programs()
    command = words or [os.environ.get("SHELL", "/bin/sh")]
    return walls.hide([sys.executable, str(pathlib.Path(__file__).resolve()), "--inside", *command])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
