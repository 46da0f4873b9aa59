"""What no two readers may take differently: bytes that a proxy in front could read as another
request than the server does. Each oddity is sent as it stands, with a request hidden behind or in
it, which must never be answered."""
import contextlib
import os
import shutil
import socket
import ssl
import tempfile
import unittest

from tests.support.daemon import REPLY_SECONDS, ROOT_TOKEN, Daemon

THREADS_MEET = False

HOST = 'Host: 127.0.0.1\r\n'
TOKEN = f'Authorization: Bearer {ROOT_TOKEN}\r\n'
HEAD = HOST + TOKEN
HIDDEN = f'PUT /wire/hidden HTTP/1.1\r\n{HEAD}Content-Length: 6\r\n\r\nhidden'
ONE_CHUNK = '5\r\nhello\r\n0\r\n\r\n'
HIDDEN_CHUNK = f'0\r\n\r\n{HIDDEN}'
READY = f'GET /-/ready HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n'
LENGTH = len(HIDDEN)


def get(headers=HEAD, line='GET /wire HTTP/1.1'):
    return f'{line}\r\n{headers}\r\n'


def put(headers, body=HIDDEN):
    return f'PUT /wire/k HTTP/1.1\r\n{HEAD}{headers}\r\n{body}'


def chunked(body, headers='Transfer-Encoding: chunked\r\n'):
    return put(headers, body)


def folded(name, value):
    """The same header, folded in ways that hide it or show it."""
    yield f'{name} folded', f'{name}:\r\n {value}\r\n'
    yield f'{name} folded with a tab', f'{name}:\r\n\t{value}\r\n'
    yield f'{name} and a blank line', f'{name}: {value}\r\n \r\n'
    yield f'{name} with a tail', f'{name}: {value}\r\n x\r\n'
    yield f'{name} out of a folded name', f'{name[:-1]}: {value}\r\n {name[-1]}\r\n'
    yield f'{name} folded twice', f'{name}:\r\n {value[:1]}\r\n {value[1:]}\r\n'


def folds():
    """(name, bytes) of requests with a folded line in each place."""
    for name, lines in folded('Content-Length', str(LENGTH)):
        yield name, put(lines)
    for name, lines in folded('Transfer-Encoding', 'chunked'):
        yield name, put(lines, f'0\r\n\r\n{HIDDEN}')
    for name, lines in folded('Authorization', f'Bearer {ROOT_TOKEN}'):
        yield name, get(HOST + lines)
    for name, lines in folded('Host', '127.0.0.1'):
        yield name, get(lines + TOKEN)
    for name, lines in folded('Expect', '100-continue'):
        yield name, put(f'Content-Length: {LENGTH}\r\n{lines}')
    for name, lines in folded('x', 'y'):
        yield f'last: {name}', get(HEAD + lines)
        yield f'first: {name}', get(lines + HEAD)
    yield 'blanks behind the request line', get(' a: b\r\n' + HEAD)
    yield 'blanks alone behind the request line', get(' \r\n' + HEAD)


# Refused with 400, and the connection closed: (name, what is sent).
LINES = [
    *folds(),
    ('NUL in Content-Length', put('Content-Length: 5\0006\r\n', 'hello')),
    ('NUL behind Content-Length', put('Content-Length: 5\0\r\n', 'hello')),
    ('NUL and blank behind Content-Length', put('Content-Length: 5\0 \r\n', 'hello')),
    ('NUL in Transfer-Encoding', put('Transfer-Encoding: chunked\0, identity\r\n', ONE_CHUNK)),
    ('NUL in a token', get(f'{HOST}Authorization: Bearer {ROOT_TOKEN}\0x\r\n')),
    ('NUL in a name', get(HEAD + 'a\0b: c\r\n')),
    ('NUL at the end of a name', get(HEAD + 'a\0: c\r\n')),
    ('NUL in a target', get(line='GET /wire\0/x HTTP/1.1')),
    ('NUL behind a target', get(line='GET /wire\0 HTTP/1.1')),
    ('NUL and a version in a target', get(line='GET /wire\0HTTP/1.1\0\0a: HTTP/1.1')),
    ('NUL in a method', get(line='GE\0T /wire HTTP/1.1')),
    ('NUL for the empty line', f'GET /wire HTTP/1.1\r\n{HEAD}\0\r\n{HIDDEN}'),
    ('NUL in front of a line', f'GET /wire HTTP/1.1\r\n{HEAD}\0x: y\r\n{HIDDEN}'),
    ('NUL as the first header', f'GET /wire HTTP/1.1\r\n\0x\r\n{HEAD}\r\n'),
    ('a lone LF behind the request line', f'GET /wire HTTP/1.1\n{HEAD}\r\n'),
    ('a lone LF behind a header', get(f'{HOST[:-2]}\n{TOKEN}')),
    ('a lone LF behind the last header', get(HEAD[:-2] + '\n')),
    ('a lone LF for the empty line', f'GET /wire HTTP/1.1\r\n{HEAD}\n'),
    ('lone LFs alone', get().replace('\r', '')),
    ('a header behind a lone LF', put(f'x: y\nContent-Length: {LENGTH}\r\n')),
    ('a lone CR in a value', get(HEAD + 'x: a\rb\r\n')), ('two CRs', get(HEAD + 'x: a\r\r\n')),
    ('a lone CR in a name', get(HEAD + 'x\ry: a\r\n')),
    ('a lone CR in a target', get(line='GET /wi\rre HTTP/1.1')),
    ('a lone CR between headers', get(f'{HEAD}x: y\rContent-Length: 5\r\n')),
    ('a control byte in a value', get(HEAD + 'x: a\x01b\r\n')),
    ('DEL in a value', get(HEAD + 'x: a\x7fb\r\n')),
    ('a control byte in a name', get(HEAD + 'a\x01b: c\r\n')),
    ('a byte beyond ASCII in a name', get(HEAD + 'a\xffb: c\r\n')),
    ('a control byte in a target', get(line='GET /wi\x01re HTTP/1.1')),
    ('a tab in a target', get(line='GET /wi\tre HTTP/1.1')),
    ('a control byte in a method', get(line='GE\x01T /wire HTTP/1.1')),
    ('a path without its slash', get(line='GET wire HTTP/1.1')), ('an asterisk', get(line='GET * HTTP/1.1')),
    ('a URL of something else', get(line='GET ftp://127.0.0.1/wire HTTP/1.1')), ('CONNECT', get(line='CONNECT x:1 HTTP/1.1')),
    ('a blank in a target', get(line='GET /wi re HTTP/1.1')),
    ('blanks in front of a target', get(line='GET  /wire HTTP/1.1')),
    ('a tab behind a method', get(line='GET\t/wire HTTP/1.1')),
    ('blanks in front of the version', get(line='GET /wire  HTTP/1.1')),
    ('two versions', get(line='GET /wire HTTP/1.1 HTTP/1.1')),
    ('a blank in front of a colon', put(f'Content-Length : {LENGTH}\r\n')),
    ('a tab in front of a colon', put(f'Content-Length\t: {LENGTH}\r\n')),
    ('a vertical tab in front of a colon', put('Transfer-Encoding\x0b: chunked\r\n', HIDDEN_CHUNK)),
    ('a line without a colon', get(HEAD + 'nonsense\r\n')),
    ('an empty name', get(HEAD + ': value\r\n')),
    ('no Host', get(TOKEN)), ('two Hosts', get(HEAD + 'Host: 127.0.0.1\r\n')),
    ('two other Hosts', get(HEAD + 'host: elsewhere\r\n')),
    ('no version', get(line='GET /wire')),
    ('a version of another kind', get(line='GET /wire HTTPS/1.1')),
    ('a version in small letters', get(line='GET /wire http/1.1')),
    ('blanks behind the version', get(line='GET /wire HTTP/1.1 ')),
    ('a long version', get(line='GET /wire HTTP/1.10')),
    *[(f'the URL {url!r}', get(line=f'GET {url} HTTP/1.1')) for url in
      ('http:///wire', 'http://', 'https://?x', 'http://:80/wire', 'http://a@127.0.0.1/wire', 'http://a%20/wire',
       'http://a#b/wire')],
]
LENGTHS = [
    *[(f'Content-Length {value!r}', put(f'Content-Length: {value}\r\n')) for value in
      ('-5', '+5', '0x5', '5 5', '5,5', '5, 6', '5;a', 'five', '', '5.0', '\v5', '5\x0c', '"5"',
       "'5'", '1e1', '5_0', '\xb2')],
    ('the same length twice', put(f'Content-Length: {LENGTH}\r\n' * 2)),
    ('two lengths', put(f'Content-Length: 0\r\nContent-Length: {LENGTH}\r\n')),
    ('two lengths, the large one first', put(f'Content-Length: {LENGTH}\r\ncontent-length: 0\r\n')),
    ('a length and chunks', 
     put(f'Content-Length: {LENGTH}\r\nTransfer-Encoding: chunked\r\n', HIDDEN_CHUNK)),
    ('chunks and a length', 
     put(f'Transfer-Encoding: chunked\r\nContent-Length: {LENGTH}\r\n', HIDDEN_CHUNK)),
    *[(f'Transfer-Encoding {value!r}', put(f'Transfer-Encoding: {value}\r\n', HIDDEN_CHUNK))
      for value in
      ('chunked, chunked', 'identity', 'x-chunked', 'xchunked', 'chunked;a=b', 'chunked, identity',
       'identity, chunked', 'gzip, chunked', '', ',chunked',
       'chunked,', '"chunked"', 'chunked\x0b', '\x0bchunked', 'chunk', 'chunked\xa0')],
    ('two Transfer-Encodings', 
     put('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', HIDDEN_CHUNK)),
    ('chunked twice', put('Transfer-Encoding: chunked\r\n' * 2, HIDDEN_CHUNK)),
    ('chunks in HTTP/1.0', chunked(f'0\r\n\r\n{HIDDEN}').replace('HTTP/1.1', 'HTTP/1.0', 1)),
]
CHUNKS = [
    *[(f'a chunk of size {size!r}', chunked(f'{size}\r\nhello\r\n0\r\n\r\n')) for size in
      ('-5', '+5', ' 5', '5 ', '\t5', '0x5', '5h', '', '"5"', '5,', '5\r', '5\0', 'five')],
    ('a lone LF behind a size', chunked('5\nhello\r\n0\r\n\r\n')),
    ('a lone LF behind an extension', chunked('5;a=b\nhello\r\n0\r\n\r\n')),
    ('a lone LF in an extension', chunked('3;\nAAA\r\nabc\r\n0\r\n\r\n')),
    ('a lone LF behind a chunk', chunked('5\r\nhello\n5\r\nworld\r\n0\r\n\r\n')),
    ('a control byte in an extension', chunked('5;a=\x01\r\nhello\r\n0\r\n\r\n')),
    ('a lone CR in an extension', chunked('5;a\rb\r\nhello\r\n0\r\n\r\n')),
    ('NUL in an extension', chunked('5;a\0b\r\nhello\r\n0\r\n\r\n')),
    ('nothing behind a chunk', chunked('5\r\nhello0\r\n\r\n')),
    ('a chunk too short', chunked('4\r\nhello\r\n0\r\n\r\n')),
    ('a lone CR behind a chunk', chunked('5\r\nhello\r5\r\nworld\r\n0\r\n\r\n')),
    ('a trailer without a colon', chunked('5\r\nhello\r\n0\r\nnonsense\r\n\r\n')),
]
# Refused with another status, or with none: (name, what is sent, the status).
REFUSED = [
    ('HTTP/0.9', 'GET /wire\r\n', 400),
    ('HTTP/0.9 with a version', get(line='GET /wire HTTP/0.9'), 505),
    ('HTTP/3.0', get(line='GET /wire HTTP/3.0'), 505),
    ('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505),
    ('a method alone', get(line='GET'), None),
    ('a length too large', put('Content-Length: 99999999999999999999999\r\n'), 413),
    ('a chunk too large', chunked('1' + '0' * 16 + '\r\nhello\r\n'), 413),
    ('trailers too large', chunked('5\r\nhello\r\n0\r\n' + 'a: b\r\n' * 20000), 431),
]
# Taken as they are meant: (name, what is sent, the statuses). The connection stays.
TAKEN = [
    ('one request', get(), [200]), ('three requests', get() * 3, [200] * 3),
    ('an empty line in front', '\r\n' + get(), [200]),
    ('an empty value', get(HEAD + 'x:\r\n'), [200]),
    ('blanks around a value', get(HEAD + 'x: \t y \t \r\n'), [200]),
    ('no blank', get(HEAD + 'x:y\r\n'), [200]),
    ('a repeated header', get(HEAD + 'x: y\r\nx: z\r\n'), [200]),
    ('bytes beyond ASCII in a value', get(HEAD + 'x: \xe4\xff\r\n'), [200]),
    ('names of one byte', get(HEAD + ''.join(f'{c}: {c}\r\n' for c in 'abcdefghij')), [200]),
    ('Host in other letters', get('hOST: x\r\n' + TOKEN), [200]),
    ('an empty Host', get('Host:\r\n' + TOKEN), [200]),
    ('HTTP/1.2', get(line='GET /wire HTTP/1.2'), [200]),
    ('HTTP/1.0', get(line='GET /wire HTTP/1.0').replace(HOST, 'Connection: keep-alive\r\n'), [200]),
    ('%00 in a path', get(line='GET /wire/%00 HTTP/1.1'), [400]),
    ('a query', get(line='GET /wire?list-type=2&prefix=a+b&x-y HTTP/1.1'), [200]),
    ('a query of nothing', get(line='GET /wire? HTTP/1.1'), [200]),
    ('query marks', get(line='GET /wire?prefix=a?b&list-type=2 HTTP/1.1'), [200]),
    ('a URL', get(line='GET http://127.0.0.1/wire HTTP/1.1'), [200]),
    ('a URL of another host and scheme', get(line='GET HTTPS://other.example:99/wire HTTP/1.1'), [200]),
    ('a URL with a query', get(line='GET http://[::1]:80/wire?prefix=http://x/ HTTP/1.1'), [200]),
    ('a URL without a path', get(line='GET http://x HTTP/1.1'), [200]),
    ('a URL without a path, with a query', get(line='GET http://x?max-buckets=1 HTTP/1.1'), [200]),
    ('OPTIONS *', get(line='OPTIONS * HTTP/1.1'), [404]),
    ('TRACE', get(line='TRACE /wire HTTP/1.1'), [405]),
    ('a long method', get(line=f'{"X" * 3000} /wire HTTP/1.1'), [405]),
    ('a method in small letters', get(line='get /wire HTTP/1.1'), [405]),
    ('Upgrade', get(HEAD + 'Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n'), [200]),
    ('a body behind GET', get(f'{HEAD}Content-Length: {LENGTH}\r\n') + HIDDEN, [200]),
    ('a body behind DELETE',
     get(f'{HEAD}Content-Length: {LENGTH}\r\n', 'DELETE /wire/none HTTP/1.1') + HIDDEN, [204]),
    ('a body and a request', put('Content-Length: 5\r\n', 'hello') + get(), [200, 200]),
    ('an empty body and a request', put('Content-Length: 0\r\n', '') + get(), [200, 200]),
    ('zeros in front of a length', put('Content-Length: 005\r\n', 'hello'), [200]),
    ('other expectations', put('Expect: x\r\nContent-Length: 5\r\n', 'hello'), [200]),
    ('an expectation', put('Expect: 100-continue\r\nContent-Length: 5\r\n', 'hello'), [100, 200]),
]
# The same in HTTP's chunks. Before 1.0 of libmicrohttpd their connections close.
CHUNKED = [
    ('chunks', chunked('5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n')),
    ('Chunked', put('Transfer-Encoding: Chunked\r\n', '5\r\nhello\r\n0\r\n\r\n')),
    ('a tab', put('Transfer-Encoding:\tchunked\r\n', '5\r\nhello\r\n0\r\n\r\n')),
    ('no blank', put('Transfer-Encoding:chunked\r\n', '5\r\nhello\r\n0\r\n\r\n')),
    ('zeros', chunked('0' * 40 + '5\r\nhello\r\n000\r\n\r\n')),
    ('extensions', chunked('5;a=b;c="d"\r\nhello\r\n0;e\r\n\r\n')),
    ('a trailer', chunked('5\r\nhello\r\n0\r\na: b\r\n\r\n')),
    ('line ends in a chunk', chunked('8\r\n\r\n5\r\n\n\r\n\r\n0\r\n\r\n')),
    ('chunks of digits', chunked('3\r\n5\r\n\r\n2\r\n\r\n\r\n0\r\n\r\n')),
    ('a large chunk', chunked('10000\r\n' + 'x' * 65536 + '\r\n0\r\n\r\n')),
]
CHUNKED_SIZES = {'chunks': 11, 'line ends in a chunk': 8, 'a large chunk': 65536}


def end(peer):
    """Sends nothing more; below TLS, which would hear nothing more either."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(peer.fileno())) as under:
        under.shutdown(socket.SHUT_WR)  # an error: the peer has closed


class Wire(unittest.TestCase):
    tls = False

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=cls.tls, arguments=cls.arguments())
        cls.daemon.start()
        assert cls.daemon.request('PUT', '/wire').status == 200

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    @classmethod
    def arguments(cls):
        return []

    def connect(self):
        plain = socket.create_connection(('127.0.0.1', self.daemon.port), timeout=REPLY_SECONDS)
        if not self.tls:
            return plain
        context = ssl.create_default_context(cafile=self.daemon.ca)
        return context.wrap_socket(plain, server_hostname='127.0.0.1')

    def talk(self, *pieces, ended=False):
        """All that comes back until the server closes; `ended`: told that nothing more is sent."""
        answer = b''
        with self.connect() as peer:
            with contextlib.suppress(ConnectionError, ssl.SSLError):  # closed before all was sent
                for piece in pieces:
                    peer.sendall(piece.encode('latin-1'))
                if ended:
                    end(peer)
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                while piece := peer.recv(65536):
                    answer += piece
        return answer

    @staticmethod
    def statuses(answer):
        """Of the replies, one behind the other. What is no reply any more is passed over."""
        found = []
        while answer.startswith(b'HTTP/1.1 '):
            head, _, answer = answer.partition(b'\r\n\r\n')
            lines = head.decode('latin-1').split('\r\n')
            parts = [line.partition(':') for line in lines[1:]]
            fields = {name.lower(): value.strip() for name, _, value in parts}
            found.append(int(lines[0].split()[1]))
            if found[-1] not in (100, 204):
                answer = answer[int(fields['content-length']):]
        return found

    def connection_closes(self, answer):
        return b'\r\nConnection: close\r\n' in answer.partition(b'\r\n\r\n')[0]


class Plain(Wire):
    def assert_refused(self, table, status=400):
        for name, sent in table:
            with self.subTest(name):
                answer = self.talk(sent, HIDDEN, READY)
                self.assertEqual(self.statuses(answer)[:1], [status] if status else [], answer)
                self.assertLessEqual(answer.count(b'x-amz-request-id'), 1, answer)
                self.assertNotIn(b'HTTP/1.1 2', answer)
        self.assertEqual(self.daemon.request('HEAD', '/wire/hidden').status, 404)

    def test_lines(self):
        self.assert_refused(LINES)

    def test_lengths(self):
        self.assert_refused(LENGTHS)

    def test_chunks(self):
        self.daemon.request('DELETE', '/wire/k')
        self.assert_refused(CHUNKS)
        self.assertEqual(self.daemon.request('HEAD', '/wire/k').status, 404)

    def test_other_refusals(self):
        for name, sent, status in REFUSED:
            self.assert_refused([(name, sent)], status)

    def test_what_is_by_the_book_is_taken(self):
        for name, sent, statuses in TAKEN:
            with self.subTest(name):
                answer = self.talk(sent, READY)
                self.assertEqual(self.statuses(answer), [*statuses, 200], answer)
                self.assertIn(b'\r\n\r\nready\n', answer)

    def test_chunks_by_the_book_are_taken(self):
        for name, sent in CHUNKED:
            with self.subTest(name):
                answer = self.talk(sent, READY)
                count = 1 if self.connection_closes(answer) else 2
                self.assertEqual(self.statuses(answer), [200] * count, answer)
                stored = self.daemon.request('GET', '/wire/k').body
                self.assertEqual(len(stored), CHUNKED_SIZES.get(name, 5))

    def test_requests_in_pieces(self):
        for name, sent, statuses in TAKEN[:3] + TAKEN[-4:]:
            with self.subTest(name):
                self.assertEqual(self.statuses(self.talk(*sent, READY)), [*statuses, 200])

    def test_oddities_in_pieces(self):
        """However they arrive and whatever becomes of them, nothing behind them is a request."""
        trailers = [('NUL in a trailer', chunked('0\r\n\0x\r\n')),
                    ('a folded trailer', chunked('0\r\na: b\r\n c\r\n\r\n'))]
        for name, sent in CHUNKS + trailers:
            head, _, body = sent.partition('\r\n\r\n')
            with self.subTest(name):
                answer = self.talk(head + '\r\n\r\n', *body, HIDDEN, READY, ended=True)
                self.assertLessEqual(len(self.statuses(answer)), 1, answer)
                self.assertNotIn(b'ready', answer)
        self.assertEqual(self.daemon.request('HEAD', '/wire/hidden').status, 404)

    def test_a_long_head_of_many_pieces(self):
        lines = [f'x-{i}: {"v" * i}\r\n' for i in range(100)]
        head = f'GET /wire?prefix={"p" * 1000} HTTP/1.1\r\n{HEAD}'
        self.assertEqual(self.statuses(self.talk(head, *lines, '\r\n', READY)), [200, 200])


class Tls(Plain):
    tls = True


class UnixSocket(Plain):
    @classmethod
    def arguments(cls):
        return ['--listen', f'unix:{cls.path}']

    @classmethod
    def setUpClass(cls):
        cls.path = os.path.join(tempfile.mkdtemp(prefix='deltabucket-test-'), 'socket')
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(os.path.dirname(cls.path))

    def connect(self):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(REPLY_SECONDS)
        peer.connect(self.path)
        return peer


class PlainOnTls(unittest.TestCase):
    """Plain HTTP on a port of TLS is told so, in plain HTTP."""
    SENTENCE = b'Client sent an HTTP request to an HTTPS server'

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.daemon.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def connect(self):
        peer = socket.create_connection(('127.0.0.1', self.daemon.port), timeout=REPLY_SECONDS)
        self.addCleanup(peer.close)
        return peer

    def hear(self, peer):
        """All that comes until the connection ends; a reset fails."""
        pieces = []
        while piece := peer.recv(65536):
            pieces.append(piece)
        return b''.join(pieces)

    def test_a_request_is_answered(self):
        for method in ('GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'):
            peer = self.connect()
            peer.sendall(f'{method} /wire HTTP/1.1\r\n{HOST}\r\n'.encode())
            answer = self.hear(peer)
            self.assertTrue(answer.startswith(b'HTTP/1.1 400 Bad Request\r\n'), answer)
            self.assertIn(self.SENTENCE, answer)
        self.assertEqual(self.daemon.request('GET', '/-/ready').status, 200)
        self.daemon.await_log('plain_http_refused client=127.0.0.1')

    def test_one_that_sends_much_gets_the_answer(self):
        peer = self.connect()
        peer.sendall(f'PUT /wire/k HTTP/1.1\r\n{HOST}Content-Length: 4000000\r\n\r\n'.encode() + bytes(4_000_000))
        self.assertIn(self.SENTENCE, self.hear(peer))

    def test_who_is_slow_holds_nobody_up(self):
        slow = [self.connect() for _ in range(20)]
        self.assertEqual(self.daemon.request('GET', '/-/ready').status, 200)
        for peer in slow:
            peer.sendall(b'G')
            self.assertIn(self.SENTENCE, self.hear(peer))

    def test_what_is_neither_is_not_answered(self):
        for noise in (b'\0\0\0\0\0\0', b'\x80\x2e\1\3\1\0', b'\x16GET / HTTP/1.1\r\n\r\n', b'get / HTTP/1.1\r\n\r\n'):
            peer = self.connect()
            peer.sendall(noise)
            with contextlib.suppress(OSError):  # it may have ended by now
                peer.shutdown(socket.SHUT_WR)
                self.assertNotIn(b'HTTP/1.1', self.hear(peer), noise)


class Sizes(Wire):
    """With the least memory that a connection may have, each request finds its answer."""
    LEAST = 32

    @classmethod
    def arguments(cls):
        return ['--connection-memory', str(cls.LEAST)]

    def assert_answered(self, sent, statuses):
        answer = self.talk(sent, READY)
        found = self.statuses(answer)
        self.assertIn(found[:1], [[status] for status in statuses], answer[:200])
        if found[0] in (414, 431):
            self.assertNotIn(b'ready', answer)
        return found[0]

    def test_many_parameters(self):
        for count in (1, 250, 255, 256, 257, 500, 1000, 3000):
            with self.subTest(count=count):
                self.assert_answered(get(line=f'GET /wire?{"x-&" * count} HTTP/1.1'), [200])
                self.assert_answered(get(line=f'GET /wire?{"a=b&" * count} HTTP/1.1'), [200, 414])

    def test_many_headers(self):
        for count in (100, 200, 250, 300, *range(440, 520, 4), 1000, 1900, 4000):
            with self.subTest(count=count):
                self.assert_answered(get(HEAD + 'a:\r\n' * count), [200, 431])

    def test_many_cookies(self):
        for count in (1, 100, 200, *range(440, 520, 4), 1000, 4000):
            with self.subTest(count=count):
                self.assert_answered(get(f'{HEAD}Cookie: {"a;" * count}\r\n'), [200, 431])

    def test_sizes_around_the_limit(self):
        """Every size finds an answer: none lies where a head has room and its reply has not."""
        kib = self.LEAST * 1024
        for size in [*range(1000, kib, 1500), *range(kib - 700, kib + 100, 20), 2 * kib, 5 * kib]:
            with self.subTest(size=size):
                line = f'GET /wire?prefix={"p" * size} HTTP/1.1'
                long = self.assert_answered(get(line=line), [200, 400, 414, 431])
                self.assertTrue(size < kib * 2 // 5 or long in (414, 431), long)
                self.assert_answered(get(f'{HEAD}x: {"v" * size}\r\n'), [200, 400, 431])
                self.assert_answered(get(f'{HEAD}Cookie: {"v" * size}\r\n'), [200, 400, 431])
                self.assert_answered(f'{"X" * size} /wire HTTP/1.1\r\n{HEAD}\r\n', [405, 414, 431])

    def test_a_target_too_long(self):
        for size in (16000, 20000, 30000, 100000):
            with self.subTest(size=size):
                self.assert_answered(get(line=f'GET /wire/{"p" * size} HTTP/1.1'), [414])

    def test_a_long_extension(self):
        """Of a chunk: it fills the memory, and no line has come to an end."""
        answer = self.talk(chunked(f'5;{"a" * 100000}\r\nhello\r\n0\r\n\r\n'), READY)
        self.assertIn(self.statuses(answer), ([413], [431], [500]), answer)


class SizesTls(Sizes):
    tls = True


if __name__ == '__main__':
    unittest.main()
