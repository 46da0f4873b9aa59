"""A real deltabucketd in a scratch folder, and small HTTP requests to it.

The programs come from $DELTABUCKET_BUILD (default: the current folder). Everything listens on 127.0.0.1 only.
"""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

BUILD = os.path.abspath(os.environ.get('DELTABUCKET_BUILD', '.'))
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
DATA = os.path.join(SOURCE, 'tests', 'data')
SERVER = os.path.join(BUILD, 'deltabucketd')
CLIENT = os.path.join(BUILD, 'deltabucket')

ROOT_ID = 'ROOTKEYFORTESTS00000'
ROOT_SECRET = 'root-secret-for-tests-0123456789abcdef'
ROOT_TOKEN = 'root-token-for-tests-0123456789abcdef'
SANITIZER = re.compile(r'(ERROR|WARNING): \w+Sanitizer|runtime error: ')
FSCK = os.environ.get('DELTABUCKET_TEST_FSCK')  # then each store that a test leaves is checked
START_SECONDS = 60
# No deadline proves that something is fast: these only end what hangs, also on a busy machine and under a sanitizer.
REPLY_SECONDS = 120
STOP_SECONDS = 60


def environment_of_programs():
    """That of this process, without the runtime of a sanitizer that tests/run-package has preloaded: it is for programs that load the library."""
    return {name: value for name, value in os.environ.items() if name != 'LD_PRELOAD'}


def held_port():
    """A socket bound to a free port of its own. While it is open the system gives the port to nobody who asks for any, neither to listen on nor to
    connect from; a server may bind it all the same (SO_REUSEADDR is set only now), and again after it was killed."""
    held = socket.socket()
    held.bind(('127.0.0.1', 0))
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return held


def free_port():
    with held_port() as held:
        return held.getsockname()[1]


def bytes_alone(test):
    """Marks a test, or a class of them, that is about bytes and messages: it is not run under the thread sanitizer (tests/run.py --threads)."""
    test.threads_meet = False
    return test


def other_letter(text, place):
    """`text` with another letter there, whatever it has: a fixed one would be the same now and then."""
    place %= len(text)
    return text[:place] + ('A' if text[place] != 'A' else 'B') + text[place + 1:]


class Reply:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def code(self):
        """The error code, whichever face answered."""
        if self.body.startswith(b'{'):
            return self.json()['error']['code']
        return self.body.split(b'<Code>')[1].split(b'</Code>')[0].decode() if b'<Code>' in self.body else None


class Daemon:
    """Use as a context manager. `arguments` go to deltabucketd as they are; `tls=False` serves plain HTTP."""

    def __init__(self, tls=True, arguments=(), environment=None, folder=None):
        self.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.folder = folder or os.path.join(self.scratch, 'data')
        self.tls = tls
        self.arguments = list(arguments)
        self.held_port = held_port()
        self.port = self.held_port.getsockname()[1]
        # The variables of the test run are not settings of the server, which would warn about them.
        others = {name: value for name, value in environment_of_programs().items() if not name.startswith('DELTABUCKET_')}
        self.environment = dict(others, DELTABUCKET_ROOT_KEY_ID=ROOT_ID, DELTABUCKET_ROOT_SECRET=ROOT_SECRET,
                                DELTABUCKET_ROOT_TOKEN=ROOT_TOKEN, **(environment or {}))
        self.process = None
        self.may_have_ended = False
        self.is_damaged = False  # set by tests that damage the store
        self.log_path = os.path.join(self.scratch, 'log')

    @property
    def endpoint(self):
        return f'{"https" if self.tls else "http"}://127.0.0.1:{self.port}'

    @property
    def ca(self):
        return os.path.join(self.folder, 'tls', 'ca.pem')

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        """A bad end, an end that nothing asked for, and what a sanitizer has told at any time, fail
        whatever was tested."""
        try:
            self.stop()
            log = self.log() if os.path.exists(self.log_path) else ''
            if SANITIZER.search(log):
                raise AssertionError(f'a sanitizer has found something: {log[-20000:]}')
            if FSCK and not self.is_damaged and not failure:
                self.check_store()
        finally:
            self.held_port.close()
            shutil.rmtree(self.scratch, ignore_errors=True)

    def check_store(self):
        """What a test leaves is a sound store."""
        if os.path.exists(os.path.join(self.folder, 'catalog.db')):
            done = self.admin('fsck', check=False)
            if done.returncode != 0:
                raise AssertionError(f'deltabucketd fsck: {done.stdout[-4000:]}{done.stderr}')

    def start(self, command=None):
        """`command`: another than that of the attributes, which must come to the same."""
        self.check_end()
        self.may_have_ended = False
        if command is None:
            command = [SERVER, '--data', self.folder, '--listen', f'127.0.0.1:{self.port}'] + self.arguments
            command += [] if self.tls else ['--http']
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)
        limit = time.monotonic() + START_SECONDS
        while time.monotonic() < limit:
            if self.process.poll() is not None:
                self.may_have_ended = True  # told here
                raise RuntimeError(f'deltabucketd ended with {self.process.returncode}: {self.log()}')
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.request('GET', '/-/ready', token=None).status == 200:
                    return
            time.sleep(0.02)
        raise RuntimeError(f'deltabucketd did not become ready: {self.log()}')

    def kill(self):
        self.await_end(signal.SIGKILL)

    def stop(self):
        """SIGTERM; gives the exit status, which is 0, or that of a server that was ended before."""
        if self.process is None:
            return None
        self.check_end()
        if self.process.poll() is None:
            try:
                self.await_end(signal.SIGTERM, STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            self.refuse_end(self.process.returncode != 0)
        return self.process.returncode

    def await_end(self, number=None, seconds=None):
        """Waits until the server has ended: by that signal, or by what the test has arranged."""
        self.may_have_ended = True
        if number:
            self.process.send_signal(number)
        self.process.wait(seconds)

    def check_end(self):
        """Fails when the server has ended and neither a signal of the test nor a refused start
        says why."""
        ended = self.process is not None and self.process.poll() is not None
        self.refuse_end(ended and not self.may_have_ended)

    def refuse_end(self, wrong):
        if wrong:
            self.may_have_ended = True  # told once
            raise AssertionError(f'deltabucketd ended with {self.process.returncode}: '
                                 f'{self.log()[-20000:]}')

    def log(self):
        with open(self.log_path, errors='replace') as log:
            return log.read()

    def await_log(self, text):
        limit = time.monotonic() + REPLY_SECONDS
        while text not in self.log():
            if time.monotonic() > limit:
                raise AssertionError(f'{text!r} is not logged: {self.log()}')
            time.sleep(0.05)

    def rss_bytes(self):
        with open(f'/proc/{self.process.pid}/status') as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith('VmRSS'))

    def connect(self, timeout=REPLY_SECONDS):
        if self.tls:
            context = ssl.create_default_context(cafile=self.ca)
            return http.client.HTTPSConnection('127.0.0.1', self.port, context=context, timeout=timeout)
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)

    def request(self, method, target, body=None, headers=None, token=ROOT_TOKEN, connection=None, timeout=REPLY_SECONDS):
        own = connection or self.connect(timeout)
        every = dict(headers or {})
        if token is not None:
            every['Authorization'] = f'Bearer {token}'
        try:
            own.request(method, target, body=body, headers=every)
            response = own.getresponse()
            return Reply(response, response.read())
        finally:
            if connection is None:
                own.close()

    def client(self, *arguments, token=ROOT_TOKEN, check=True, **options):
        """Runs `deltabucket ARGUMENTS` against this server; gives the CompletedProcess with text output."""
        environment = dict(environment_of_programs(), DELTABUCKET_ENDPOINT=self.endpoint, DELTABUCKET_TOKEN=token or '',
                           XDG_STATE_HOME=os.path.join(self.scratch, 'state'),
                           XDG_CACHE_HOME=os.path.join(self.scratch, 'cache'), HOME=self.scratch)
        if self.tls:
            environment['DELTABUCKET_CA'] = self.ca
        environment.update(options.pop('environment', {}))
        done = subprocess.run([CLIENT, *map(str, arguments)], env=environment, capture_output=True, text=True,
                              timeout=options.pop('timeout', 120), **options)
        if check and done.returncode != 0:
            raise AssertionError(f'deltabucket {arguments} ended with {done.returncode}: {done.stderr}{done.stdout}')
        return done

    def admin(self, *arguments, check=True):
        """Runs `deltabucketd ARGUMENTS --data DIR`."""
        done = self.command(*arguments, '--data', self.folder)
        if check and done.returncode != 0:
            raise AssertionError(f'deltabucketd {arguments} ended with {done.returncode}: {done.stderr}')
        return done

    def command(self, *arguments):
        """Runs `deltabucketd ARGUMENTS`."""
        return subprocess.run([SERVER, *arguments], env=self.environment, capture_output=True, text=True, timeout=REPLY_SECONDS)

    def await_views(self, bucket):
        """Until the bucket lists every view of its runs: the server makes them behind the call that wants them."""
        end = time.monotonic() + REPLY_SECONDS
        while (pending := self.request('GET', f'/{bucket}?list-type=2').headers['x-deltabucket-pending']) is not None:
            if time.monotonic() > end:
                raise AssertionError(f'{pending} is pending after {REPLY_SECONDS} s:\n{self.log()[-3000:]}')
            time.sleep(0.02)

    def edit_catalog(self, *scripts):
        """Runs SQL on the catalog, with the server stopped meanwhile."""
        self.stop()
        subprocess.run([os.path.join(BUILD, 'catalog_edit'), os.path.join(self.folder, 'catalog.db'), *scripts], check=True, timeout=REPLY_SECONDS)
        self.start()

    def add_key(self, *arguments):
        return json.loads(self.admin('keys', 'add', '--json', *arguments).stdout)
