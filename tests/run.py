#!/usr/bin/env python3
"""usage: tests/run.py [--jobs N] [--threads | --no-threads] FOLDER|MODULE...   runs every test_*.py below these
folders of tests/, and these modules (tests/.../test_x.py), and says how many passed.

With --jobs the modules run in processes of their own, N at a time; each one's output is shown whole, with its name, its time and that of the processors
first. With --threads, for the thread sanitizer, modules that say `THREADS_MEET = False` and tests marked `bytes_alone` (tests/support/daemon.py) are
left out: they are about bytes and messages, and what threads do in them happens in others too. With --no-threads only those are run: two sanitizers
share the tests between them.
Ends with the line `N passed, N failed, N skipped`; exit status 1 when any failed.
"""
import concurrent.futures
import glob
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, ROOT)
from tests.support.skips import CANNOT_BE_MENDED
from tests.support.strays import Strays

SLOW_SECONDS = 4
# Of a module, which takes two minutes at most, in its long form half an hour: nothing but a hang
# comes near.
HANG_SECONDS = 10_800 if os.environ.get('DELTABUCKET_TORTURE') else 1200
# Those that take longest go first, so that none is left running alone at the end; then by size.
LONGEST = ('test_damage', 'test_command_xet', 'test_matrix', 'test_sync', 'test_lifecycle_rules', 'test_derived', 'test_webhooks', 'test_step_proof', 'test_failures', 'test_gc',
           'test_aws', 'test_hub_commands', 'test_hub_xet', 'test_javascript', 'test_hub',
           'test_power_cut', 'test_bit_flips')
PROCESSORS = re.compile(r'^processors: (\d+) s\n', re.M)
LAST_LINE = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$', re.M)


class Result(unittest.TextTestResult):
    """Counts what passed itself: a skipped class and a failed subtest make sums of the others wrong.
    What a thread, a future or a server of the test raised fails it, and so does a skip whose reason
    a developer's machine can mend."""
    passed = 0

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.strays = Strays()

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        took = time.monotonic() - self.begun
        if took >= SLOW_SECONDS:
            print(f'    {took:.0f} s: {test.id()}', file=sys.stderr)

    def addSuccess(self, test):
        strays = self.strays.take()
        if strays:
            self.addError(test, strays[0])
        else:
            super().addSuccess(test)
            self.passed += 1

    def addSkip(self, test, reason):
        if reason in CANNOT_BE_MENDED:
            super().addSkip(test, reason)
        else:
            self.addFailure(test, (AssertionError, AssertionError(f'skipped: {reason}'), None))

    def stopTestRun(self):
        self.strays.wait_for_threads()
        for stray in self.strays.take():
            self.addError(Afterwards(), stray)
        super().stopTestRun()


class Afterwards(unittest.TestCase):
    """Stands for no test: a thread went on when the last one had passed, or beside one that failed."""

    def runTest(self):
        pass


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def may_meet_threads(test):
    method = getattr(test, getattr(test, '_testMethodName', ''), None)
    return (getattr(sys.modules[type(test).__module__], 'THREADS_MEET', True) and getattr(test, 'threads_meet', True)
            and getattr(method, 'threads_meet', True))


def module_of(name):
    """The tests of one module; one skipped test in their place where the module itself says that it is left out."""
    try:
        return unittest.TestLoader().loadTestsFromName(name[:-3].replace(os.sep, '.'))
    except unittest.SkipTest as left_out:
        return unittest.TestSuite([unittest.FunctionTestCase(unittest.skip(str(left_out))(module_of), description=name)])


def run(suite, flag):
    if flag:
        suite = unittest.TestSuite(test for test in tests_of(suite) if may_meet_threads(test) == (flag == '--threads'))
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    return result.passed, failed, len(result.skipped)


def run_apart(path, flags):
    """One module in a process of its own; gives its output and its three sums."""
    begun = time.monotonic()
    module = os.path.relpath(path, ROOT)
    with tempfile.TemporaryFile('w+', errors='replace') as log:  # no pipe: what a module that hangs has started may hold it open
        process = subprocess.Popen([sys.executable, os.path.abspath(__file__), *flags, module], stdout=log, stderr=subprocess.STDOUT)
        try:
            process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            log.write(f'ERROR: {module} was still running after {HANG_SECONDS} s\n')
        log.seek(0)
        output = log.read()
    lines = LAST_LINE.findall(output)
    sums = tuple(map(int, lines[-1])) if lines else (0, 1, 0)
    if process.returncode != 0 and sums[1] == 0 and (any(sums) or not flags):  # a module may have nothing to run
        sums = (sums[0], 1, sums[2])
        output += f'ERROR: {module} ended with {process.returncode}\n'
    used = PROCESSORS.search(output)
    processors = f', {used[1]} s of processors' if used else ''
    return f'== {module}: {time.monotonic() - begun:.0f} s{processors}\n{LAST_LINE.sub("", PROCESSORS.sub("", output))}', sums


def processor_seconds():
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def urgency(path):
    name = os.path.basename(path)[:-3]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST), -os.path.getsize(path)


def modules_of(name):
    """The paths of a module alone or of those in a folder of tests/."""
    if name.endswith('.py'):
        return [os.path.join(ROOT, name)]
    return glob.glob(os.path.join(HERE, name, 'test_*.py'))


def main(arguments):
    jobs = 0
    if arguments[:1] == ['--jobs']:
        jobs, arguments = int(arguments[1]), arguments[2:]
    flags = arguments[:1] if arguments[:1] in (['--threads'], ['--no-threads']) else []
    arguments = arguments[len(flags):]
    sums = [0, 0, 0]
    if jobs:
        paths = sorted((path for name in arguments for path in modules_of(name)), key=urgency)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for output, found in pool.map(run_apart, paths, [flags] * len(paths)):
                print(output, flush=True)
                sums = [sum(pair) for pair in zip(sums, found)]
    else:
        suite = unittest.TestSuite()
        for name in arguments:
            if name.endswith('.py'):
                suite.addTests(module_of(name))
            else:
                suite.addTests(unittest.TestLoader().discover(os.path.join(HERE, name), top_level_dir=ROOT))
        sums = run(suite, flags[0] if flags else None)
        print(f'processors: {processor_seconds():.0f} s')
    print('{} passed, {} failed, {} skipped'.format(*sums))
    return 1 if sums[1] or not sum(sums) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:] or ['daemon']))
