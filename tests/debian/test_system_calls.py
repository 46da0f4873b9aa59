"""The service's SystemCallFilter lets through every system call that a server at work makes."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

from tests.support.checkpoints import expand_small
from tests.support.daemon import CLIENT, ROOT_TOKEN, SERVER, SOURCE, Daemon


def members(name):
    """The calls of a group such as @system-service."""
    listed = subprocess.run(['systemd-analyze', 'syscall-filter', name], check=True, capture_output=True, text=True).stdout
    found = set()
    for word in re.findall(r'^    (@?[\w-]+)$', listed, re.M):
        found |= members(word) if word.startswith('@') else {word}
    return found


def allowed():
    with open(os.path.join(SOURCE, 'contrib', 'systemd', 'deltabucketd.service.in')) as file:
        lines = re.findall(r'^SystemCallFilter=(.*)$', file.read(), re.M)
    calls = set()
    for line in lines:
        for word in line.lstrip('~').split():
            calls = calls - members(word) if line.startswith('~') else calls | members(word)
    return calls


class SystemCalls(unittest.TestCase):
    def test_all_are_allowed(self):
        with tempfile.TemporaryDirectory(prefix='deltabucket-test-') as scratch, Daemon() as daemon:
            daemon.stop()
            trace = os.path.join(scratch, 'trace')
            daemon.start(['strace', '--follow-forks', '--quiet=all', '--interruptible=never', f'--output={trace}', '--trace=!futex', SERVER, '--data', daemon.folder,
                          '--listen', f'127.0.0.1:{daemon.port}', '--listen', f'unix:{scratch}/socket'])
            self.work(daemon, scratch)
            [server] = subprocess.run(['pgrep', '-P', str(daemon.process.pid)], capture_output=True, text=True).stdout.split()
            os.kill(int(server), signal.SIGHUP)
            os.kill(int(server), signal.SIGTERM)
            daemon.await_end()
            with open(trace) as file:
                made = set(re.findall(r'^\d+ +(\w+)\(', file.read(), re.M))
        self.assertLess(40, len(made), made)
        # strace sees the execve that starts the server too; SQLite gives files to the folder's owner
        # as root alone, which the service is not.
        self.assertEqual(made - allowed() - {'execve', 'fchown'}, set())

    def work(self, daemon, scratch):
        known = {**os.environ, 'DELTABUCKET_ENDPOINT': daemon.endpoint, 'DELTABUCKET_CA': daemon.ca, 'DELTABUCKET_TOKEN': ROOT_TOKEN, 'HOME': scratch}
        paths = expand_small(scratch, 3)
        for path in paths:
            subprocess.run([CLIENT, 'publish', '--run', 'weights/policy', '--create-bucket', path], check=True, capture_output=True, env=known)
        for words in (['follow', '--run', 'weights/policy', '--into', f'{scratch}/into', '--once'], ['put', paths[0], 'weights/whole'], ['rm', 'weights/whole'],
                      ['status'], ['keys', 'add', '--name', 'x']):
            subprocess.run([CLIENT, *words], check=True, capture_output=True, env=known)
        for words in (['gc'], ['scrub']):
            daemon.admin(*words)


if __name__ == '__main__':
    unittest.main()
