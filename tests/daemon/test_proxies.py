"""Behind nginx and HAProxy, set up as docs/OPERATIONS.md says. What clients send arrives as it was
meant, and what two readers could take differently gives nobody the answer of another, although the
proxy shares its connections to the server among clients."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from tests.daemon.test_wire import CHUNKED, CHUNKS, LENGTHS, LINES, REFUSED, TAKEN, end, get
from tests.support.daemon import REPLY_SECONDS, SOURCE, START_SECONDS, ROOT_TOKEN, Daemon, held_port
from tests.support.signer import UNSIGNED, Signer

THREADS_MEET = False

PATH = os.environ.get('PATH', '') + ':/usr/sbin:/usr/local/sbin'


def documented(mark, upstream):
    """The lines of the example behind `mark`, for the server of the test."""
    with open(os.path.join(SOURCE, 'docs', 'OPERATIONS.md')) as text:
        after = text.read().split(mark)[1]
    lines = re.search(r'(?:^ {4}.*\n|^\n)+', after, re.M)[0]
    assert '127.0.0.1:9000' in lines
    return lines.replace('127.0.0.1:9000', f'127.0.0.1:{upstream}')


class Proxy:
    """A proxy's process, in a folder of its own. `configuration` writes its file and gives the
    command."""

    def __init__(self, configuration, upstream):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.held_port = held_port()
        self.port = self.held_port.getsockname()[1]
        with open(os.path.join(self.folder, 'log'), 'wb') as log:
            self.process = subprocess.Popen(configuration(self, upstream), stdout=log, stderr=log,
                                            env=dict(os.environ, PATH=PATH))
        limit = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                self.connect().close()
                return
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f'{self.process.args} does not listen: {self.log()}')
            time.sleep(0.02)

    def close(self):
        self.process.terminate()
        self.process.wait(REPLY_SECONDS)
        self.held_port.close()
        shutil.rmtree(self.folder)

    def write(self, text):
        path = os.path.join(self.folder, 'conf')
        with open(path, 'w') as file:
            file.write(text)
        return path

    def log(self):
        with open(os.path.join(self.folder, 'log'), errors='replace') as log:
            return log.read()

    def connect(self):
        return socket.create_connection(('127.0.0.1', self.port), timeout=REPLY_SECONDS)


def nginx(proxy, upstream, more='', change=lambda lines: lines):
    lines = change(documented('With nginx, in the `server` block:', upstream))
    kinds = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
    temporary = ' '.join(f'{kind}_temp_path {proxy.folder}/t;' for kind in kinds)
    path = proxy.write(f'daemon off; master_process off; pid {proxy.folder}/pid;\nerror_log stderr; '
                       'events { worker_connections 512; }\n'
                       f'http {{ access_log off; {temporary} {more}\n'
                       f'server {{ listen 127.0.0.1:{proxy.port}; {lines} }} }}\n')
    return ['nginx', '-e', 'stderr', '-p', proxy.folder, '-c', path]


def nginx_keeping(proxy, upstream):
    """The same with connections to the server that are kept and shared."""
    kept = 'http://kept; proxy_set_header Connection "";'
    return nginx(proxy, upstream, f'upstream kept {{ server 127.0.0.1:{upstream}; keepalive 2; }}',
                 lambda lines: lines.replace(f'http://127.0.0.1:{upstream};', kept))


def haproxy(proxy, upstream, reuse='safe'):
    lines = documented('With HAProxy:', upstream).replace('http-reuse safe', f'http-reuse {reuse}')
    lines = re.sub('bind :443 .*', f'bind 127.0.0.1:{proxy.port}', lines)
    return ['haproxy', '-db', '-f', proxy.write(lines)]


def haproxy_sharing(proxy, upstream):
    """The same with connections to the server that are shared from the first request on."""
    return haproxy(proxy, upstream, 'always')


class Nginx(unittest.TestCase):
    configuration = staticmethod(nginx)

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False, arguments=('--trusted-proxies', '127.0.0.1'))
        cls.daemon.start()
        assert cls.daemon.request('PUT', '/wire').status == 200
        for who in ('mine', 'theirs'):
            assert cls.daemon.request('PUT', f'/wire/{who}', f'this is {who}').status == 200
        cls.proxy = Proxy(cls.configuration, cls.daemon.port)

    @classmethod
    def tearDownClass(cls):
        cls.proxy.close()
        cls.daemon.__exit__()

    def ask(self, method, target, body=None, headers=None, token=ROOT_TOKEN):
        """Through the proxy, with what Daemon.request gives."""
        with contextlib.closing(self.daemon.connect()) as connection:
            connection.port = self.proxy.port
            return self.daemon.request(method, target, body, headers, token, connection)

    def is_own(self, who):
        reply = self.ask('GET', f'/wire/{who}')
        self.assertEqual((reply.status, reply.body), (200, f'this is {who}'.encode()))

    def test_the_log_has_the_client_that_the_proxy_names(self):
        for headers, source in (({}, '127.0.0.7'), ({'X-Forwarded-For': '203.0.113.5'}, '127.0.0.8')):
            with contextlib.closing(self.daemon.connect()) as connection:
                connection.port, connection.source_address = self.proxy.port, (source, 0)
                reply = self.daemon.request('GET', '/wire/mine', headers=headers, connection=connection)
            self.assertEqual(reply.status, 200)
            self.daemon.await_log(reply.headers['x-amz-request-id'])
            logged = dict(re.findall(r' ([0-9a-f]{32}) request .* client=(\S+)', self.daemon.log()))
            self.assertEqual(logged[reply.headers['x-amz-request-id']], source)

    def say(self, sent):
        """A request by the book, whose connection to the server may be shared from then on, then
        the oddity, to its end."""
        answer, piece = b'', b'-'
        with self.proxy.connect() as peer, contextlib.suppress(ConnectionError):
            peer.sendall(get(line='GET /wire/mine HTTP/1.1').encode())
            while piece and b'this is mine' not in answer:
                answer += (piece := peer.recv(65536))
            peer.sendall(sent.encode('latin-1'))
            end(peer)
            while peer.recv(65536):
                pass

    def test_what_is_by_the_book_arrives(self):
        signer = Signer(f'127.0.0.1:{self.proxy.port}')
        large = os.urandom(3_000_000)
        for key in ('k', 'a%20b/%2F%25', 'x+y=z', '~%C3%A4', 'a//b', "!*'()"):
            target = f'/wire/{key}'
            headers = signer.headers('PUT', target, payload=UNSIGNED)
            put = self.ask('PUT', target, large, headers, token=None)
            self.assertEqual(put.status, 200, put.body)
            got = self.ask('GET', target, None, signer.headers('GET', target), token=None)
            self.assertEqual((got.status, got.body == large), (200, True), key)
        part = self.ask('GET', '/wire/k', headers={'Range': 'bytes=5-9'})
        self.assertEqual(part.body, large[5:10])
        self.assertEqual(self.ask('GET', '/wire/none').status, 404)

    def test_chunks_arrive(self):
        for _ in range(3):
            put = self.ask('PUT', '/wire/chunks', iter([b'abc' * 100_000, b'def']))
            self.assertEqual(put.status, 200, put.body)
            self.assertEqual(self.ask('GET', '/wire/chunks').body, b'abc' * 100_000 + b'def')

    def test_nobody_gets_the_answer_of_another(self):
        for name, sent, *_ in LINES + LENGTHS + CHUNKS + REFUSED + TAKEN + CHUNKED:
            with self.subTest(name):
                self.say(sent)
                for who in ('mine', 'theirs'):
                    self.is_own(who)


class NginxKeeping(Nginx):
    configuration = staticmethod(nginx_keeping)


class HAProxy(Nginx):
    configuration = staticmethod(haproxy)


class HAProxySharing(Nginx):
    configuration = staticmethod(haproxy_sharing)


if __name__ == '__main__':
    unittest.main()
