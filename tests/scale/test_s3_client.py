"""The S3 client of base/net/s3 against services as they are: Ceph's gateway, and deltabucketd over TLS."""
import contextlib
import hashlib
import os
import random
import shutil
import socket
import threading
import time
import unittest

from tests.support import ceph
from tests.support.ceph import Ceph
from tests.support.daemon import ROOT_ID, ROOT_SECRET, Daemon
from tests.support.s3_tool import Refused, S3Tool

PREFIX = 'of the/house+1/'
PART = 5 << 20
NAMES = ('plain', 'packs/00/0123.pack', 'a b+c%', 'é/ü€', "~!*'()", '#?&=;:@$,', '"<>\\^`{|}', 'space at the end ', '..dots', 'a//b', '%2F', 'ctl\x01\x1f', 'n' * 900)


class Cases:
    """`service`: has endpoint and request; `tool`: for the bucket `box` and PREFIX."""

    def refused(self, kind, call, *arguments):
        with self.assertRaises(Refused) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.kind, kind, caught.exception.text)
        self.assertNotIn(self.secret, caught.exception.text)
        return caught.exception.text

    def other_tool(self, endpoint=None, bucket='box', secret=None, prefix=PREFIX):
        return S3Tool(endpoint or self.service.endpoint, bucket, self.key_id, secret or self.secret, prefix, self.ca)

    def setUp(self):
        for name in self.tool.list():
            self.tool.remove(name)

    def test_names_of_all_kinds(self):
        for i, name in enumerate(NAMES):
            with self.subTest(name):
                body = b'%d' % i * (i + 2)
                self.tool.put(name, body)
                self.assertEqual((self.tool.get(name), self.tool.head(name)), (body, len(body)))
                self.assertEqual(self.tool.range(name, 1, len(body) - 1), (body[1:], len(body)))
        self.assertEqual(sorted(self.tool.list()), sorted(NAMES))
        self.assertEqual(sorted(self.tool.list(page=3)), sorted(NAMES))
        self.assertEqual(list(self.tool.list('a b+')), ['a b+c%'])
        now = time.time() * 1000
        self.assertTrue(all(abs(changed - now) < 600_000 for _, changed in self.tool.list().values()))
        for name in NAMES:
            self.tool.remove(name)
            self.tool.remove(name)
        self.assertEqual(self.tool.list(), {})

    def test_what_is_not_there(self):
        for call in (self.tool.get, self.tool.head):
            self.refused('not_found', call, 'nothing')
        self.refused('not_found', self.tool.range, 'nothing', 0, 1)
        nowhere = self.other_tool(bucket='nowhere')
        for call in (nowhere.get, nowhere.head, nowhere.remove, nowhere.list):
            self.refused('upstream', call, 'nothing')

    def test_ranges_are_exact(self):
        body = random.Random(1).randbytes(300_000)
        self.tool.put('r', body)
        for offset, length in ((0, 1), (0, 300_000), (299_999, 1), (100_000, 65_536)):
            self.assertEqual(self.tool.range('r', offset, length), (body[offset:offset + length], 300_000))
        for offset, length in ((299_999, 2), (300_000, 1), (0, 300_001), (1 << 40, 4)):
            self.refused('corrupt', self.tool.range, 'r', offset, length)

    def test_a_wrong_secret_is_denied(self):
        wrong = self.other_tool(secret='not-the-secret')
        self.assertNotIn('not-the-secret', self.refused('denied', wrong.put, 'a', b'x'))
        self.refused('denied', wrong.list)

    def test_an_upload_in_parts(self):
        parts = [random.Random(i).randbytes(size) for i, size in enumerate((PART, PART + 1, 1000))]
        size = sum(map(len, parts))
        upload = self.tool.begin('packs/big +')
        other = self.tool.begin('packs/other')
        self.tool.part('packs/big +', upload, 2, b'another')
        etags = [self.tool.part('packs/big +', upload, number, part) for number, part in enumerate(parts, 1)]
        for page in (None, 1):
            listed = self.tool.uploads('packs/', page=page)
            self.assertEqual(sorted(row[:2] for row in listed), sorted([('packs/big +', upload), ('packs/other', other)]))
            self.assertTrue(all(abs(row[2] - time.time() * 1000) < 600_000 for row in listed))
        self.refused('not_found', self.tool.head, 'packs/big +')
        self.tool.complete('packs/big +', upload, size, etags)
        self.assertEqual(self.tool.get('packs/big +'), b''.join(parts))
        self.assertEqual(self.tool.range('packs/big +', PART - 1, 3), (parts[0][-1:] + parts[1][:2], size))
        self.tool.complete('packs/big +', upload, size, etags)  # as after an answer that was lost
        self.tool.abort('packs/other', other)
        self.tool.abort('packs/other', other)
        self.refused('not_found', self.tool.part, 'packs/other', other, 1, b'late')
        self.refused('not_found', self.tool.complete, 'packs/other', other, 4, etags[:1])
        self.assertEqual(self.tool.uploads(), [])
        self.assertEqual(self.tool.get('packs/big +'), b''.join(parts))

    def test_pages_of_uploads_of_one_name(self):
        ids = sorted(self.tool.begin(name) for name in ('u', 'u', 'v +', 'w'))
        self.assertEqual(sorted(row[1] for row in self.tool.uploads(page=1)), ids)
        for name, upload, _ in self.tool.uploads():
            self.tool.abort(name, upload)

    def test_many_at_once(self):
        self.tool.many(12, 40, random.Random(1).randbytes(100_000))
        self.assertEqual([size for size, _ in self.tool.list('many-').values()], [100_000] * 40)


class OnCeph(Cases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        begun = time.monotonic()
        cls.service = cls.enterClassContext(Ceph())
        print(f'Ceph was there after {time.monotonic() - begun:.1f} s')
        cls.key_id, cls.secret, cls.ca = ceph.KEY_ID, ceph.SECRET, None
        assert cls.service.request('PUT', '/box').status == 200
        cls.tool = S3Tool(cls.service.endpoint, 'box', cls.key_id, cls.secret, PREFIX)

    def test_bodies_that_change_on_the_way_are_refused(self):
        """The signature has the sum of the body, so it cannot be changed beside it."""
        right = b'the bytes that were sent'
        digests = {body: hashlib.sha256(body).hexdigest().encode() for body in (right, right[::-1])}
        with Changing(self.service.port, {right: right[::-1]}) as changing:
            self.refused('upstream', self.other_tool(f'http://127.0.0.1:{changing.port}').put, 'changed', right)
        with Changing(self.service.port, {right: right[::-1], digests[right]: digests[right[::-1]]}) as changing:
            self.refused('denied', self.other_tool(f'http://127.0.0.1:{changing.port}').put, 'changed', right)
        self.assertEqual(self.tool.list(), {})
        with Changing(self.service.port, {}) as honest:
            self.other_tool(f'http://127.0.0.1:{honest.port}').put('unchanged', right)
        self.assertEqual(self.tool.get('unchanged'), right)

    def test_a_gateway_that_is_away_is_busy(self):
        self.tool.put('a', b'before')
        self.service.stop_gateway()
        self.refused('busy', self.tool.get, 'a')
        self.refused('busy', self.tool.put, 'a', b'during')
        self.service.start_gateway()
        self.assertEqual(self.tool.get('a'), b'before')

    def test_a_backup_comes_back(self):
        held = {f'k{i}': random.Random(i).randbytes(size) for i, size in enumerate((10, 100_000, 3_000_000))}
        environment = dict(AWS_ACCESS_KEY_ID=self.key_id, AWS_SECRET_ACCESS_KEY=self.secret, AWS_ENDPOINT_URL=self.service.endpoint)
        with Daemon(tls=False, environment=environment) as daemon, contextlib.ExitStack() as stack:
            daemon.request('PUT', '/box')
            for key, body in held.items():
                daemon.request('PUT', f'/box/{key}', body)
            for _ in range(2):
                done = daemon.command('backup', '--data', daemon.folder, '--to', 's3://box/' + PREFIX, '--keep', '1', '--json')
                self.assertEqual(done.returncode, 0, done.stderr)
            other = Daemon(tls=False, environment=environment)
            stack.callback(other.__exit__)
            done = other.command('restore', '--from', 's3://box/' + PREFIX, '--data', other.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            shutil.copy(os.path.join(daemon.folder, 'master.key'), other.folder)
            other.start()
            for key, body in held.items():
                self.assertEqual(other.request('GET', f'/box/{key}').body, body)


class OnDeltabucket(Cases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(Daemon())
        cls.key_id, cls.secret, cls.ca = ROOT_ID, ROOT_SECRET, cls.service.ca
        cls.service.request('PUT', '/box')
        cls.tool = S3Tool(cls.service.endpoint, 'box', cls.key_id, cls.secret, PREFIX, cls.ca)

    def test_another_ca_is_not_trusted(self):
        with Daemon() as other:
            strange = S3Tool(self.service.endpoint, 'box', self.key_id, self.secret, PREFIX, other.ca)
            self.refused('untrusted', strange.put, 'a', b'x')


class Changing:
    """A relay that replaces bytes on their way to the service. What is replaced comes in one piece: requests are small."""

    def __init__(self, port, changes):
        self.target, self.changes = ('127.0.0.1', port), changes
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.relay(self.listener.accept()[0])

    def relay(self, client):
        with client, socket.create_connection(self.target) as service:
            back = threading.Thread(target=self.pump, args=(service, client, {}))
            back.start()
            self.pump(client, service, self.changes)
            back.join()

    @staticmethod
    def pump(source, target, changes):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                for old, new in changes.items():
                    piece = piece.replace(old, new)
                target.sendall(piece)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


if __name__ == '__main__':
    unittest.main()
