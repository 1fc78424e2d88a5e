"""The end-to-end tests on a whole cluster, with our controller and guest in its pods.

Skipped, loudly, unless the environment names the programs of a cluster (node.PROGRAMS): docs/controllers.md.
"""
import contextlib
import subprocess
import sys
import unittest

import node
import run
from client_venv import AGENT_SANDBOX, python_with

TESTS = node.HERE.parent
SUITES = ("cluster/deployed_suite.py", "e2e/sandboxes_test.py", "e2e/claims_test.py", "e2e/claim_faults_test.py",
          "compat/k8s_sdk_pool_test.py")
IN_THE_CLUSTER = "--in-the-cluster"


def run_suites():
    """The number of those that failed."""
    failed = [suite for suite in SUITES if subprocess.run([sys.executable, str(TESTS / suite)]).returncode != 0]
    print(f"{len(SUITES) - len(failed)} of {len(SUITES)} suites passed; failed: {failed}", flush=True)
    return len(failed)


class WholeClusterTest(unittest.TestCase):
    def test_suites(self):
        node.need_programs()
        # Behind the walls nothing can be fetched. Without it its own tests say that they were skipped.
        with contextlib.suppress(unittest.SkipTest):
            python_with(AGENT_SANDBOX)
        self.assertEqual(run.main([sys.executable, __file__, IN_THE_CLUSTER]), 0)


if __name__ == "__main__":
    if IN_THE_CLUSTER in sys.argv:
        sys.exit(run_suites())
    unittest.main(verbosity=2)
