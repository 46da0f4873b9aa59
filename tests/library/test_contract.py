"""What is installed, and that the library, its header and docs/LIBRARY.md say the same."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.daemon.test_library import environment_of, walk
from tests.support import library
from tests.support.checkpoints import expand_small
from tests.support.daemon import BUILD, Daemon, SOURCE

HEADER = os.path.join(SOURCE, 'library', 'deltabucket.h')
DOCUMENT = os.path.join(SOURCE, 'docs', 'LIBRARY.md')


def read(*path):
    with open(os.path.join(SOURCE, *path)) as file:
        return file.read()


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f'{command} ended with {done.returncode}: {done.stdout}{done.stderr}')
    return done.stdout


class Contract(unittest.TestCase):
    def test_what_the_header_declares_is_exported_and_nothing_else(self):
        declared = set(re.findall(r'^DELTABUCKET_API[^;]*?\b(deltabucket_\w+)\(', read('library', 'deltabucket.h'), re.M))
        lines = output('nm', '--dynamic', '--defined-only', library.PATH).splitlines()
        exported = {line.split()[2].split('@')[0] for line in lines if line.split()[1] != 'A'}
        self.assertGreater(len(declared), 10)
        self.assertEqual(declared, exported)
        self.assertEqual({line.split()[2].partition('@@')[2] for line in lines if line.split()[1] != 'A'}, {'DELTABUCKET_0'})

    def test_it_has_its_soname_and_needs_no_library_of_the_server(self):
        dynamic = output('readelf', '--dynamic', '--wide', library.PATH)
        self.assertEqual(re.findall(r'\(SONAME\).*\[(.*)\]', dynamic), ['libdeltabucket.so.0'])
        needed = re.findall(r'\(NEEDED\).*\[(.*?)\.so', dynamic)
        self.assertIn('libcurl', ' '.join(needed))
        self.assertFalse({'libsqlite3', 'libmicrohttpd', 'libgnutls'} & set(needed), needed)
        self.assertNotIn('TEXTREL', dynamic)

    def test_the_versions_agree(self):
        names = library.Library().names
        names.deltabucket_version.restype = library.ctypes.c_char_p
        version = names.deltabucket_version().decode()
        self.assertEqual(version, re.search(r'AC_INIT\(\[deltabucket\], \[(.*)\]\)', read('configure.ac'))[1])
        self.assertEqual(os.path.basename(os.path.realpath(library.PATH)), f'libdeltabucket.so.{version}')

    def test_the_document_lists_every_kind_of_error(self):
        kinds = re.findall(r'^ERROR_KIND\((\w+), *(\d+), "(.*)"\)$', read('base', 'error.def'), re.M)
        rows = re.findall(r'^\| (\d+) \| `(\w+)` \| (.*) \|$', read('docs', 'LIBRARY.md'), re.M)
        self.assertEqual(rows, [(number, name.lower(), meaning) for name, number, meaning in kinds])

    def test_the_header_is_also_one_for_cplusplus(self):
        output('g++', '-std=c++20', '-Wall', '-Wextra', '-Werror', '-pedantic', '-fsyntax-only', '-x', 'c++', HEADER)

    def test_no_struct_ends_in_bytes_that_a_new_member_could_take(self):
        said = subprocess.run(['gcc', '-std=c11', '-Wpadded', '-fsyntax-only', '-x', 'c', HEADER], capture_output=True, text=True, timeout=300)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn('to align', said.stderr)
        self.assertNotIn('alignment boundary', said.stderr)

    def test_the_library_is_installed_without_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            output(os.path.join(SOURCE, 'configure'), '--silent', '--disable-server', cwd=folder)
            said = output('make', '-n', 'install', f'DESTDIR={folder}/to', cwd=folder)
        self.assertTrue(re.search(rf'install -c \S+ {folder}/to/usr/local/lib/libdeltabucket\.so', said))
        self.assertEqual(re.findall(r'(?:server|storage|api)/[\w/]+\.o\b', said)[:1], [])


class Installed(unittest.TestCase):
    """Programs that are built as a user builds them, with the address sanitizer, which finds what the library leaves behind."""
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='deltabucket-installed-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        output('make', '-s', '-C', BUILD, 'install', f'DESTDIR={cls.folder}', 'prefix=/usr')
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.start()

    def installed(self, *path):
        return os.path.join(self.folder, 'usr', *path)

    def flags(self, *what):
        environment = dict(os.environ, PKG_CONFIG_PATH=self.installed('lib', 'pkgconfig'))
        return output('pkg-config', f'--define-variable=prefix={self.installed()}', *what, 'deltabucket', env=environment).split()

    def build(self, source, name, *more, compiler='gcc', standard='c11'):
        program = os.path.join(self.folder, name)
        output(compiler, f'-std={standard}', '-g', '-Wall', '-Wextra', '-Werror', '-pedantic', '-fsanitize=address', *more, source, '-o', program,
               *self.flags('--cflags', '--libs'))
        return program

    def test_all_is_in_its_place(self):
        version = self.flags('--modversion')[0]
        self.assertEqual(sorted(name for name in os.listdir(self.installed('lib')) if 'deltabucket' in name),
                         ['libdeltabucket.so', 'libdeltabucket.so.0', f'libdeltabucket.so.{version}'])
        for link in ('libdeltabucket.so', 'libdeltabucket.so.0'):
            self.assertEqual(os.path.realpath(self.installed('lib', link)), os.path.realpath(self.installed('lib', f'libdeltabucket.so.{version}')))
        self.assertEqual(self.flags('--libs'), [f'-L{self.installed("lib")}', '-ldeltabucket'])
        with open(self.installed('include', 'deltabucket.h')) as file:
            self.assertEqual(file.read(), read('library', 'deltabucket.h'))

    def test_the_example_of_the_document_runs(self):
        (example,) = re.findall(r'^```c\n(.*?)^```$', read('docs', 'LIBRARY.md'), re.M | re.S)
        source = os.path.join(self.folder, 'example.c')
        with open(source, 'w') as file:
            file.write(example)
        program = self.build(source, 'example')
        (checkpoint,) = expand_small(self.folder, 0)
        said = output(program, checkpoint, env=self.environment())
        self.assertRegex(said, r'step 0 is xxh3-128:[0-9a-f]{32}\n')
        self.assertIn('notes has 7 bytes\n', said)
        self.assertTrue(said.endswith('the notes say lr 3e-6\n'), said)
        self.assertIn('step 0', self.daemon.client('runs', 'models').stdout)

    def test_what_a_program_in_cplusplus_must_not_pass_is_refused(self):
        source = os.path.join(SOURCE, 'tests', 'support', 'library_arguments.cc')
        for compiler in filter(shutil.which, ('g++', 'clang++', 'clang++-14')):
            for standard in ('c++11', 'c++17', 'c++20'):
                with self.subTest(compiler=compiler, standard=standard):
                    program = self.build(source, 'arguments', compiler=compiler, standard=standard)
                    self.assertEqual(output(program, env=self.environment()), 'refused\n')

    def test_a_walk_leaves_nothing_behind(self):
        sources = sorted(glob.glob(os.path.join(SOURCE, 'tests', 'support', 'library_walk*.c')))
        program = self.build(sources[0], 'walk', *sources[1:], '-pthread', '-D_GNU_SOURCE', f'-I{SOURCE}')
        walk(program, self.daemon, **self.environment())

    def environment(self):
        return dict(environment_of(self.daemon), LD_LIBRARY_PATH=self.installed('lib'))
