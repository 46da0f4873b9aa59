"""The code of libdeltabucket.so in a program in C (tests/support/library_walk.c), as a sanitizer sees
it. tests/library is about the shared library, which only builds without a sanitizer have."""
import os
import shlex
import subprocess
import tempfile
import unittest

from tests.support.checkpoints import expand_small
from tests.support.daemon import BUILD, Daemon, ROOT_TOKEN, SANITIZER


# What the program runs under: valgrind, for tests/run-valgrind.
UNDER = shlex.split(os.environ.get('DELTABUCKET_TEST_UNDER', ''))


def environment_of(daemon):
    return dict(os.environ, DELTABUCKET_ENDPOINT=daemon.endpoint, DELTABUCKET_TOKEN=ROOT_TOKEN, DELTABUCKET_CA=daemon.ca if daemon.tls else '',
                HOME=daemon.scratch, XDG_CACHE_HOME=os.path.join(daemon.scratch, 'cache'))


def walk(program, daemon, **more):
    """Fails unless the walk comes to its end and no sanitizer tells anything."""
    with tempfile.TemporaryDirectory() as folder:
        base, following = expand_small(folder, 1)
        to = os.path.join(folder, 'to')
        os.mkdir(to)
        done = subprocess.run([*UNDER, program, to, base, following], env=dict(environment_of(daemon), **more), capture_output=True, text=True, timeout=900)
        if done.returncode != 0 or done.stdout != 'walked\n' or SANITIZER.search(done.stderr):
            raise AssertionError(f'the walk ended with {done.returncode}: {done.stdout}{done.stderr}')
        with open(os.path.join(to, 'whole'), 'rb') as made, open(following, 'rb') as wanted:
            if made.read() != wanted.read():
                raise AssertionError('the delta gives other weights')


class Walk(unittest.TestCase):
    def walk(self):
        with Daemon(tls=not UNDER) as daemon:  # valgrind would take long over TLS
            walk(os.path.join(BUILD, 'library_walk'), daemon)

    def test_threads_of_one_program_share_a_client(self):
        self.walk()

    def test_nothing_leaks_and_nothing_is_read_wrongly(self):
        self.walk()
    test_nothing_leaks_and_nothing_is_read_wrongly.threads_meet = False
