#!/usr/bin/env python3
"""usage: tests/fuzz/raw_requests.py SECONDS [SEED]
       tests/fuzz/raw_requests.py --replay FILE

Sends requests that were put together from the route table and the headers that the server reads,
and then damaged, to a real server: over TCP, TLS and a Unix socket, in pieces, several on a
connection, cut off and reset. $DELTABUCKET_BUILD (default: the current folder) is best a build with
sanitizers.

After every few of them requests by the book must be answered right on each way in, and in the end
the server must give back its connections and stop by itself. Whatever fails is told with the seed,
and the last requests of each sender are saved, for --replay. Without a SEED it is the time's.
Ends with `N passed, N failed, N skipped`."""
import base64
import contextlib
import json
import os
import random
import re
import shutil
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
import traceback

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
sys.path.insert(0, SOURCE)
from tests.support.daemon import BUILD, REPLY_SECONDS, ROOT_TOKEN, SANITIZER, Daemon

SENDERS, ROUNDS, KEPT = 6, 40, 200
PATIENCE = 0.05  # seconds in which nothing more came: the sender goes on, whatever the server does
MEMORY_BYTES = 1 << 30  # more than the sanitizer holds back of what was freed
WORDS = ['wire', 'k', 'a', 'run', '0', '1', '-1', '18446744073709551616', '%00', '%2F', '%zz', '..',
         '*', '~', '\xe4', '%C3%A4', 'x' * 300, '', 'hf_x', 'main', 'ns', '0' * 64, 'f' * 64]
VALUES = ['', ' ', '0', '1', '5', '-1', '99999999999999999999', 'bytes=0-', 'bytes=5-2', 'chunked',
          'Chunked', 'identity', '100-continue', 'close', 'keep-alive', 'Upgrade', '*', '"x"',
          'W/"x"', 'text/plain', 'application/json', 'multipart/form-data; boundary=x', '/wire/k',
          'Thu, 01 Jan 1970 00:00:00 GMT', '20130524T000000Z', 'UNSIGNED-PAYLOAD', 'x' * 1000,
          'AWS4-HMAC-SHA256 Credential=a/b/c/d/e', 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD', '\xff',
          'a=b; c="d"', 'gzip', f'Bearer {ROOT_TOKEN}', 'Bearer x', 'a,b', '{}', 'enabled',
          '1B2M2Y8AsgTpgAmY7PhCfg==']
NAMES = ['host', 'connection', 'content-length', 'transfer-encoding', 'expect', 'cookie', 'te',
         'upgrade', 'trailer', 'x-amz-meta-x', 'x']
BODIES = [b'', b'hello', b'{}', b'{"a":1}', b'[]', b'<x/>',
          b'<Delete><Object><Key>k</Key></Object></Delete>', b'--x\r\n\r\n--x--', b'\0' * 5000,
          b'5\r\nhello\r\n0\r\n\r\n', bytes(range(256))]
BROKEN = [b'\r', b'\n', b'\r\n', b'\0', b' ', b'\t', b':', b'\r\n ', b'\n\n', b'\r\n\r\n', b';',
          b',', b'HTTP/1.1', b'%', b'?', b'&', b'=', b'&a' * 600, b'a;' * 600, b'a:\r\n' * 300,
          b'\xff', b'\x7f', b'0', b'GET / HTTP/1.1\r\n\r\n', b'Content-Length: 5\r\n', b'x' * 40000]


def routes():
    """(methods, path with places in braces) of each route."""
    with open(os.path.join(SOURCE, 'tests', 'data', 'routes.txt')) as lines:
        found = [re.match(r'(\S+) (\S+) ->', line) for line in lines]
    return [(match[1].split(','), match[2]) for match in found if match]


def header_names():
    """Those that the code asks for by name."""
    found = set(NAMES)
    for folder, _, files in os.walk(os.path.join(SOURCE, 'api')):
        for name in files:
            with open(os.path.join(folder, name), errors='replace') as text:
                found.update(re.findall(r'exchange_header\([^"()]*"([a-z0-9-]+)"', text.read()))
    return sorted(found)


class Grammar:
    """What one sender sends in one round: all of it comes from `choose`."""
    ROUTES, NAMES = routes(), header_names()

    def __init__(self, choose):
        self.choose = choose

    def often(self, share):
        return self.choose.random() < share

    def target(self, path):
        words = ['wire'] * 9 + ['k'] * 9 + WORDS
        path = re.sub(r'\{[^}]*\}', lambda match: self.choose.choice(words), path)
        if self.often(0.3):
            known = ['list-type', 'prefix', 'uploads', 'X-Amz-Signature']
            names = self.choose.choices(WORDS + known, k=self.choose.randrange(1, 6))
            values = ['', '=', *(f'={word}' for word in WORDS)]
            pairs = [name + self.choose.choice(values) for name in names]
            path += ('&' if '?' in path else '?') + '&'.join(pairs)
        return path

    def framed(self, body):
        """Header lines that frame the body, and the body in that frame."""
        if self.often(0.3):
            at = self.choose.randrange(len(body) + 1)
            parts = [part for part in (body[:at], body[at:]) if part]
            extension = self.choose.choice([b'', b'', b';a=b'])
            chunks = b''.join(b'%x%s\r\n%s\r\n' % (len(part), extension, part) for part in parts)
            trailer = self.choose.choice([b'', b'', b'a: b\r\n'])
            return 'Transfer-Encoding: chunked\r\n', chunks + b'0\r\n' + trailer + b'\r\n'
        if body or self.often(0.3):
            return f'Content-Length: {len(body)}\r\n', body
        return '', body

    def request(self):
        methods, path = self.choose.choice(self.ROUTES)
        methods = methods + ['GET', 'PUT', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'BREW']
        method = self.choose.choice(methods[:1] * 6 + methods)
        lines = 'Host: 127.0.0.1\r\n' if self.often(0.95) else ''
        lines += f'Authorization: Bearer {ROOT_TOKEN}\r\n' if self.often(0.8) else ''
        for _ in range(self.choose.choice([0, 0, 1, 2, 5])):
            lines += f'{self.choose.choice(self.NAMES)}: {self.choose.choice(VALUES)}\r\n'
        frame, body = self.framed(self.choose.choice(BODIES) if self.often(0.5) else b'')
        version = self.choose.choice(['HTTP/1.1'] * 9 + ['HTTP/1.0'])
        head = f'{method} {self.target(path)} {version}\r\n{lines}{frame}\r\n'
        return head.encode('latin-1') + body

    def damaged(self, sent):
        for _ in range(self.choose.choice([0, 0, 1, 1, 2, 4])):
            at = self.choose.randrange(len(sent) + 1)
            to = min(len(sent), at + self.choose.choice([0, 1, 2, 20]))
            put = self.choose.choice([b'', self.choose.choice(BROKEN), sent[at:to] * 2,
                                      bytes([self.choose.randrange(256)])])
            sent = sent[:at] + put + sent[to:]
        return sent

    def pieces(self, sent):
        cuts = sorted(self.choose.randrange(len(sent) + 1)
                      for _ in range(self.choose.choice([0, 0, 1, 3, 30])))
        return [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)])]

    def round(self):
        count = self.choose.choice([1, 1, 2, 4])
        sent = self.damaged(b''.join(self.request() for _ in range(count)))
        return {'way': self.choose.choice(Server.WAYS),
                'end': self.choose.choice(['half', 'reset', 'close']),
                'pieces': [base64.b64encode(piece).decode() for piece in self.pieces(sent)]}


class Server:
    """The servers under test, and the ways in."""
    WAYS = ('tcp', 'tls', 'unix')

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.path = os.path.join(self.folder, 'socket')
        options = os.environ.get('ASAN_OPTIONS', '')
        environment = {'ASAN_OPTIONS': f'quarantine_size_mb=16:{options}'}
        limits = ['--idle-timeout', '5', '--connection-memory', '32']
        arguments = [*limits, '--listen', f'unix:{self.path}']
        self.plain = Daemon(tls=False, arguments=arguments, environment=environment)
        self.tls = Daemon(arguments=limits, environment=environment)

    def __enter__(self):
        for daemon in (self.plain, self.tls):
            daemon.start()
        self.context = ssl.create_default_context(cafile=self.tls.ca)
        self.rest = [self.descriptors(daemon) for daemon in (self.plain, self.tls)]
        return self

    def __exit__(self, *failure):
        try:
            self.plain.__exit__()
        finally:
            self.tls.__exit__()
            shutil.rmtree(self.folder)

    def connect(self, way):
        if way == 'unix':
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(REPLY_SECONDS)
            peer.connect(self.path)
            return peer
        port = (self.tls if way == 'tls' else self.plain).port
        peer = socket.create_connection(('127.0.0.1', port), timeout=REPLY_SECONDS)
        return self.context.wrap_socket(peer, server_hostname='127.0.0.1') if way == 'tls' else peer

    @staticmethod
    def descriptors(daemon):
        return len(os.listdir(f'/proc/{daemon.process.pid}/fd'))

    def send(self, sent):
        """One round. What came back: nothing, too, when a busy machine lets the handshake take
        longer than the server waits."""
        answer = b''
        with contextlib.suppress(OSError), self.connect(sent['way']) as peer:
            for piece in sent['pieces']:
                peer.sendall(base64.b64decode(piece))
            if sent['end'] == 'half' and sent['way'] != 'tls':
                peer.shutdown(socket.SHUT_WR)
            if sent['end'] == 'reset':
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                return answer
            peer.settimeout(PATIENCE)
            while piece := peer.recv(1 << 16):
                answer += piece
        return answer

    def ask(self, way, request):
        """The status and body of a request by the book."""
        answer = b''
        with self.connect(way) as peer:
            peer.sendall(request)
            while piece := peer.recv(1 << 16):
                answer += piece
        head, _, body = answer.partition(b'\r\n\r\n')
        return head.split(b' ')[1:2], body

    def check(self, mark):
        """Requests by the book, on each way in."""
        head = f'Host: 127.0.0.1\r\nAuthorization: Bearer {ROOT_TOKEN}\r\nConnection: close\r\n'
        for way in self.WAYS:
            text = f'{way} {mark}'
            for method, target, body, wanted in (
                    ('PUT', '/wire', '', None), ('PUT', '/wire/k', 'hello', ''),  # for others
                    ('PUT', '/by-the-book', '', None), ('PUT', '/by-the-book/k', text, ''),
                    ('GET', '/by-the-book/k', '', text), ('DELETE', '/by-the-book/k', '', '')):
                request = f'{method} {target} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n'
                status, got = self.ask(way, (request + body).encode())
                if status not in ([b'200'], [b'204']) or wanted not in (None, got.decode()):
                    raise AssertionError(f'{way}: {method} {target} was answered {status} {got!r}')
        for daemon in (self.plain, self.tls):
            daemon.check_end()
            if SANITIZER.search(daemon.log()):
                raise AssertionError(f'a sanitizer has found something: {daemon.log()[-20000:]}')
            if daemon.rss_bytes() > MEMORY_BYTES:
                raise AssertionError(f'the server holds {daemon.rss_bytes()} bytes')

    def await_rest(self):
        """Every connection is given back once its idle time is over."""
        limit = time.monotonic() + REPLY_SECONDS
        for daemon, rest in zip((self.plain, self.tls), self.rest):
            while self.descriptors(daemon) > rest + SENDERS:  # files that stay open, as of packs
                if time.monotonic() > limit:
                    raise AssertionError(f'{self.descriptors(daemon)} descriptors are open, and '
                                         f'{rest} were')
                time.sleep(0.2)


class Sender(threading.Thread):
    """One sender and what it sent last. All of that follows from its seed."""

    def __init__(self, server, seed, number, until):
        super().__init__()
        self.server, self.seed, self.number, self.until = server, seed, number, until
        self.sent, self.count, self.failure = [], 0, None

    def run(self):
        try:
            while time.monotonic() < self.until:
                choose = random.Random(f'{self.seed} {self.number} {self.count}')
                self.count += 1
                self.sent = self.sent[1 - KEPT:] + [Grammar(choose).round()]
                judge(self.server.send(self.sent[-1]))
                if self.count % ROUNDS == 0 and self.number == 0:
                    self.server.check(f'{self.seed} {self.count}')
        except Exception as failure:
            self.failure = failure
            self.until = 0


def judge(answer):
    """Of damaged requests only that what comes back is HTTP, and no failure of the server."""
    if answer and not re.match(rb'HTTP/1\.1 \d{3} ', answer):
        raise AssertionError(f'what came back is not HTTP: {answer[:200]!r}')
    failed = re.search(rb'HTTP/1\.1 500 [^\r]*\r\n(?:[^\r]+\r\n)*x-amz-request-id', answer)
    if failed:
        raise AssertionError(f'the server failed: {answer[failed.start():][:1000]!r}')


def save(senders, seed):
    path = os.path.join(BUILD, f'raw-requests-{seed}.json')
    with open(path, 'w') as file:
        json.dump([sent for sender in senders for sent in sender.sent], file)
    return path


def fuzz(seconds, seed):
    senders = []
    try:
        with Server() as server:
            until = time.monotonic() + seconds
            server.check(f'{seed} begin')
            senders = [Sender(server, seed, number, until) for number in range(SENDERS)]
            for sender in senders:
                sender.start()
            for sender in senders:
                sender.join()
            for failure in filter(None, (sender.failure for sender in senders)):
                raise failure
            server.check(f'{seed} end')
            server.await_rest()
    except Exception as failure:
        told = ''.join(traceback.format_exception(failure))
        print(f'ERROR: seed {seed}, saved in {save(senders, seed)}: {told}')
        return False
    print(f'seed {seed}: {sum(sender.count for sender in senders)} connections')
    return True


def replay(path):
    with open(path) as file, Server() as server:
        server.check('begin')
        for sent in json.load(file):
            judge(server.send(sent))
        server.check('replayed')
        server.await_rest()
    return True


def main(arguments):
    if arguments[:1] == ['--replay']:
        passed = replay(arguments[1])
    else:
        seed = arguments[1] if len(arguments) > 1 else str(time.time_ns())
        passed = fuzz(float(arguments[0]), seed)
    print(f'{int(passed)} passed, {int(not passed)} failed, 0 skipped')
    return 0 if passed else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
