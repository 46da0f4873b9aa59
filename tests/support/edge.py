"""An edge: Debian's nginx with contrib/edge in front of a server, started by the user of the tests in
a folder of its own."""
import contextlib
import glob
import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from tests.support.daemon import REPLY_SECONDS, SOURCE, START_SECONDS, Reply, held_port

NGINX = shutil.which('nginx', path=os.environ.get('PATH', '') + ':/usr/sbin:/usr/local/sbin')
KINDS = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')


def certify(folder):
    """A certificate for 127.0.0.1 that is its own CA."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                    '-nodes', '-days', '2', '-subj', '/CN=an edge of the tests', '-addext',
                    'subjectAltName=IP:127.0.0.1', '-keyout', os.path.join(folder, 'edge.key'),
                    '-out', os.path.join(folder, 'edge.pem')], check=True, capture_output=True)


class Edge:
    """Use as a context manager. `changes`: texts of the configuration and what stands there instead;
    each must be there."""

    def __init__(self, origin, changes=()):
        self.origin, self.changes = origin, dict(changes)
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.held_port = held_port()
        self.port = self.held_port.getsockname()[1]
        self.process = None

    def __enter__(self):
        try:
            certify(self.folder)
            self.write()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            self.held_port.close()
            shutil.rmtree(self.folder)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(REPLY_SECONDS)

    @property
    def ca(self):
        return os.path.join(self.folder, 'edge.pem')

    @property
    def endpoint(self):
        return f'https://127.0.0.1:{self.port}'

    def write(self):
        """The files of contrib/edge, with what their reader is told to change."""
        temporary = ''.join(f'\t{kind}_temp_path {self.folder}/t;\n' for kind in KINDS)
        places = {
            'user www-data;\n': 'user root;\n' if os.geteuid() == 0 else '',
            'worker_rlimit_nofile 65536;\n': '',
            'worker_connections 16384;': 'worker_connections 1024;',
            'http {\n': f'http {{\n{temporary}',
            'listen 443 ssl;': f'listen 127.0.0.1:{self.port} ssl;',
            'server origin.example.com:9000;': f'server 127.0.0.1:{self.origin.port};',
            'proxy_ssl_name origin.example.com;': 'proxy_ssl_name localhost;',
            'default https://origin;': f'default {"https" if self.origin.tls else "http"}://origin;',
            '/etc/nginx/origin-ca.pem': self.origin.ca if self.origin.tls else self.ca,
            '/etc/nginx/': f'{self.folder}/',
            ' buffer=64k flush=10s;': ';',
            ' min_free=1g': '',
            '/run/': f'{self.folder}/',
            '/var/log/nginx/': f'{self.folder}/',
            '/var/cache/': f'{self.folder}/',
            **self.changes,
        }
        unused = set(places)
        for path in glob.glob(os.path.join(SOURCE, 'contrib', 'edge', '*.conf')):
            with open(path) as file:
                text = file.read()
            for place, other in places.items():
                if place in text:
                    unused.discard(place)
                    text = text.replace(place, other)
            with open(os.path.join(self.folder, os.path.basename(path)), 'w') as file:
                file.write(text)
        assert not unused, f'contrib/edge does not have {unused}'

    def start(self):
        command = [NGINX, '-e', 'stderr', '-p', self.folder, '-c', f'{self.folder}/nginx.conf', '-g', 'daemon off;']
        with open(os.path.join(self.folder, 'log'), 'wb') as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        limit = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(('127.0.0.1', self.port), timeout=REPLY_SECONDS).close()
                return
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f'nginx does not listen: {self.log()}')
            time.sleep(0.02)

    def log(self, *names):
        """What nginx says of itself, or these files."""
        text = ''
        for name in names or ('log', 'error.log'):
            with contextlib.suppress(FileNotFoundError), open(os.path.join(self.folder, name), errors='replace') as log:
                text += log.read()
        return text

    def connect(self):
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection('127.0.0.1', self.port, context=context, timeout=REPLY_SECONDS)

    def ask(self, target, token=None, headers=None, method='GET', body=None):
        """One request through the edge, on a connection of its own."""
        every = dict(headers or {})
        if token is not None:
            every['Authorization'] = f'Bearer {token}'
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, target, body=body, headers=every)
            response = connection.getresponse()
            return Reply(response, response.read())


def sent_by(origin, route, face='steps'):
    """How many replies the origin gave on a route, and their bytes."""
    page = origin.request('GET', '/-/metrics').body.decode()
    numbers = re.findall(rf'^deltabucket_reply_size_bytes_(count|sum){{face="{face}",route="{route}"}} (\d+)$', page, re.M)
    found = {name: int(number) for name, number in numbers}
    return found.get('count', 0), found.get('sum', 0)
