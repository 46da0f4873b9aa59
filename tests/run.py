#!/usr/bin/env python3
"""usage: tests/run.py FOLDER...   runs every test_*.py below these folders of tests/ and says how many passed.

Ends with the line `N passed, N failed, N skipped`; exit status 1 when any failed.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))


class Result(unittest.TextTestResult):
    """Counts what passed itself: a skipped class and a failed subtest make sums of the others wrong."""
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main(folders):
    suite = unittest.TestSuite()
    for folder in folders:
        suite.addTests(unittest.TestLoader().discover(os.path.join(HERE, folder), top_level_dir=os.path.dirname(HERE)))
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f'{result.passed} passed, {failed} failed, {len(result.skipped)} skipped')
    return 1 if failed or result.testsRun == 0 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:] or ['daemon']))
