"""A wheel, made by setup/wheel and installed into clean environments of every Python that is here:
it carries what it says and nothing else, and works as README.md prints.

It needs the network, for Debian's sources and what PyPI has of the wheel's dependencies.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from tests.support import printed
from tests.support.checkpoints import expand_small
from tests.support.clients import read
from tests.support.daemon import BUILD, CLIENT, ROOT_TOKEN, SOURCE, Daemon
from tests.support.package import settings_of, variables_of
from tests.support.skips import needs_mount
from tests.support.system_cas import PLACES, run_with_system_cas

TOOLS = os.path.join(SOURCE, 'build', 'wheel', 'tools', 'bin')
MAKE_SECONDS = 3600
RUN_SECONDS = 600
# What glibc has; names of other libraries may come only out of the wheel.
SYSTEM = {'libc.so.6', 'libm.so.6', 'libpthread.so.0', 'ld-linux-x86-64.so.2', 'ld-linux-aarch64.so.1'}
PRELUDE = '''
import asyncio, atexit, ctypes, hashlib, json, logging, mmap, socket, ssl, tempfile, weakref
import cffi, _cffi_backend, ml_dtypes, numpy, safetensors.numpy
def loaded():
    with open('/proc/self/maps') as maps:
        return {line.split()[-1] for line in maps if '.so' in line}
before = loaded()
atexit.register(lambda: print(*sorted(loaded() - before)))
'''


def interpreters():
    """{version: path} of each Python from 3.10 on: of the PATH, and of pyenv."""
    names = [sys.executable, '/usr/bin/python3', *(shutil.which(f'python3.{minor}') for minor in range(10, 20))]
    pyenv = os.environ.get('PYENV_ROOT', os.path.expanduser('~/.pyenv'))
    found = {}
    for path in [*filter(None, names), *glob.glob(os.path.join(pyenv, 'versions', '3.*', 'bin', 'python3'))]:
        done = subprocess.run([path, '-c', 'import ensurepip, sys; print(*sys.version_info[:2])'], capture_output=True, text=True)
        version = tuple(map(int, done.stdout.split()))
        if version >= (3, 10):
            found.setdefault(version, path)
    return found


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, **options)
    if done.returncode != 0:
        raise AssertionError(f'{command} ended with {done.returncode}: {done.stdout}{done.stderr}')
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([os.path.join(SOURCE, 'setup', 'wheel'), os.path.join(BUILD, 'wheels')], capture_output=True, text=True, timeout=MAKE_SECONDS)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.wheel = done.stdout.strip()
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.pythons = {version: cls.install(path, '%d.%d' % version) for version, path in interpreters().items()}
        cls.folder = os.path.join(cls.scratch, 'wheel')
        with zipfile.ZipFile(cls.wheel) as wheel:
            wheel.extractall(cls.folder)
        cls.library = os.path.join(cls.folder, 'deltabucket', '_lib', 'libdeltabucket.so.0')

    @classmethod
    def install(cls, python, name):
        """Gives the Python of a new environment with the wheel."""
        environment = os.path.join(cls.scratch, name)
        output(python, '-m', 'venv', environment)
        made = os.path.join(environment, 'bin', 'python')
        output(made, '-m', 'pip', 'install', '--disable-pip-version-check', '-q', '--only-binary', ':all:', cls.wheel, 'safetensors')
        return made

    @classmethod
    def environment(cls, daemon=None):
        """Of a program that knows nothing of this checkout."""
        return {'HOME': cls.scratch, 'PATH': '/usr/bin:/bin', 'LANG': 'C.UTF-8', **variables_of(daemon)}

    def run_python(self, python, script, daemon=None):
        return output(python, '-c', script, cwd=self.scratch, env=self.environment(daemon))

    def objects(self):
        """The paths of the extension and of all libraries in the wheel."""
        found = glob.glob(os.path.join(self.folder, '**', '*.so*'), recursive=True)
        self.assertGreater(len(found), 2)
        return found

    def metadata(self, name):
        return read(glob.glob(os.path.join(self.folder, 'deltabucket-*.dist-info', name))[0]).decode()

    def test_its_tag_names_the_glibc_that_it_needs(self):
        tag = re.search(r'-cp310-abi3-(manylinux_2_(\d+)_\w+)\.whl$', self.wheel)
        self.assertIn(f'"{tag[1]}"', output(os.path.join(TOOLS, 'auditwheel'), 'show', self.wheel))
        needed = {int(minor) for path in self.objects() for minor in re.findall(r'\(GLIBC_2\.(\d+)[.)]', output('objdump', '-T', path))}
        self.assertEqual(max(needed), int(tag[2]))

    def test_it_needs_nothing_of_the_system_but_glibc(self):
        ours = {os.path.basename(path) for path in self.objects()}
        for path in self.objects():
            needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', output('readelf', '-d', path)))
            self.assertLessEqual(needed, SYSTEM | ours, path)

    def test_what_is_linked_in_is_hidden(self):
        names = re.findall(r' [A-Z] (\w+)', output('nm', '-D', '--defined-only', self.library))
        self.assertIn('deltabucket_publish', names)
        self.assertEqual([name for name in names if not re.match('deltabucket_|DELTABUCKET_', name)], [])

    def test_it_has_the_licence_of_all_that_it_carries(self):
        notice = self.metadata('licenses/NOTICE')
        table = dict(re.findall(r'^(\S+)  +\d\S+  +(\S.*)$', notice, re.M))
        self.assertIn('curl', table)
        for name, licence in table.items():
            self.assertGreater(len(self.metadata(f'licenses/LICENSE.{name}')), 500, name)
            self.assertRegex(self.metadata('METADATA'), rf'(?m)^License-Expression: .*{re.escape(licence)}')
        names = {name.lower().replace('-', '') for name in table}
        for path in glob.glob(os.path.join(self.folder, 'deltabucket.libs', '*')):
            name = re.match(r'lib([a-z]+)-', os.path.basename(path))[1]
            self.assertIn(name.replace('hogweed', 'nettle'), names)
        self.assertIn('Apache License', self.metadata('licenses/LICENSE'))
        for name in ('GPL-2', 'GPL-3', 'LGPL-2.1', 'LGPL-3'):
            self.assertIn('GNU', self.metadata(f'licenses/LICENSE.{name}'))

    def test_the_examples_work_and_load_nothing_else(self):
        for version, python in self.pythons.items():
            with self.subTest(version), Daemon() as daemon:
                self.assertIn('No broken requirements', output(python, '-m', 'pip', 'check'))
                paths = expand_small(daemon.scratch, 2)
                self.check_loaded(python, self.run_python(python, PRELUDE + printed.publisher(paths), daemon))
                self.check_follower(python, daemon, paths[-1])

    def check_loaded(self, python, shown):
        """Libraries and modules that came with the package are the wheel's, else glibc's."""
        home = os.path.dirname(os.path.dirname(python))
        foreign = {os.path.basename(path) for path in shown.split() if not path.startswith(home)}
        self.assertLessEqual(foreign, SYSTEM)
        for name in ('/libdeltabucket.so.0', '/_native.abi3.so', '/deltabucket.libs/libgnutls-'):
            self.assertIn(name, shown)

    def check_follower(self, python, daemon, newest):
        into = os.path.join(daemon.scratch, 'weights')
        with subprocess.Popen([python, '-c', printed.follower(into)], cwd=self.scratch, env=self.environment(daemon), stdout=subprocess.PIPE, text=True) as process:
            try:
                path = process.stdout.readline().strip()
                self.assertTrue(path.startswith(into), path)
                files = os.path.join(path, 'model.safetensors'), newest
                load = f'import safetensors; one, two = (dict(safetensors.deserialize(open(path, "rb").read())) for path in {files!r}); print(one == two)'
                self.assertEqual(self.run_python(python, load), 'True\n')
            finally:
                process.kill()

    def test_its_version(self):
        program = output(CLIENT, 'version')
        for python in self.pythons.values():
            self.assertIn(self.run_python(python, 'import deltabucket; print(deltabucket.__version__)').strip(), program)

    def ask(self, place, daemon, pem):
        """A request to the server without a CA, where the system trusts that of the file pem."""
        python = self.pythons[max(self.pythons)]
        settings = {**settings_of(daemon), 'ca': None}
        script = f'import deltabucket; bucket = deltabucket.Bucket("files", **{settings!r}); bucket.create(); bucket.put("key", b"text"); print("put")'
        return run_with_system_cas([python, '-c', script], place, pem, cwd=self.scratch, env=self.environment(), timeout=RUN_SECONDS)

    @needs_mount
    def test_the_system_names_the_cas(self):
        with Daemon() as daemon, Daemon() as other:
            for place in PLACES:
                with self.subTest(place):
                    believed = self.ask(place, daemon, daemon.ca)
                    self.assertEqual((believed.stdout, believed.stderr), ('put\n', ''))
                    refused = self.ask(place, daemon, other.ca)
                    self.assertIn('deltabucket.errors.Untrusted', refused.stderr)
                    self.assertEqual(refused.stdout, '')


if __name__ == '__main__':
    unittest.main()
