"""What the tests of real S3 clients share: where the clients are, the settings they get, and the proof that they called this server.

A client gets the endpoint, the keys, the region and the CA, and nothing else; a test that gives it more says why in its docstring.
"""
import collections
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from tests.support.daemon import SOURCE, Daemon

INSTALLED = os.path.abspath(os.environ.get('DELTABUCKET_CLIENTS', os.path.join(SOURCE, 'build', 'clients')))
CRT = os.path.join(INSTALLED, 'crt')
FILES_PYTHON = os.path.join(INSTALLED, 'files', 'bin', 'python')
NODE_MODULES = os.path.join(INSTALLED, 'node_modules')
REGION = 'us-east-1'
# Every name below .localhost is this machine (libnss-myhostname; curl knows it itself). Two labels: OpenSSL refuses a wildcard on one.
DOMAIN = 's3.localhost'
PART = 8 << 20
LOG_SECONDS = 30


def program(*candidates):
    """The first of these paths and names that exists, or None."""
    return next((found for found in map(shutil.which, candidates) if found), None)


def installed(name):
    """A program of setup/clients, or None."""
    return program(os.path.join(INSTALLED, 'python', 'bin', name))


def importable(*modules, environment='python'):
    """Makes the Python packages of an environment of setup/clients importable in this process; says whether these modules then are."""
    import importlib.util
    folder = os.path.join(INSTALLED, environment, 'lib', f'python{sys.version_info.major}.{sys.version_info.minor}', 'site-packages')
    if os.path.isdir(folder) and folder not in sys.path:
        sys.path.insert(0, folder)
    return all(importlib.util.find_spec(module) for module in modules)


def content(size, seed=0):
    """Bytes that do not compress and are the same in every run."""
    return random.Random(seed * 1_000_003 + size).randbytes(size)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data)
    return path


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def md5(data):
    return hashlib.md5(data).hexdigest()


def multipart_etag(data, part=PART):
    """The ETag, without quotes, of an upload in parts of this many bytes."""
    digests = [hashlib.md5(data[at:at + part]).digest() for at in range(0, len(data), part)]
    return f'{hashlib.md5(b"".join(digests)).hexdigest()}-{len(digests)}'


def tree(folder):
    """Relative path -> SHA-256 of every file below."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            found[os.path.relpath(path, folder)] = hashlib.sha256(read(path)).hexdigest()
    return found


def both_schemes(case):
    """Class decorator: the class tests HTTPS, a second one named ...Http tests plain HTTP."""
    plain = type(case.__name__ + 'Http', (case,), {'tls': False, '__module__': case.__module__, '__doc__': case.__doc__})
    setattr(sys.modules[case.__module__], plain.__name__, plain)
    return case


def listen_on_ipv6(port):
    """Names below localhost may mean ::1 first, and not every client tries 127.0.0.1 after it. No arguments where there is no IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(('::1', port))
    except OSError:
        return []
    return ['--listen', f'[::1]:{port}']


class ClientCase(unittest.TestCase):
    """One server per class. After every test the server's log must hold requests of this client; at the end of the class they are summed up."""
    tls = True
    agent = None       # a regular expression that the client's User-Agent matches; None: it sends none, and its key tells its requests
    arguments = ()     # further ones for deltabucketd
    ca_variable = 'AWS_CA_BUNDLE'  # how environment() names the CA's file
    keys = None        # id and secret of a key of the default account, made for the class

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=cls.tls, arguments=['--log-json', '--domain', DOMAIN, *cls.arguments])
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.daemon.arguments += listen_on_ipv6(cls.daemon.port)
        cls.daemon.start()
        key = cls.daemon.add_key('--name', 'client')
        cls.keys = key['key_id'], key['secret']
        cls.folder = os.path.join(cls.daemon.scratch, 'work')
        os.makedirs(cls.folder)
        cls.endpoint = cls.daemon.endpoint
        cls.named_endpoint = cls.endpoint.replace('127.0.0.1', DOMAIN)
        cls.prepare()

    @classmethod
    def prepare(cls):
        """What a class needs once, with cls.daemon running."""

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        calls = cls.calls()
        routes = ', '.join(f'{route} {count}' for route, count in sorted(collections.Counter(call['route'] for call in calls).items()))
        agents = sorted({call['agent'].split(' ')[0] for call in calls})
        print(f'\n{cls.__module__}.{cls.__name__}: {len(calls)} requests by {", ".join(agents)}: {routes}', file=sys.stderr)

    def setUp(self):
        # Lines of requests before this test must not count as its own.
        self.settle()
        self.seen = os.path.getsize(self.daemon.log_path)

    def settle(self):
        """Returns once the log holds every request that was answered by now: their lines stand in front of that of a request made now."""
        marker = self.daemon.request('GET', '/-/health', token=None).headers['x-amz-request-id'].encode()
        limit = time.monotonic() + LOG_SECONDS
        while marker not in read(self.daemon.log_path) and time.monotonic() < limit:
            self.daemon.process.send_signal(signal.SIGUSR1)
            time.sleep(0.005)

    def tearDown(self):
        self.assertTrue(self.called(), f'no request of {self.agent or "its key"} reached the server during this test')

    @classmethod
    def calls(cls, since=0):
        """The requests in the server's log from byte `since` on that this client made: dicts with method, path, route, status, agent."""
        with open(cls.daemon.log_path, 'rb') as log:
            log.seek(since)
            lines = [line for line in log.read().split(b'\n') if b'"request"' in line and line.startswith(b'{') and line.endswith(b'}')]
        requests = [json.loads(line) for line in lines]
        return [call for call in requests if call.get('event') == 'request' and
                (re.search(cls.agent, call['agent']) if cls.agent else call['key'] == cls.keys[0])]

    def called(self, route=None, status=None, least=1):
        """How many requests of this client the log holds since the test began, with this route and status when given; waits some seconds for as many
        as `least`: a request's line is written after its reply."""
        limit = time.monotonic() + LOG_SECONDS
        while True:
            self.daemon.process.send_signal(signal.SIGUSR1)
            count = sum(1 for call in self.calls(self.seen)
                        if (route is None or call['route'] == route) and (status is None or call['status'] == status))
            if count >= least or time.monotonic() > limit:
                return count
            time.sleep(0.02)

    def assertCalled(self, *routes):
        for route in routes:
            self.assertTrue(self.called(route), f'no {route} among {sorted({call["route"] for call in self.calls(self.seen)})}')

    @classmethod
    def environment(cls, **more):
        """For a client's process: a home of its own, the keys, the region and the CA."""
        every = {'PATH': os.environ['PATH'], 'HOME': cls.folder, 'LANG': 'C.UTF-8', 'TMPDIR': cls.folder, 'AWS_ACCESS_KEY_ID': cls.keys[0],
                 'AWS_SECRET_ACCESS_KEY': cls.keys[1], 'AWS_DEFAULT_REGION': REGION, 'AWS_REGION': REGION}
        if cls.tls:
            every[cls.ca_variable] = cls.daemon.ca
        every.update(more)
        return every

    @classmethod
    def run_program(cls, *command, check=True, timeout=120, cwd=None, data=None, **environment):
        """Runs it with environment(); gives the CompletedProcess with text output."""
        done = cls.run_bytes([str(word) for word in command], cls.environment(**environment), cwd or cls.folder, data, timeout)
        done.stdout, done.stderr = done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')
        if check and done.returncode != 0:
            raise AssertionError(f'{command} ended with {done.returncode}: {done.stderr[-3000:]}{done.stdout[-3000:]}')
        return done

    @classmethod
    def run_bytes(cls, command, environment, folder, data, timeout):
        return subprocess.run(command, env=environment, capture_output=True, timeout=timeout, cwd=folder, input=data)

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @classmethod
    def file(cls, name, size, seed=0):
        """A file of `size` bytes in the class's folder; its path and its bytes."""
        data = content(size, seed)
        return write(cls.path(name), data), data

    def assertSame(self, got, wanted):
        """Bytes are equal, told by length and SHA-256."""
        self.assertEqual((len(got), hashlib.sha256(got).hexdigest()), (len(wanted), hashlib.sha256(wanted).hexdigest()))
