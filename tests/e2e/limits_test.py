"""Limits as people ask for them: of processes, of the disk and what passes to and from it, of volumes."""
import json
import os
import shutil
import time
import unittest

from life_test import LifeCase


def need_disks(test):
    if not os.access("/dev/loop-control", os.R_OK | os.W_OK):
        test.skipTest("needs loop devices (/dev/loop-control)")
    if not shutil.which("mkfs.ext4", path="/usr/sbin:/sbin"):
        test.skipTest("needs mkfs.ext4")


class LimitsTest(LifeCase):
    def test_ulimits(self):
        self.make("--ulimit", "nofile=100:200", "--ulimit", "cpu=unlimited", "--ulimit", "fsize=1048576")
        self.assertEqual(self.sh("box", "ulimit -Sn; ulimit -Hn; ulimit -t"), "100\n200\nunlimited\n")
        result = self.hearth("exec", "box", "--", "head", "-c", "2m", "/dev/zero")
        self.assertEqual(len(result.stdout), 2 << 20)
        self.assertNotEqual(self.hearth("exec", "box", "--", "sh", "-c", "head -c 2m /dev/zero > /big").returncode, 0)
        self.assertEqual(self.sh("box", "stat -c %s /big"), "1048576\n")
        self.assertNotEqual(self.hearth("exec", "box", "--", "sh", "-c", "ulimit -Hn 201").returncode, 0)
        for option, why in (("nofile=2:1", "above the hard one"), ("files=1", "there is no limit 'files'"), ("nofile=x", "nofile=SOFT"),
                            ("core=1", "ulimit core: 1 is more than this engine can give, which is 0")):
            self.assertIn(why, self.refused("run", "--ulimit", option, "--", "true", code=125))
        self.assertEqual(self.ids(), ["box"])

    def test_io_limits_are_shown_and_checked(self):
        said = self.refused("run", "--io-write", "1", "--", "true", code=125)
        self.assertIn("the least is 64 KiB", said)
        self.assertIn("--io-read-ops", self.refused("run", "--io-read-ops", "many", "--", "true", code=125))
        result = self.hearth("run", "-d", "--name", "box", "--io-write", "1m", "--io-read-ops", "50", "-v", "data:/data")
        if result.returncode != 0:
            self.assertIn("cannot", result.stderr)  # a reason, and no sandbox
            self.assertEqual(self.ids(), [])
            self.skipTest(result.stderr.strip())
        limits = self.inspect("box")["limits"]
        self.assertEqual((limits["io_write_bytes"], limits["io_read_ops"], limits["io_read_bytes"]), (1 << 20, 50, 0))
        start = time.monotonic()
        self.sh("box", "dd if=/dev/zero of=/data/x bs=64k count=32 oflag=direct 2>/dev/null")
        self.assertGreater(time.monotonic() - start, 1)

    def test_a_writable_layer_on_the_disk(self):
        need_disks(self)
        self.make("--disk", "32m", "--disk-on", "disk", "--memory", "64m")
        self.assertEqual(self.sh("box", "head -c 20m /dev/zero > /a; stat -c %s /a"), f"{20 << 20}\n")
        result = self.hearth("exec", "box", "--", "sh", "-c", "head -c 20m /dev/zero > /b")
        self.assertIn("No space left", result.stderr)
        fork = self.done("fork", "box").strip()
        self.assertEqual(self.sh(fork, "stat -c %s /a"), f"{20 << 20}\n")
        self.assertIn("'tape'", self.refused("run", "--disk-on", "tape", "--", "true", code=125))
        self.assertIn("4 MiB", self.refused("run", "--disk", "0", "--disk-on", "disk", "--", "true", code=125))

    def test_a_volume_with_a_size(self):
        need_disks(self)
        self.assertEqual(self.done("volume", "create", "data", "--size", "16m"), "data\n")
        self.assertEqual(self.done("volume", "create", "plain"), "plain\n")
        self.assertIn("already", self.refused("volume", "create", "data"))
        self.assertIn("--size goes with create", self.refused("volume", "ls", "--size", "1m"))
        self.make("-v", "data:/data")
        result = self.hearth("exec", "box", "--", "sh", "-c", "head -c 20m /dev/zero > /data/x")
        self.assertIn("No space left", result.stderr)
        self.sh("box", "sync")
        listed = {one["name"]: one for one in json.loads(self.done("volume", "ls", "-o", "json"))}
        self.assertEqual(listed["plain"]["size_bytes"], 0)
        self.assertEqual(listed["data"]["size_bytes"], 16 << 20)
        self.assertTrue(8 << 20 < listed["data"]["taken_bytes"] <= 16 << 20, listed)
        row = next(line for line in self.done("volume", "ls").splitlines() if line.startswith("data"))
        self.assertIn("16 MiB", row)


if __name__ == "__main__":
    unittest.main()
