"""tests/run.py on small modules: what must fail ./check does, and what must not does not."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from tests.support.daemon import SOURCE
from tests.support.skips import NO_MOUNT

HEAD = '''
import concurrent.futures
import http.server
import threading
import unittest
import urllib.request
'''
CASE = '''
class Case(unittest.TestCase):
    def test(self):
'''
# What a test does, and what is said of it: the sums, and a word of the output.
TESTS = {
    'passes': ('pass', '1 passed, 0 failed, 0 skipped', 'ok'),
    'fails': ('self.fail("so it is")', '0 passed, 1 failed, 0 skipped', 'so it is'),
    'fails in a thread': ('''
        thread = threading.Thread(target=self.fail, args=['in a thread'])
        thread.start()
        thread.join()
        ''', '0 passed, 1 failed, 0 skipped', 'in a thread'),
    'fails in a thread that outlives it': ('''
        gate = threading.Event()
        self.addClassCleanup(gate.set)
        threading.Thread(target=lambda: gate.wait() and self.fail('later')).start()
        ''', '1 passed, 1 failed, 0 skipped', 'later'),
    'ends a thread': ('''
        thread = threading.Thread(target=exit)
        thread.start()
        thread.join()
        ''', '1 passed, 0 failed, 0 skipped', 'ok'),
    'fails in a future that nobody asks': ('''
        with concurrent.futures.ThreadPoolExecutor() as pool:
            pool.submit(self.fail, 'in a future')
        ''', '0 passed, 1 failed, 0 skipped', 'in a future'),
    'asks a future': ('''
        with concurrent.futures.ThreadPoolExecutor() as pool:
            failing = pool.submit(self.fail, 'in a future')
        self.assertRaises(AssertionError, failing.result)
        ''', '1 passed, 0 failed, 0 skipped', 'ok'),
    'fails in a server': ('''
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                self.fail('in a server')
        with http.server.HTTPServer(('127.0.0.1', 0), Handler) as server:
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            with self.assertRaises(OSError):
                urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}')
            thread.join()
        ''', '0 passed, 1 failed, 0 skipped', 'in a server'),
    'skips what can be mended': ('self.skipTest("there is no curl")',
                                 '0 passed, 1 failed, 0 skipped', 'skipped: there is no curl'),
    'skips what cannot': (f'self.skipTest({NO_MOUNT!r})', '0 passed, 0 failed, 1 skipped',
                          NO_MOUNT),
}
MODULES = {
    'holds no test': ('', '0 passed, 0 failed, 0 skipped'),
    'is skipped': ('raise unittest.SkipTest("there is no numpy")', '0 passed, 1 failed, 0 skipped'),
    'cannot be read': ('import nothing_of_this_name', '0 passed, 1 failed, 0 skipped'),
    'ends its process': (CASE + '        import os; os._exit(0)', '0 passed, 1 failed, 0 skipped'),
}
HALVES = """
from tests.support.daemon import bytes_alone

class Mixed(unittest.TestCase):
    def test_met(self): pass
    def test_other(self): pass
    @bytes_alone
    def test_alone(self): pass
"""
BYTES = 'THREADS_MEET = False\n' + HALVES


class Run(unittest.TestCase):
    """The modules lie beside a copy of the runner, so that nobody else finds them."""

    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.tests = os.path.join(cls.root, 'tests')
        os.mkdir(cls.tests)
        shutil.copy(os.path.join(SOURCE, 'tests', 'run.py'), cls.tests)
        os.symlink(os.path.join(SOURCE, 'tests', 'support'), os.path.join(cls.tests, 'support'))

    def run_folder(self, name, text, *flags):
        folder = os.path.join(self.tests, name.replace(' ', '_'))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, '__init__.py'), 'w'), \
                open(os.path.join(folder, 'test_it.py'), 'w') as module:
            module.write(HEAD + text)
        runner = os.path.join(self.tests, 'run.py')
        done = subprocess.run([sys.executable, runner, *flags, os.path.basename(folder)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.root)
        return done.returncode, done.stdout

    def judge(self, name, text, flags, sums, word=''):
        with self.subTest(name, flags=flags):
            status, output = self.run_folder(name, text, *flags)
            self.assertEqual(output.splitlines()[-1:], [sums], output)
            self.assertIn(word, output)
            passed, failed, skipped = map(int, re.findall(r'\d+', sums))
            self.assertEqual(status, 1 if failed or not passed + skipped else 0, output)

    def test_what_a_test_does(self):
        for name, (body, sums, word) in TESTS.items():
            lines = textwrap.indent(textwrap.dedent(body).strip(), ' ' * 8)
            self.judge(name, CASE + lines, (), sums, word)

    def test_modules_in_processes_of_their_own(self):
        for name, (text, sums) in MODULES.items():
            wanted = sums.replace('0 failed, 0', '1 failed, 0')
            self.judge(name, text, ('--jobs', '1'), wanted)

    def test_each_test_is_run_with_threads_or_without(self):
        for flags in ((), ('--jobs', '1')):
            self.judge('mixed', HALVES, (*flags, '--threads'), '2 passed, 0 failed, 0 skipped')
            self.judge('mixed', HALVES, (*flags, '--no-threads'), '1 passed, 0 failed, 0 skipped')
            self.judge('bytes', BYTES, (*flags, '--threads'), '0 passed, 0 failed, 0 skipped')
            self.judge('bytes', BYTES, (*flags, '--no-threads'), '3 passed, 0 failed, 0 skipped')


if __name__ == '__main__':
    unittest.main()
