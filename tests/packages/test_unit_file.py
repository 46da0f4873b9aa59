"""deltabucketd.service: systemd reads it without a complaint, and it leaves the server what it needs
and little else."""
import os
import re
import subprocess
import tempfile
import unittest

from tests.support.daemon import BUILD, SERVER

EXPOSURE_MAX = 20  # tenths; that of a unit without any of it is 96


def analyze(*words):
    return subprocess.run(['systemd-analyze', *words], capture_output=True, text=True, timeout=120)


class UnitFile(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='deltabucket-test-')
        self.addCleanup(scratch.cleanup)
        subprocess.run(['make', '-s', '-C', BUILD, 'deltabucketd.service'], check=True, capture_output=True)
        with open(os.path.join(BUILD, 'deltabucketd.service')) as file:
            self.text = file.read()
        # systemd looks whether the program is there, which is not installed yet.
        self.path = os.path.join(scratch.name, 'deltabucketd.service')
        with open(self.path, 'w') as file:
            file.write(re.sub(r'^ExecStart=\S+', f'ExecStart={SERVER}', self.text, flags=re.M))

    def test_systemd_reads_it(self):
        done = analyze('verify', '--man=no', self.path)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))

    def test_it_is_closed(self):
        done = analyze('security', '--offline=true', f'--threshold={EXPOSURE_MAX}', '--no-pager', self.path)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_root_is_told_from_others_at_the_control_socket(self):
        """In a user namespace of its own the server would see root as nobody."""
        self.assertNotIn('\nPrivateUsers=', self.text)

    def test_it_starts_what_is_installed(self):
        self.assertRegex(self.text, r'(?m)^ExecStart=/\S+/bin/deltabucketd --config /\S+/deltabucket/deltabucketd.conf$')
        self.assertNotRegex(self.text, r'@[a-z]+@')


if __name__ == '__main__':
    unittest.main()
