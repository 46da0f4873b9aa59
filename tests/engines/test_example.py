"""examples/grpo_cpu from end to end, with a model that is too small to learn much."""
import os
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from tests.support.clients import INSTALLED
from tests.support.daemon import SERVER, SOURCE
from tests.support.package import PACKAGE, package_is_ready
from tests.support.skips import NO_TORCH

if not package_is_ready('torch', 'transformers', environment='torch'):
    raise unittest.SkipTest(NO_TORCH)

PYTHON = os.path.join(INSTALLED, 'torch', 'bin', 'python')
SCRIPT = os.path.join(SOURCE, 'examples', 'grpo_cpu', 'run.py')
STEPS = 6


class Example(unittest.TestCase):
    def test_a_rollout_is_killed_and_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = os.path.join(folder, 'learning.svg')
            done = subprocess.run(
                [PYTHON, SCRIPT, '--tiny', '--steps', str(STEPS), '--supervised', '80', '--rate',
                 '1e-3', '--deltabucketd', SERVER, '--plot', plot], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env=dict(os.environ, PYTHONPATH=PACKAGE, TMPDIR=folder))
            self.assertEqual(done.returncode, 0, done.stdout)
            xml.etree.ElementTree.parse(plot)
            self.assertEqual([name for name in os.listdir(folder) if name.startswith('grpo-')], [])
        out = done.stdout
        self.assertIn('rollout-1 is killed\n', out)
        self.assertIn('rollout-1 is started again\n', out)
        self.assertRegex(out, rf'\nstep +{STEPS}  delta +\d\d,\d+ of ', 'the weights stand still')
        for name, lives in (('rollout-0', 1), ('rollout-1', 2)):
            self.assertRegex(out, rf'\n{name}: (\d+) of \1 steps bit-identical '
                             rf'.*; processes: {lives}\.\n')
        self.assertIn('\nAll weights were bit-identical throughout.\n', out)


if __name__ == '__main__':
    unittest.main()
