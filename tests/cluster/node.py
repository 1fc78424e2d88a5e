"""A whole Kubernetes cluster of one node: API server, controllers, scheduler, kube-proxy, kubelet, containerd, runc.

Only behind the walls of walls.py. Every program is one that the environment names (PROGRAMS).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compat"))
sys.path.insert(0, str(HERE.parent / "e2e"))
import images  # noqa: E402
import real_cluster  # noqa: E402
import walls  # noqa: E402
from hearth import HEARTH, wait_until  # noqa: E402

PROGRAMS = ("HEARTH_KUBE_APISERVER", "HEARTH_ETCD", "HEARTH_KUBE_CONTROLLER_MANAGER", "HEARTH_KUBE_SCHEDULER",
            "HEARTH_KUBE_PROXY", "HEARTH_KUBELET", "HEARTH_CONTAINERD")
MACHINE = ("unshare", "ip", "nft", "runc", "kubectl", "busybox", "openssl", "mount")
CNI_PLUGINS = pathlib.Path(os.environ.get("HEARTH_CNI_PLUGINS", "/usr/lib/cni"))
NODE, POD_RANGE = "node", "10.78.0.0/16"
VOLUMES = 8


def need_programs():
    """Says loudly what is missing."""
    missing = [name for name in PROGRAMS if not os.access(os.environ.get(name, ""), os.X_OK)]
    missing += [name for name in MACHINE if not shutil.which(name)]
    missing += [str(CNI_PLUGINS / name) for name in ("bridge", "host-local", "loopback", "portmap") if not (CNI_PLUGINS / name).exists()]
    missing += [str(path) for path in (pathlib.Path(HEARTH), images.BIN / "hearth-guest") if not path.exists()]
    missing += ["root"] if os.geteuid() != 0 else []
    if missing:
        why = f"NOT TESTED on a whole cluster, for want of {', '.join(missing)}"
        print(why, file=sys.stderr)
        raise unittest.SkipTest(why)


class WholeCluster(real_cluster.Cluster):
    address = "10.77.0.1"

    def start_all(self):
        walls.furnish(self.folder)
        walls.make_network(self.address)
        self.start_containerd()
        super().start_all()
        self.start("kube-scheduler", [os.environ["HEARTH_KUBE_SCHEDULER"], f"--kubeconfig={self.kubeconfig}",
                                      "--leader-elect=false", "--secure-port=0"])
        self.start_proxy()
        self.start_kubelet()
        wait_until(self.is_node_ready, 120, "a ready node")
        self.make_volumes()

    def more_of_api(self):
        return ["--allow-privileged", "--kubelet-preferred-address-types=InternalIP"]

    def start_controllers(self):
        # Itself signed by the certificate that follows in the same file.
        self.start_manager(os.environ["HEARTH_KUBE_CONTROLLER_MANAGER"], f"--root-ca-file={self.folder / 'pki/apiserver.crt'}",
                           f"--service-account-private-key-file={self.folder / 'accounts.key'}",
                           "--use-service-account-credentials=false")

    def start_containerd(self):
        containerd = os.environ["HEARTH_CONTAINERD"]
        self.socket = self.folder / "containerd.sock"
        self.write("cni/bridge.conflist", json.dumps({
            "cniVersion": "1.0.0", "name": "pods", "plugins": [
                {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True,
                 "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_RANGE}]], "routes": [{"dst": "0.0.0.0/0"}],
                          "dataDir": str(self.folder / "addresses")}},
                {"type": "portmap", "capabilities": {"portMappings": True}}]}))
        config = self.write("containerd.toml", f"""
version = 2
root = "{self.folder / 'containerd'}"
state = "/run/containerd"
[grpc]
address = "{self.socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{self.folder / 'opt'}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{images.PAUSE}"
# Not everybody who is root may shield processes from the kernel's memory killer.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{self.folder / 'cni'}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
""")
        self.start("containerd", [containerd, "--config", config])
        ctr = [str(pathlib.Path(containerd).parent / "ctr"), "--address", str(self.socket), "--namespace", "k8s.io"]
        wait_until(lambda: subprocess.run([*ctr, "version"], capture_output=True).returncode == 0, 60, "containerd")
        for archive in images.write_all(self.folder).values():
            walls.run(*ctr, "images", "import", str(archive))

    def start_proxy(self):
        config = self.write("proxy.json", json.dumps({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
            "clientConnection": {"kubeconfig": self.kubeconfig}, "clusterCIDR": POD_RANGE, "hostnameOverride": NODE,
            # Those of the machine stay.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"}}))
        self.start("kube-proxy", [os.environ["HEARTH_KUBE_PROXY"], f"--config={config}"])

    def start_kubelet(self):
        config = self.write("kubelet.json", json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs", "cgroupRoot": os.environ["HEARTH_CLUSTER_CGROUP"], "failCgroupV1": False,
            "failSwapOn": False, "maxPods": 400, "podPidsLimit": -1, "resolvConf": self.write("resolv.conf", ""),
            # Nobody answers there.
            "clusterDNS": ["10.0.0.10"], "clusterDomain": "cluster.local",
            "evictionHard": {name: "0%" for name in ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available")},
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99, "registryPullQPS": 0,
            "eventRecordQPS": 0, "kubeAPIQPS": 200, "kubeAPIBurst": 400,
            "volumePluginDir": str(self.folder / "volume-plugins"), "healthzPort": 0}))
        self.start("kubelet", [os.environ["HEARTH_KUBELET"], f"--config={config}", f"--kubeconfig={self.kubeconfig}",
                               f"--root-dir={self.folder / 'kubelet'}", f"--hostname-override={NODE}",
                               f"--node-ip={self.address}", f"--cert-dir={self.folder / 'kubelet-pki'}"])

    def make_volumes(self):
        """As many as the tests claim; nobody makes more."""
        for i in range(VOLUMES):
            place = self.folder / f"volume-{i}"
            place.mkdir()
            place.chmod(0o777)
            self.kubectl("apply", "-f", "-", given=json.dumps({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": place.name},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(place)}}}))

    def is_node_ready(self):
        conditions = (self.get("node", NODE) or {}).get("status", {}).get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)
