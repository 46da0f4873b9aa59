"""Bodies as clients send them: framed, signed, announced, cut off, refused before they come."""
import base64
import hashlib
import socket
import ssl
import unittest
import zlib
from xml.etree import ElementTree

from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.signer import SIGNED_CHUNKS, UNSIGNED, UNSIGNED_CHUNKS_TRAILER, Signer, unsigned_chunks

THREADS_MEET = False

LARGE = bytes(range(256)) * 4096 * 3 + b'end'


def crc32(body):
    return 'x-amz-checksum-crc32', base64.b64encode(zlib.crc32(body).to_bytes(4, 'big')).decode()


class Raw:
    """A connection on which a test writes what it likes."""

    def __init__(self, daemon):
        plain = socket.create_connection(('127.0.0.1', daemon.port), timeout=120)
        self.socket = ssl.create_default_context(cafile=daemon.ca).wrap_socket(plain, server_hostname='127.0.0.1') if daemon.tls else plain
        self.got = b''

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def head(self, method, target, *headers, token=ROOT_TOKEN):
        lines = [f'{method} {target} HTTP/1.1', 'Host: 127.0.0.1', *headers] + ([f'Authorization: Bearer {token}'] if token else [])
        self.send('\r\n'.join(lines) + '\r\n\r\n')

    def until(self, mark):
        while mark not in self.got:
            more = self.socket.recv(65536)
            if not more:
                raise AssertionError(f'closed before {mark}: {self.got}')
            self.got += more
        before, self.got = self.got.split(mark, 1)
        return before + mark

    def reply(self):
        """Status, headers (names in lower case) and body of the next reply; 100 is a reply without body."""
        lines = self.until(b'\r\n\r\n').decode().split('\r\n')
        status = int(lines[0].split()[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(':') for line in lines[1:] if line)}
        length = int(headers.get('content-length', 0)) if status != 100 else 0
        while len(self.got) < length:
            self.got += self.socket.recv(65536)
        body, self.got = self.got[:length], self.got[length:]
        return status, headers, body

    def is_closed(self):
        return self.socket.recv(1) == b''


def code_of(body):
    return ElementTree.fromstring(body).findtext('Code')


class Bodies(unittest.TestCase):
    tls = False

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=cls.tls)
        cls.daemon.start()
        cls.signer = Signer.of(cls.daemon)
        assert cls.daemon.request('PUT', '/bodies').status == 200

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def ask(self, method, target, body=None, headers=None):
        return self.daemon.request(method, target, body, headers, token=None)

    def stored(self, key):
        return self.daemon.request('GET', f'/bodies/{key}')

    def put_unsigned_chunks(self, key, body, framed=None, trailer=None, **more):
        extra = {'content-encoding': 'aws-chunked', 'x-amz-decoded-content-length': str(len(body)), **more}
        if trailer:
            extra['x-amz-trailer'] = trailer[0]
        extra = {name: value for name, value in extra.items() if value is not None}
        headers = self.signer.headers('PUT', f'/bodies/{key}', payload=UNSIGNED_CHUNKS_TRAILER, extra=extra)
        return self.ask('PUT', f'/bodies/{key}', unsigned_chunks(body, trailer=trailer) if framed is None else framed, headers)

    def assert_refused(self, reply, status, code, key):
        self.assertEqual((reply.status, reply.code()), (status, code), reply.body)
        self.assertEqual(self.stored(key).status, 404)

    def test_signed_chunks(self):
        for key, body, size in (('empty', b'', 65536), ('one', b'x', 65536), ('even', LARGE[:131072], 65536), ('large', LARGE, 8192), ('huge-chunk', LARGE, 1 << 20)):
            headers, framed = self.signer.chunked(f'/bodies/signed-{key}', body, size)
            put = self.ask('PUT', f'/bodies/signed-{key}', framed, headers)
            self.assertEqual(put.status, 200, put.body)
            got = self.stored(f'signed-{key}')
            self.assertEqual(got.body, body)
            self.assertIsNone(got.headers['content-encoding'])
            self.assertEqual(got.headers['etag'].strip('"'), hashlib.md5(body).hexdigest())

    def test_signed_chunks_with_trailer(self):
        headers, framed = self.signer.chunked('/bodies/signed-trailer', LARGE, trailer=crc32(LARGE))
        put = self.ask('PUT', '/bodies/signed-trailer', framed, headers)
        self.assertEqual((put.status, put.headers['x-amz-checksum-crc32']), (200, crc32(LARGE)[1]), put.body)
        self.assertEqual(self.stored('signed-trailer').body, LARGE)

    def test_unsigned_chunks_with_trailer(self):
        for trailer in (None, crc32(LARGE)):
            put = self.put_unsigned_chunks('unsigned', LARGE, trailer=trailer)
            self.assertEqual(put.status, 200, put.body)
            self.assertEqual(self.stored('unsigned').body, LARGE)

    def test_chunks_within_chunks(self):
        """What boto3 does over TLS: HTTP's own chunks around aws-chunked ones, and no length anywhere."""
        headers = self.signer.headers('PUT', '/bodies/nested', payload=UNSIGNED_CHUNKS_TRAILER, extra={
            'content-encoding': 'aws-chunked', 'x-amz-trailer': crc32(LARGE)[0]})
        framed = unsigned_chunks(LARGE, trailer=crc32(LARGE))
        put = self.ask('PUT', '/bodies/nested', (framed[at:at + 777] for at in range(0, len(framed), 777)), headers)
        self.assertEqual(put.status, 200, put.body)
        self.assertEqual(self.stored('nested').body, LARGE)

    def test_http_chunks_alone(self):
        headers = self.signer.headers('PUT', '/bodies/streamed', payload=UNSIGNED)
        put = self.ask('PUT', '/bodies/streamed', iter([b'ab', b'c' * 100000, b'd']), headers)
        self.assertEqual(put.status, 200, put.body)
        self.assertEqual(self.stored('streamed').body, b'ab' + b'c' * 100000 + b'd')

    def test_chunks_of_a_bearer_token(self):
        framed = unsigned_chunks(b'by token', trailer=crc32(b'by token'))
        headers = {'Content-Encoding': 'gzip, aws-chunked', 'x-amz-decoded-content-length': '8', 'x-amz-trailer': 'x-amz-checksum-crc32'}
        self.assertEqual(self.daemon.request('PUT', '/bodies/token', framed, headers).status, 200)
        got = self.stored('token')
        self.assertEqual((got.body, got.headers['content-encoding']), (b'by token', 'gzip'))
        for sent, told in (
            ('deflate, gzip', 'deflate, gzip'),
            ('deflate,gzip', 'deflate,gzip'),
            (' br ', 'br'),
        ):
            self.daemon.request('PUT', '/bodies/encoded', b'x', {'content-encoding': sent})
            self.assertEqual(
                self.daemon.request('HEAD', '/bodies/encoded').headers['content-encoding'], told
            )
        signed = self.daemon.request('PUT', '/bodies/none', framed, dict(headers, **{'x-amz-content-sha256': SIGNED_CHUNKS}))
        self.assert_refused(signed, 400, 'InvalidRequest', 'none')

    def test_framing_is_never_stored(self):
        """When it cannot be told whether the body is framed, it is refused."""
        framed = unsigned_chunks(b'hello')
        for extra in ({'Content-Encoding': 'aws-chunked'}, {'x-amz-decoded-content-length': '5'}, {'Content-Encoding': 'aws-chunked', 'x-amz-content-sha256': UNSIGNED}):
            self.assert_refused(self.daemon.request('PUT', '/bodies/unclear', framed, extra), 400, 'InvalidRequest', 'unclear')

    def test_forged_chunks(self):
        other = lambda digit: b'1' if digit == b'0' else b'0'
        for name, spoil in (('byte', lambda framed: framed.replace(b'\r\nx', b'\r\ny', 1)), ('signature', lambda framed: framed.replace(b'signature=', b'signature=0', 1)[:-1]),
                            ('last', lambda framed: framed[:-5] + other(framed[-5:-4]) + framed[-4:])):
            headers, framed = self.signer.chunked('/bodies/forged', b'x' * 100000, 8192)
            spoilt = spoil(framed)
            self.assertEqual(len(spoilt), len(framed))
            self.assertNotEqual(spoilt, framed)
            reply = self.ask('PUT', '/bodies/forged', spoilt, headers)
            self.assertIn((reply.status, reply.code()), ((403, 'SignatureDoesNotMatch'), (400, 'IncompleteBody')), (name, reply.body))
            self.assertEqual(self.stored('forged').status, 404)

    def test_chunks_swapped_between_places(self):
        body = b'a' * 8192 + b'b' * 8192
        headers, framed = self.signer.chunked('/bodies/swapped', body, 8192)
        first = framed.index(b'\r\n400', 10) if b'\r\n400' in framed[10:] else framed.index(b'2000;', 10)
        self.assert_refused(self.ask('PUT', '/bodies/swapped', framed[first:2 * first] + framed[:first] + framed[2 * first:], headers), 403,
                            'SignatureDoesNotMatch', 'swapped')

    def test_broken_framing(self):
        wrong = ('x-amz-checksum-crc32', crc32(b'other')[1])
        table = [
            (dict(framed=b'5\r\nhello\r\n'), 'IncompleteBody'), (dict(framed=b'5\r\nhell'), 'IncompleteBody'), (dict(framed=b'hello'), 'IncompleteBody'),
            (dict(framed=b'4\r\nhell\r\n0\r\n\r\n'), 'IncompleteBody'), (dict(framed=b'6\r\nhello!\r\n0\r\n\r\n'), 'IncompleteBody'),
            (dict(framed=b'5\r\nhello0\r\n\r\n'), 'IncompleteBody'), (dict(framed=b'5\r\nhello\r\n0\r\n\r\nmore'), 'IncompleteBody'),
            (dict(framed=b'2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n'), 'InvalidChunkSizeError'), (dict(framed=b'x' * 3000), 'IncompleteBody'),
            (dict(trailer=crc32(b'hello'), framed=unsigned_chunks(b'hello')), 'MalformedTrailerError'),
            (dict(trailer=None, framed=unsigned_chunks(b'hello', trailer=crc32(b'hello'))), 'MalformedTrailerError'),
            (dict(trailer=crc32(b'hello'), framed=unsigned_chunks(b'hello', trailer=('x-amz-checksum-sha1', 'qvTGHdzF6KLavt4PO0gs2a6pQ00='))), 'MalformedTrailerError'),
            (dict(trailer=('x-amz-checksum-crc32', 'bad')), 'InvalidRequest'), (dict(trailer=wrong), 'BadDigest'),
            (dict(trailer=('x-amz-meta-a', 'b')), 'InvalidRequest'), ({'x-amz-decoded-content-length': '-5'}, 'InvalidArgument'),
            (dict(trailer=crc32(b'hello'), **{'x-amz-checksum-crc32': crc32(b'hello')[1]}), 'InvalidRequest'),
        ]
        for options, code in table:
            with self.subTest(options=options):
                self.assert_refused(self.put_unsigned_chunks('broken', b'hello', **options), 400, code, 'broken')
        small = self.put_unsigned_chunks('broken', b'hello', framed=b'2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n')
        self.assertEqual([ElementTree.fromstring(small.body).findtext(name) for name in ('Chunk', 'BadChunkSize')], ['1', '2'])

    def test_a_trailer_guards_a_large_body(self):
        spoilt = bytearray(unsigned_chunks(LARGE, trailer=crc32(LARGE)))
        spoilt[2000000] ^= 1
        reply = self.put_unsigned_chunks('guarded', LARGE, framed=bytes(spoilt), trailer=crc32(LARGE))
        self.assert_refused(reply, 400, 'BadDigest', 'guarded')
        self.assertEqual(ElementTree.fromstring(reply.body).findtext('ExpectedDigest'), crc32(LARGE)[1])

    def test_chunks_elsewhere(self):
        headers = self.signer.headers('DELETE', '/bodies/k', payload=SIGNED_CHUNKS, extra={'x-amz-decoded-content-length': '0'})
        self.assertEqual(self.ask('DELETE', '/bodies/k', None, headers).code(), 'InvalidRequest')
        headers = self.signer.headers('PUT', '/bodies2', payload=UNSIGNED_CHUNKS_TRAILER, extra={'x-amz-decoded-content-length': '0'})
        self.assertEqual(self.ask('PUT', '/bodies2', b'0\r\n\r\n', headers).code(), 'InvalidRequest')

    def test_the_connection_lives_on_after_refused_bodies(self):
        connection = self.daemon.connect()
        for _ in range(3):
            refused = self.daemon.request('PUT', '/no-such-bucket-here/k', LARGE[:1000000], connection=connection)
            self.assertEqual(refused.status, 404)
            self.assertIsNone(refused.headers['connection'])
            headers = self.signer.headers('PUT', '/bodies/refused', payload=UNSIGNED_CHUNKS_TRAILER, extra={'x-amz-decoded-content-length': '5'})
            self.assertEqual(self.daemon.request('PUT', '/bodies/refused', b'garbage' * 100000, headers, token=None, connection=connection).status, 400)
            self.assertEqual(self.daemon.request('PUT', '/bodies/fine', b'fine', connection=connection).status, 200)
        connection.close()

    def test_clients_that_send_all_first_hear_why_a_large_body_is_refused(self):
        """They read no answer before their last byte, which nobody wants; the connection closes then."""
        body = b'0123456789abcdef' * 2000000
        damaged = self.signer.headers('PUT', '/bodies/refused', payload=UNSIGNED_CHUNKS_TRAILER, extra={'x-amz-decoded-content-length': '31000000'})
        for target, headers, token, wanted in (
                ('/no-such-bucket-here/k', {}, ROOT_TOKEN, (404, 'NoSuchBucket')),
                ('/bodies/refused', {}, 'wrong', (403, 'InvalidAccessKeyId')),
                ('/bodies/refused', damaged, None, (400, 'IncompleteBody')),
                ('/no-such-bucket-here/k', {'Transfer-Encoding': 'chunked'}, ROOT_TOKEN, (404, 'NoSuchBucket'))):
            with self.subTest(wanted):
                sent = b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body) if 'Transfer-Encoding' in headers else body
                reply = self.daemon.request('PUT', target, sent, headers, token=token)
                self.assertEqual((reply.status, reply.code()), wanted)
                self.assertEqual(reply.headers['connection'], 'close')
                self.assertEqual(reply.headers['server'], 'deltabucket')
                self.assertIn(reply.headers['x-amz-request-id'].encode(), reply.body)


class BodiesOverTls(Bodies):
    tls = True


class Framing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        assert cls.daemon.request('PUT', '/framing').status == 200

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def test_continue_comes_when_the_request_may_go_on(self):
        for value in ('100-continue', '100-Continue'):
            with Raw(self.daemon) as raw:
                raw.head('PUT', '/framing/asked', f'Expect: {value}', 'Content-Length: 5')
                self.assertEqual(raw.reply()[0], 100)
                raw.send('hello')
                self.assertEqual(raw.reply()[0], 200)

    def test_no_continue_when_it_may_not(self):
        huge = str(6 << 30)
        table = [
            ('/framing/k', ['Content-Length: 5'], None, 403, 'AccessDenied'), ('/framing/k', ['Content-Length: 5'], 'wrong', 403, 'InvalidAccessKeyId'),
            ('/no-such-bucket-here/k', ['Content-Length: 5'], ROOT_TOKEN, 404, 'NoSuchBucket'),
            ('/framing/k', ['Content-Length: 5', 'If-Match: "x"'], ROOT_TOKEN, 404, 'NoSuchKey'),
            ('/framing/k', [f'Content-Length: {huge}'], ROOT_TOKEN, 400, 'EntityTooLarge'),
            ('/framing/k', ['Content-Length: 5', 'Content-MD5: bad'], ROOT_TOKEN, 400, 'InvalidDigest'),
            ('/framing/k', ['Content-Length: 5', 'x-amz-content-sha256: bad'], ROOT_TOKEN, 400, 'InvalidArgument'),
        ]
        for target, headers, token, status, code in table:
            with Raw(self.daemon) as raw:
                raw.head('PUT', target, 'Expect: 100-continue', *headers, token=token)
                got, reply_headers, body = raw.reply()
                self.assertEqual((got, code_of(body)), (status, code), (target, headers))
                self.assertEqual(reply_headers['connection'].lower(), 'close')
                self.assertTrue(raw.is_closed())

    def test_content_without_room_is_refused_before_it_comes(self):
        """No disk here has five tebibytes to spare; small bodies that are no content need none."""
        with Daemon(tls=False, arguments=['--put-max', str(5 << 40)]) as daemon:
            daemon.request('PUT', '/full')
            for more in ([], ['Expect: 100-continue']):
                with Raw(daemon) as raw:
                    raw.head('PUT', '/full/k', f'Content-Length: {5 << 40}', *more)
                    status, headers, body = raw.reply()
                    self.assertEqual((status, code_of(body), headers['connection']), (507, 'InsufficientStorage', 'close'))
            self.assertEqual(daemon.request('PUT', '/full/k', b'small').status, 200)

    def test_other_expectations_are_passed_over(self):
        for value in ('200', 'nonsense', '100-continued'):
            with Raw(self.daemon) as raw:
                raw.head('PUT', '/framing/expecting', f'Expect: {value}', 'Content-Length: 5')
                raw.send('hello')
                self.assertEqual(raw.reply()[0], 200, value)

    def test_lengths_that_are_none(self):
        for header in ('Content-Length: -5', 'Content-Length: five', 'Content-Length: 5, 6', 'Content-Length: +5', 'Content-Length:',
                       'Content-Length: 99999999999999999999999'):
            with Raw(self.daemon) as raw:
                raw.head('PUT', '/framing/lengthless', header)
                raw.send('hello')
                status = int(raw.until(b'\r\n').split()[1])
                self.assertIn(status, (400, 413), header)
        self.assertEqual(self.daemon.request('GET', '/framing/lengthless').status, 404)

    def test_a_put_without_a_length(self):
        with Raw(self.daemon) as raw:
            raw.head('PUT', '/framing/lengthless')
            status, _, body = raw.reply()
            self.assertEqual((status, code_of(body)), (411, 'MissingContentLength'))

    def test_a_cut_body_leaves_nothing(self):
        with Raw(self.daemon) as raw:
            raw.head('PUT', '/framing/cut', 'Content-Length: 10')
            raw.send('hello')
        self.assertEqual(self.daemon.request('GET', '/framing/cut').status, 404)

    def test_too_many_headers(self):
        with Raw(self.daemon) as raw:
            raw.head('GET', '/framing/k', *[f'x-filler-{i}: {"f" * 200}' for i in range(45)])
            status, _, body = raw.reply()
            self.assertEqual((status, code_of(body)), (400, 'RequestHeaderSectionTooLarge'))

    def test_every_reply_names_its_request(self):
        seen = set()
        for method, target in (('GET', '/framing'), ('GET', '/framing/missing'), ('HEAD', '/framing/missing'), ('PATCH', '/framing'), ('GET', '/%zz')):
            got = self.daemon.request(method, target)
            self.assertTrue(got.headers['x-amz-id-2'] and got.headers['date'] and got.headers['server'])
            seen.add(got.headers['x-amz-request-id'])
            if got.body:
                self.assertEqual(len(got.body), int(got.headers['content-length']))
                if got.status >= 400:
                    self.assertEqual(ElementTree.fromstring(got.body).findtext('RequestId'), got.headers['x-amz-request-id'])
        self.assertEqual(len(seen), 5)

    def test_head_answers_have_no_body_and_the_right_length(self):
        self.daemon.request('PUT', '/framing/object', b'12345')
        with Raw(self.daemon) as raw:
            raw.head('HEAD', '/framing/object')
            self.assertIn(b'Content-Length: 5\r\n', raw.until(b'\r\n\r\n'))
            raw.head('HEAD', '/framing/missing')
            self.assertTrue(raw.until(b'\r\n\r\n').startswith(b'HTTP/1.1 404'))
            raw.head('HEAD', '/framing/object', token='wrong')
            self.assertTrue(raw.until(b'\r\n\r\n').startswith(b'HTTP/1.1 403'))
            raw.head('GET', '/framing/object')
            self.assertEqual(raw.reply()[2], b'12345')

    def test_head_bucket_always_names_the_region(self):
        other = self.daemon.add_key('--namespace', 'stranger')
        for target, token, status in (('/framing', ROOT_TOKEN, 200), ('/framing', other['token'], 403), ('/framing', 'wrong', 403), ('/no-such-bucket', ROOT_TOKEN, 404),
                                      ('/framing', None, 403)):
            got = self.daemon.request('HEAD', target, token=token)
            self.assertEqual((got.status, got.headers['x-amz-bucket-region'], got.body), (status, 'us-east-1', b''), target)


if __name__ == '__main__':
    unittest.main()
