"""What deltabucketd.service takes away, a server at work does not miss: no system call beyond
SystemCallFilter, no socket beyond RestrictAddressFamilies, no memory both written and run."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

from tests.support.checkpoints import expand_small
from tests.support.clients import read
from tests.support.daemon import CLIENT, ROOT_TOKEN, SERVER, SOURCE, Daemon


def members(name):
    """The calls of a group such as @system-service."""
    listed = subprocess.run(['systemd-analyze', 'syscall-filter', name], check=True, capture_output=True, text=True).stdout
    found = set()
    for word in re.findall(r'^    (@?[\w-]+)$', listed, re.M):
        found |= members(word) if word.startswith('@') else {word}
    return found


def settings(name):
    return re.findall(rf'^{name}=(.*)$', read(os.path.join(SOURCE, 'contrib', 'systemd', 'deltabucketd.service.in')).decode(), re.M)


def allowed():
    calls = set()
    for line in settings('SystemCallFilter'):
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
            text = read(trace).decode(errors='replace')
        made = set(re.findall(r'^\d+ +(\w+)\(', text, re.M))
        self.assertLess(40, len(made), made)
        # strace sees the execve that starts the server too; SQLite gives files to the folder's owner
        # as root alone, which the service is not.
        self.assertEqual(made - allowed() - {'execve', 'fchown'}, set())
        families = set(re.findall(r'\bsocket\((AF_\w+)', text))
        self.assertIn('AF_NETLINK', families)
        self.assertEqual(families - set(settings('RestrictAddressFamilies')[0].split()), set())
        self.assertEqual(re.findall(r'.*\bmmap\(.*PROT_WRITE\|PROT_EXEC.*|.*\bmprotect\(.*PROT_EXEC.*', text), [])
        self.assertIn('PROT_EXEC', text)

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
