"""tests/run-unit on programs of two lines: a program that checks nothing has failed."""
import os
import subprocess
import tempfile
import unittest

from tests.support.daemon import SOURCE

PROGRAMS = ('storage', 'weights', 'api', 'base', 'client', 'server', 'wire', 'chunker')
GOOD = 'echo "2 passed, 0 failed, 0 skipped"'
NONE = 'echo "0 passed, 0 failed, 0 skipped"'


class RunUnit(unittest.TestCase):
    def run_unit(self, **bodies):
        """What a program does, by its name; the others' first share passes two checks."""
        with tempfile.TemporaryDirectory(prefix='deltabucket-test-') as build:
            for name in PROGRAMS:
                body = bodies.get(name, f'case $1 in 1/*) {GOOD};; *) {NONE};; esac')
                with open(os.path.join(build, f'unit_{name}'), 'w') as file:
                    file.write(f'#!/bin/sh\n{body}\n')
                os.chmod(file.name, 0o700)
            done = subprocess.run([os.path.join(SOURCE, 'tests', 'run-unit')], text=True,
                                  env=dict(os.environ, DELTABUCKET_BUILD=build),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.splitlines()[-1], done.stdout

    def test_a_share_may_have_no_suite(self):
        status, sums, _ = self.run_unit()
        self.assertEqual((status, sums), (0, '16 passed, 0 failed, 0 skipped'))

    def test_each_way_to_fail(self):
        status, sums, output = self.run_unit(
            wire=NONE, server='exit 0', chunker='echo "0 passed, 1 failed, 0 skipped"; exit 1',
            client=f'{GOOD}; exit 1')
        self.assertIn('unit_wire: ERROR: no check ran', output)
        self.assertIn('unit_server-1: ERROR: ended with status 0 before its summary', output)
        self.assertIn('unit_client-1: ERROR: status 1', output)
        # Four programs pass two checks and ten shares of the client's two each.
        self.assertEqual((status, sums), (1, f'28 passed, {1 + 4 + 8 + 10} failed, 0 skipped'))


if __name__ == '__main__':
    unittest.main()
