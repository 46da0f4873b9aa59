#!/usr/bin/env python3
"""usage: tests/run.py [--jobs N] FOLDER...   runs every test_*.py below these folders of tests/ and says how many passed.

With --jobs the modules run in processes of their own, N at a time; each one's output is shown whole, its last line first named and timed.
Ends with the line `N passed, N failed, N skipped`; exit status 1 when any failed.
"""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)
LAST_LINE = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$', re.M)


class Result(unittest.TextTestResult):
    """Counts what passed itself: a skipped class and a failed subtest make sums of the others wrong."""
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def run(suite):
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    return result.passed, failed, len(result.skipped)


def run_apart(path):
    """One module in a process of its own; gives its output and its three sums."""
    begun = time.monotonic()
    module = os.path.relpath(path, ROOT)
    done = subprocess.run([sys.executable, os.path.abspath(__file__), module], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
    lines = LAST_LINE.findall(done.stdout)
    sums = tuple(map(int, lines[-1])) if lines else (0, 1, 0)
    return f'== {module}: {time.monotonic() - begun:.0f} s\n{LAST_LINE.sub("", done.stdout)}', sums


def main(arguments):
    jobs = 0
    if arguments[:1] == ['--jobs']:
        jobs, arguments = int(arguments[1]), arguments[2:]
    sums = [0, 0, 0]
    if jobs:
        # The largest files take longest: they go first.
        paths = sorted((path for folder in arguments for path in glob.glob(os.path.join(HERE, folder, 'test_*.py'))), key=os.path.getsize, reverse=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for output, found in pool.map(run_apart, paths):
                print(output, flush=True)
                sums = [sum(pair) for pair in zip(sums, found)]
    else:
        suite = unittest.TestSuite()
        for name in arguments:
            if name.endswith('.py'):
                suite.addTests(unittest.TestLoader().loadTestsFromName(name[:-3].replace(os.sep, '.')))
            else:
                suite.addTests(unittest.TestLoader().discover(os.path.join(HERE, name), top_level_dir=ROOT))
        sums = run(suite)
    print('{} passed, {} failed, {} skipped'.format(*sums))
    return 1 if sums[1] or not sum(sums) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:] or ['daemon']))
