"""What a pod's securityContext and its host aliases mean inside: groups, files of groups, capabilities, sysctls, /etc/hosts."""
import unittest

from pod_parts_test import CLAIMS, Cluster, shell


def setUpModule():
    global cluster
    cluster = Cluster()


def tearDownModule():
    cluster.engine.remove()


class PodRights(unittest.TestCase):
    def lines(self, name, container, **spec):
        """What a pod said, line by line, and what its status was at the end."""
        cluster.run(name, container, **spec)
        said = cluster.said(name)
        status = cluster.pod(name)["status"]
        cluster.remove(name)
        return said.splitlines(), status

    def test_hosts_are_as_a_kubelet_writes_them(self):
        said, status = self.lines("named", shell("cat /etc/hosts; getent hosts far.example | awk '{print $1}'"), subdomain="sub",
                                  hostAliases=[{"ip": "192.0.2.7", "hostnames": ["far.example", "far"]}])
        self.assertEqual(said, [
            "# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback",
            "fe00::0\tip6-localnet", "fe00::0\tip6-mcastprefix", "fe00::1\tip6-allnodes", "fe00::2\tip6-allrouters",
            f"{status['podIP']}\tnamed.sub.default.svc.cluster.local\tnamed", "",
            "# Entries added by HostAliases.", "192.0.2.7\tfar.example\tfar", "192.0.2.7"])

    def test_what_is_mounted_on_them_counts(self):
        cluster.make("/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "names"},
                                                               "data": {"hosts": "192.0.2.9 mine\n", "resolv": "nameserver 192.0.2.53\n"}})
        mounts = [{"name": "n", "mountPath": "/etc/hosts", "subPath": "hosts"}, {"name": "n", "mountPath": "/etc/resolv.conf", "subPath": "resolv"}]
        said, _ = self.lines("own-names", shell("cat /etc/hosts /etc/resolv.conf", volumeMounts=mounts),
                             volumes=[{"name": "n", "configMap": {"name": "names"}}])
        self.assertEqual(said, ["192.0.2.9 mine", "nameserver 192.0.2.53"])

    def test_groups(self):
        ids = shell("id -u; id -g; id -G", securityContext={"runAsUser": 1000, "runAsGroup": 3000})
        context = {"supplementalGroups": [4000], "fsGroup": 5000, "supplementalGroupsPolicy": "Strict"}
        self.assertEqual(self.lines("strict", ids, securityContext=context)[0], ["1000", "3000", "3000 4000 5000"])
        merged, _ = self.lines("merged", ids, securityContext={**context, "supplementalGroupsPolicy": "Merge"})
        self.assertEqual(merged[:2], ["1000", "3000"])
        self.assertLessEqual({"3000", "4000", "5000"}, set(merged[2].split()))
        first, _ = self.lines("first", shell("id -g; id -G"), securityContext={"fsGroup": 5000})
        self.assertEqual(first[0], "0")
        self.assertIn("5000", first[1].split())

    def test_files_of_a_group(self):
        cluster.make(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "grouped"},
                              "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}})
        cluster.make("/api/v1/namespaces/default/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "grouped"},
                                                            "stringData": {"key": "hush"}})
        claim = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "grouped"}}]}
        mounts = [{"name": "d", "mountPath": "/d"}]
        self.lines("before", shell("umask 077; mkdir /d/in; echo old > /d/in/x; ln -s /etc/passwd /d/way", volumeMounts=mounts), **claim)
        said, _ = self.lines(
            "grouped", shell("stat -c '%g %a' /d /d/in /d/in/x /e /m /etc/passwd; stat -L -c '%g %a' /s/key; cat /d/in/x;"
                             "echo new > /d/in/y && stat -c '%u %g' /d/in/y",
                             volumeMounts=[*mounts, {"name": "e", "mountPath": "/e"}, {"name": "m", "mountPath": "/m"}, {"name": "s", "mountPath": "/s"}]),
            securityContext={"runAsUser": 1000, "fsGroup": 5000},
            volumes=[*claim["volumes"], {"name": "e", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}},
                     {"name": "s", "secret": {"secretName": "grouped", "defaultMode": 0o400}}])
        self.assertEqual(said, ["5000 2777", "5000 2770", "5000 660", "5000 2777", "5000 2777", "0 644", "5000 440", "old", "1000 5000"])
        cluster.ask("DELETE", f"{CLAIMS}/grouped")

    def test_capabilities_that_are_dropped_are_gone(self):
        def effective(name, **capabilities):
            said, _ = self.lines(name, shell("grep CapEff /proc/self/status | cut -f2; touch /x && chown 5 /x 2>/dev/null && echo gave",
                                             securityContext={"capabilities": capabilities} if capabilities else {}))
            return int(said[0], 16), said[1:]

        usual, gave = effective("usual")
        self.assertTrue(usual & 1)
        self.assertEqual(gave, ["gave"])
        self.assertEqual(effective("none", drop=["ALL"]), (0, []))
        self.assertEqual(effective("only", drop=["ALL"], add=["NET_BIND_SERVICE"]), (1 << 10, []))
        self.assertEqual(effective("less", drop=["CHOWN"]), (usual & ~1, []))

    def test_sysctls(self):
        context = {"sysctls": [{"name": "net.ipv4.tcp_fin_timeout", "value": "7"}, {"name": "kernel.shm_rmid_forced", "value": "1"}]}
        read = "cd /proc/sys; cat net/ipv4/tcp_fin_timeout kernel/shm_rmid_forced; echo 9 2>/dev/null > net/ipv4/tcp_fin_timeout || echo sealed"
        said, _ = self.lines("tuned", shell(read), securityContext=context)
        self.assertEqual(said, ["7", "1", "sealed"])
        cluster.run("forbidden", shell("true"), securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})
        status = cluster.phase("forbidden", "Failed")["status"]
        self.assertEqual((status["reason"], status["message"]),
                         ("SysctlForbidden", 'Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted'))
        self.assertNotIn("containerStatuses", status)
        cluster.remove("forbidden")


if __name__ == "__main__":
    unittest.main()
