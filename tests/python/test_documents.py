"""What the documents show works as printed, the package passes mypy --strict, and the declarations
follow the header."""
import os
import re
import subprocess
import sys
import unittest

from tests.support import printed
from tests.support.checkpoints import expand_small
from tests.support.clients import read
from tests.support.daemon import CLIENT, SOURCE, Daemon
from tests.support.package import PACKAGE, PYTHON, package_is_ready, run_script, start_script

if not package_is_ready('mypy', 'safetensors'):
    raise unittest.SkipTest('setup/clients has not installed numpy, ml_dtypes, cffi and mypy')


def tensors(path):
    """{name: dtype, shape and bytes} of a safetensors file."""
    import safetensors
    return dict(safetensors.deserialize(read(path)))


class Printed(unittest.TestCase):
    def test_five_lines_of_publisher_and_of_follower(self):
        for lines in printed.examples('README.md')[:2]:
            self.assertLessEqual(len(lines.strip().split('\n')), 6, lines)
        with Daemon() as daemon:
            paths = expand_small(daemon.scratch, 2)
            done = run_script(printed.publisher(paths), daemon=daemon)
            self.assertEqual((done.returncode, done.stderr), (0, ''), done.stderr)
            into = os.path.join(daemon.scratch, 'weights')
            process = start_script(printed.follower(into), daemon=daemon)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            path = process.stdout.readline().strip()
            self.assertTrue(path.startswith(into), path)
            self.assertEqual(tensors(os.path.join(path, 'model.safetensors')), tensors(paths[2]))


class Sources(unittest.TestCase):
    def test_types(self):
        done = subprocess.run([PYTHON, '-m', 'mypy', '--config-file', 'pyproject.toml',
                               '--cache-dir', os.path.join(PACKAGE, '..', 'mypy')],
                              cwd=os.path.join(SOURCE, 'python'), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_types_that_callers_see(self):
        lines = ["import deltabucket", "run = deltabucket.Run('a/b')",
                 "text: str = deltabucket.Bucket('b').get('key').decode()",
                 "with run.follow() as steps:",
                 "    for step in steps:", "        number: int = step.number",
                 "        steps.report('ready')"]
        done = subprocess.run([PYTHON, '-m', 'mypy', '--strict', '--follow-imports=silent', '--cache-dir',
                               os.path.join(PACKAGE, '..', 'mypy-callers'), '-c', '\n'.join(lines)],
                              env=dict(os.environ, MYPYPATH=PACKAGE), cwd='/',
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_declarations_follow_the_header(self):
        sys.path.insert(0, os.path.join(SOURCE, 'python'))
        self.addCleanup(sys.path.pop, 0)
        import native_build
        with open(os.path.join(SOURCE, 'library', 'deltabucket.h')) as file:
            header = file.read()
        text, defaults = native_build.declarations_of(header)
        names = re.findall(r'^DELTABUCKET_API [^;(]*\b(\w+)\(', header, re.M)
        self.assertGreater(len(names), 30)
        self.assertEqual([name for name in names if f'{name}(' not in text], [])
        self.assertIn('deltabucket_publication', defaults)
        for wrong in ('#define DELTABUCKET_OTHER 3\n', '#if 1\n', 'DELTABUCKET_API int x;\n',
                      'int y __attribute__((packed));\n'):
            with self.assertRaises(SystemExit, msg=wrong):
                native_build.declarations_of(header + wrong)

    def test_another_version_of_the_library_is_refused(self):
        done = run_script('''
import importlib.util, os, sys
spec = importlib.util.find_spec('deltabucket')
folder = os.path.dirname(spec.origin)
place = importlib.util.spec_from_file_location('deltabucket._native',
                                               os.path.join(folder, '_native.abi3.so'))
real = importlib.util.module_from_spec(place)
place.loader.exec_module(real)
class Lib:
    def __getattr__(self, name):
        return getattr(real.lib, name)
    def deltabucket_version(self):
        return self.kept
fake = type(sys)('deltabucket._native')
fake.ffi, fake.lib = real.ffi, Lib()
fake.lib.kept = real.ffi.new('char[]', b'9.9.9')
sys.modules['deltabucket._native'] = fake
try:
    import deltabucket
except ImportError as failure:
    print(failure)
''')
        self.assertIn('version 9.9.9 was loaded', done.stdout, done.stderr)

    def test_the_source_folder_says_that_it_is_not_built(self):
        done = run_script("""
import sys
sys.path.insert(0, sys.argv[1])
import deltabucket
""", os.path.join(SOURCE, 'python'))
        self.assertIn('is not built', done.stderr)
        self.assertIn('pip install ./python', done.stderr)

    def test_versions(self):
        done = run_script('import deltabucket; print(deltabucket.__version__)')
        program = subprocess.run([CLIENT, 'version'], capture_output=True, text=True).stdout
        self.assertIn(done.stdout.strip(), program)


if __name__ == '__main__':
    unittest.main()
