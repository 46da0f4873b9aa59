"""`make dist`: the tarball has every tracked file, and nothing else but what autoreconf makes."""
import glob
import os
import re
import subprocess
import tarfile
import unittest

from tests.support.clients import read
from tests.support.daemon import BUILD, SOURCE

# What the tarball lacks, and why.
LEFT_OUT = {}
# What autoreconf and setup/sources make, so that the tarball builds without autoconf and git.
GENERATED = re.compile(r'configure|aclocal\.m4|Makefile\.in|setup/sources\.am|build-aux/[\w.-]+')


class Dist(unittest.TestCase):
    def test_every_tracked_file_is_in_the_tarball_and_nothing_else(self):
        if not os.path.exists(os.path.join(SOURCE, '.git')):
            return  # this is the tarball
        listed = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z'], cwd=SOURCE, check=True, capture_output=True, text=True)
        tracked = {path for path in listed.stdout.split('\0') if path and os.path.lexists(os.path.join(SOURCE, path))}
        subprocess.run(['make', '-s', '-C', BUILD, 'dist'], check=True, capture_output=True)
        [name] = [name for name in os.listdir(BUILD) if re.fullmatch(r'deltabucket-[\d.]+\.tar\.gz', name)]
        with tarfile.open(os.path.join(BUILD, name)) as tar:
            packed = {member.name.split('/', 1)[1]: member.mode for member in tar if not member.isdir()}
        self.assertEqual(tracked - set(packed) - set(LEFT_OUT), set())
        self.assertEqual({path for path in set(packed) - tracked if not GENERATED.fullmatch(path)}, set())
        self.assertIn('configure', packed)
        for path in tracked - set(LEFT_OUT):
            is_program = os.access(os.path.join(SOURCE, path), os.X_OK)
            self.assertEqual(bool(packed[path] & 0o100), is_program, path)

    def test_the_packages_name_the_authors_of_what_the_console_brings(self):
        """Their licences ask for it, and the server has their files in it."""
        named = read(os.path.join(SOURCE, 'debian', 'copyright')).decode()
        for path in glob.glob(os.path.join(SOURCE, 'console', 'vendor', '*LICENSE*')):
            [[years, author]] = re.findall(r'^ *Copyright (?:\(c\) )?(\d[\w-]*) ([A-Z].*?)\s*$', read(path).decode(), re.M)
            self.assertIn(f'{years} {author}', named, path)


if __name__ == '__main__':
    unittest.main()
