"""What the tests of real Hugging Face clients share: the installed environments, a process per class that does their calls, what they get to know.

A client gets HF_ENDPOINT, a token and the CA, as a user would set them, and three settings that keep tests short: no look for updates of the
command, short pauses before retries, and homes of its own.
"""
import base64
import json
import os
import subprocess
import threading

from tests.support.clients import INSTALLED, ClientCase, program, read, write
from tests.support.daemon import SOURCE

DRIVER = os.path.join(SOURCE, 'tests', 'clients', 'hub_driver.py')
MISSING = 'huggingface_hub is not installed (setup/clients)'
NEWEST, MIDDLE, OLDEST = 'hub', 'hub-1.29', 'hub-1.5'
CALL_SECONDS = 120


def hub_program(environment, name):
    """A program of one of the three environments, or None."""
    return program(os.path.join(INSTALLED, environment, 'bin', name))


def ready(environment):
    return hub_program(environment, 'hf') is not None


class HubFailure(Exception):
    """What a call of the library raised: `kinds` are its class and their bases by name, `status` that of the answer if there was one."""

    def __init__(self, call, kinds, message, status, failures):
        super().__init__(f'{call}: {kinds[0]}: {message}')
        self.kinds, self.message, self.status, self.failures = kinds, message, status, failures


def wrap(value):
    if isinstance(value, bytes):
        return {'base64': base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: wrap(item) for key, item in value.items()}
    return [wrap(item) for item in value] if isinstance(value, (list, tuple)) else value


def unwrap(value):
    if isinstance(value, dict):
        return base64.b64decode(value['base64']) if set(value) == {'base64'} else {key: unwrap(item) for key, item in value.items()}
    return [unwrap(item) for item in value] if isinstance(value, list) else value


class Calls:
    """Attributes are calls on one object of the driver."""

    def __init__(self, driver, on):
        self.driver, self.on = driver, on

    def __getattr__(self, call):
        return lambda *arguments, **options: self.driver.send(self.on, call, arguments, options)


class HubDriver:
    """A process of hub_driver.py. `api` is its HfApi, `fs` its HfFileSystem, `own` its further functions."""

    def __init__(self, environment, variables, log):
        with open(log, 'ab') as errors:
            self.process = subprocess.Popen([hub_program(environment, 'python'), DRIVER], env=variables, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=errors)
        self.log = log
        self.api, self.fs, self.own = Calls(self, 'api'), Calls(self, 'fs'), Calls(self, 'own')

    def send(self, on, call, arguments, options):
        request = {'on': on, 'call': call, 'arguments': wrap(arguments), 'options': wrap(options)}
        watch = threading.Timer(CALL_SECONDS, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b'\n')
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            raise AssertionError(f'{call} ended the client or took {CALL_SECONDS} s: {read(self.log)[-3000:].decode(errors="replace")}')
        reply = json.loads(line)
        if 'failure' in reply:
            raise HubFailure(call, **reply['failure'])
        return unwrap(reply['value'])

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class HubCase(ClientCase):
    """A server and a driver per class. `hub`, `fs` and `own` are the calls of the driver that has the token of the class's key."""
    agent = r'hf_hub/|huggingface-cli/|hf_xet/'
    ca_variable = 'SSL_CERT_FILE'
    version = NEWEST
    variables = {}  # further ones for the client

    @classmethod
    def prepare(cls):
        key = cls.daemon.add_key('--name', 'hub')
        cls.token = key['token']
        cls.keys = key['key_id'], key['secret']
        cls.driver = cls.new_driver()
        cls.hub, cls.fs, cls.own = cls.driver.api, cls.driver.fs, cls.driver.own

    @classmethod
    def new_driver(cls, version=None, **variables):
        """A further process; with HOME_NAME its caches are others."""
        driver = HubDriver(version or cls.version, cls.environment(**variables), cls.path('driver.log'))
        cls.addClassCleanup(driver.close)
        return driver

    @classmethod
    def fresh_driver(cls, name, version=None, **variables):
        """A process whose caches are empty: it knows of no chunk that another uploaded."""
        return cls.new_driver(version, HF_HOME=cls.path('homes', name), **variables)

    @classmethod
    def environment(cls, **more):
        every = {'PATH': os.environ['PATH'], 'HOME': cls.folder, 'LANG': 'C.UTF-8', 'TMPDIR': cls.folder, 'HF_ENDPOINT': cls.endpoint,
                 'HF_TOKEN': cls.token, 'HF_HOME': cls.path('homes', 'first'), 'HF_HUB_DISABLE_UPDATE_CHECK': '1',
                 'HF_XET_CLIENT_RETRY_BASE_DELAY': '200ms', 'HF_HUB_DISABLE_PROGRESS_BARS': '1'}
        if cls.tls:
            every[cls.ca_variable] = cls.daemon.ca
        every.update(cls.variables)
        every.update(more)
        # Version 1.5 knows of no variable that keeps it from asking for updates, but of this file.
        write(os.path.join(every['HF_HOME'], '.check_for_update_done'), b'')
        return {name: value for name, value in every.items() if value is not None}

    @classmethod
    def new_bucket(cls, name, **options):
        """A bucket of the default namespace; gives its Hub id."""
        cls.hub.create_bucket(f'main/{name}', **options)
        return f'main/{name}'

    def fails(self, kind, status=None, text=None):
        """Context manager: the call inside raises `kind` (a class's name), from an answer of this status, with this text."""
        return _Fails(self, kind, status, text)

    def requests(self, pattern, method=None):
        """This client's requests since the test began whose path contains `pattern`."""
        self.settle()
        return [call for call in self.calls(self.seen) if pattern in call['path'] and method in (None, call['method'])]

    def upload(self, bucket, files, driver=None):
        """{path: bytes} in one call, by way of files of this machine."""
        paths = [(write(self.path('upload', str(index)), data), name) for index, (name, data) in enumerate(files.items())]
        (driver or self.driver).api.batch_bucket_files(bucket, add=paths)

    def download(self, bucket, name, driver=None):
        """The file's bytes."""
        path = self.path('download')
        (driver or self.driver).api.download_bucket_files(bucket, files=[(name, path)], raise_on_missing_files=True)
        data = read(path)
        os.remove(path)
        return data

    def assertFiles(self, bucket, wanted):
        """The bucket holds exactly these: {path: bytes}."""
        found = {file['path']: file['size'] for file in self.hub.list_bucket_tree(bucket, recursive=True)}
        self.assertEqual(found, {name: len(data) for name, data in wanted.items()})
        for name, data in wanted.items():
            self.assertSame(self.download(bucket, name), data)


class _Fails:
    def __init__(self, case, kind, status, text):
        self.case, self.kind, self.status, self.text = case, kind, status, text

    def __enter__(self):
        return self

    def __exit__(self, kind, failure, trace):
        if kind is None:
            self.case.fail(f'{self.kind} was not raised')
        if not isinstance(failure, HubFailure):
            return False
        self.failure = failure
        self.case.assertIn(self.kind, failure.kinds, failure)
        if self.status is not None:
            self.case.assertEqual(failure.status, self.status, failure)
        if self.text is not None:
            self.case.assertIn(self.text, failure.message)
        return True
