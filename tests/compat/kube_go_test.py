"""A program of client-go against `hearth apiserver`: protobuf bodies, informers, leases, events, apply.

Built once, into the build folder; cold, that takes minutes, so it happens only if HEARTH_GO_COMPAT=1 asks for it.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import unittest

from api_server import ApiServer
from client_venv import FOLDER

SOURCE = pathlib.Path(__file__).resolve().parent / "go"


def program():
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(SOURCE.iterdir()))).hexdigest()[:12]
    built = FOLDER / f"kube-go-{digest}"
    if built.exists():
        return str(built)
    if os.environ.get("HEARTH_GO_COMPAT") != "1":
        raise unittest.SkipTest("needs HEARTH_GO_COMPAT=1 once: client-go takes minutes to build")
    if not shutil.which("go"):
        raise unittest.SkipTest("needs go")
    FOLDER.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(built), "."], cwd=SOURCE, capture_output=True, text=True,
                          timeout=900)
    if done.returncode != 0 and "go.sum" not in done.stderr and "dial" in done.stderr:
        raise unittest.SkipTest(f"needs the modules of client-go: {done.stderr.strip().splitlines()[-1]}")
    if done.returncode != 0:
        raise AssertionError(f"go build: {done.stderr}")
    return str(built)


class ClientGo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = program()
        cls.server = ApiServer()
        cls.addClassCleanup(cls.server.end)

    def runs(self, case):
        done = subprocess.run([self.program, case], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, KUBECONFIG=self.server.kubeconfig))
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}{done.stderr}")

    def test_typed(self):
        self.runs("typed")

    def test_dynamic(self):
        self.runs("dynamic")

    def test_informers(self):
        self.runs("informers")

    def test_election(self):
        self.runs("election")

    def test_events(self):
        self.runs("events")

    def test_apply(self):
        self.runs("apply")


if __name__ == "__main__":
    unittest.main()
