"""Builds libdeltabucket and the extension module over it.

The C sources lie in core/ (in an sdist) or in the folder above (in a checkout). They are copied
into the build folder and built there with their own autotools, the library alone. Where
DELTABUCKET_LIBRARY names a libdeltabucket.so that was built already, that one is taken.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import native_build

SONAME = 'libdeltabucket.so.0'
# Folders and files of the checkout that the library is built from.
SOURCES = ('base', 'chunker', 'weights', 'wire', 'client', 'library', 'setup', 'configure.ac',
           'Makefile.am', 'LICENSE')
# Folders whose sources setup/sources lists, though the library needs none of them.
EMPTY = ('storage', 'api', 'server', 'bench', 'tests/fuzz',
         *(f'tests/unit/{name}' for name in ('base', 'chunker', 'weights', 'wire', 'storage', 'api',
                                             'server', 'client', 'library')))
MADE = re.compile(r'\.(?:o|a|so|pyc)$|^sources\.am$')


def copy_sources(core, target):
    """The C sources, with their times, so that a second build makes only what has changed."""
    for name in SOURCES:
        source = os.path.join(core, name)
        if os.path.isfile(source):
            copy_file(source, os.path.join(target, name))
        for folder, folders, names in os.walk(source):
            folders[:] = [name for name in folders if name != '__pycache__']
            for file in names:
                if not MADE.search(file):
                    path = os.path.join(folder, file)
                    copy_file(path, os.path.join(target, os.path.relpath(path, core)))


def copy_file(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.exists(target) or os.path.getmtime(source) != os.path.getmtime(target):
        shutil.copy2(source, target)


def packages_of(core, kind):
    """The Debian packages of a kind in setup/packages."""
    with open(os.path.join(core, 'setup', 'packages')) as file:
        return [line.split()[1] for line in file if line.startswith(f'{kind} ')]


def build_library(core, folder):
    """The path of the library, built in `folder`."""
    source = os.path.join(folder, 'source')
    copy_sources(core, source)
    for name in EMPTY:
        os.makedirs(os.path.join(source, name), exist_ok=True)
    target = f'libdeltabucket.so.{native_build.core_version(core)}'
    build = os.path.join(folder, 'build')
    command = [os.path.join(source, 'setup', 'build'), build, target, '--disable-server',
               'CFLAGS=-O2']
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise SystemExit(
            f'deltabucket: libdeltabucket could not be built ({failure}); {build}/build.log says '
            'why. On Debian 12 it is built with these packages:\n\n    apt-get install '
            f'--no-install-recommends {" ".join(packages_of(core, "build"))}\n') from failure
    return os.path.join(build, target)


class BuildExtension(build_ext):
    """The library first, since the extension is linked against it."""

    def run(self):
        core = native_build.core_folder()
        made = os.environ.get('DELTABUCKET_LIBRARY')
        if not made:
            made = build_library(core, os.path.abspath(os.path.join(self.build_temp, 'library')))
        place = os.path.join(HERE if self.inplace else os.path.abspath(self.build_lib),
                             'deltabucket', '_lib')
        os.makedirs(place, exist_ok=True)
        for old in glob.glob(os.path.join(place, '*.so*')):
            os.remove(old)
        library = os.path.join(place, SONAME)
        shutil.copyfile(os.path.realpath(made), library)
        os.chmod(library, 0o755)
        for extension in self.extensions:
            extension.extra_objects.append(library)
            extension.extra_link_args.append('-Wl,-rpath,$ORIGIN/_lib')
        super().run()


class Wheel(bdist_wheel):
    """One wheel for all Python versions from 3.10 on."""

    def finalize_options(self):
        self.py_limited_api = 'cp310'
        super().finalize_options()


class SourceArchive(sdist):
    """With the C sources in core/."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in ('native_build.py', 'setup.py'):
            copy_file(os.path.join(HERE, name), os.path.join(base_dir, name))
        core = native_build.core_folder()
        copy_sources(core, os.path.join(base_dir, 'core'))
        copy_file(os.path.join(core, 'LICENSE'), os.path.join(base_dir, 'LICENSE'))


setup(
    version=native_build.core_version(native_build.core_folder()),
    cffi_modules=['native_build.py:ffibuilder'],
    cmdclass={'build_ext': BuildExtension, 'bdist_wheel': Wheel, 'sdist': SourceArchive},
)
