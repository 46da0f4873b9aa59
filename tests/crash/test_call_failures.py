"""Any one call of the server on its files fails, or all from one on: what it has confirmed is there after the next start, and the store is sound.

A sync that fails also loses what it was to sync, and later ones succeed: a server that took that for success would have lost data
(tests/support/disk_failer.c). DELTABUCKET_TORTURE=1 makes it 60 calls of each kind instead of 2.
"""
import contextlib
import errno
import hashlib
import http.client
import json
import os
import random
import shutil
import struct
import tempfile
import signal
import unittest

from tests.support.daemon import BUILD, Daemon
from tests.support.disk_log import is_plain_build
from tests.support.runs import Run, read_step
from tests.support.s3 import tree

CALLS = 60 if os.environ.get('DELTABUCKET_TORTURE') else 2
# kind of call, error (0: half of a write), whether all later ones fail too
CASES = [('write', errno.ENOSPC, True), ('write', errno.EIO, False), ('write', 0, False), ('write', errno.EROFS, True), ('sync', errno.EIO, False),
         ('sync', errno.EIO, True), ('open', errno.EMFILE, False), ('open', errno.EMFILE, True), ('name', errno.EIO, False), ('length', errno.EIO, False),
         ('read', errno.EIO, False)]
BODY = random.Random('calls').randbytes(6 << 20)
CUT = (OSError, http.client.HTTPException)


@contextlib.contextmanager
def not_started():
    daemon = Daemon(tls=False)
    try:
        yield daemon
    finally:
        daemon.__exit__()


class Load:
    """Asks for changes one after the other, and notes which values each key may have: the confirmed one, and after it those without an answer."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.allowed, self.steps = {}, []
        self.key, self.revoked = None, None

    def run(self):
        self.ask('PUT', '/box')
        for key, body in (('a', BODY[:20]), ('b', BODY[:5_000]), ('c', BODY[7:90_000]), ('d', BODY[:3_000_000]), ('a', BODY[20:60]), ('c2', BODY[7:90_000])):
            self.change(key, body)
        self.change('b', None)
        self.change('e', BODY[7:90_000], headers={'x-amz-copy-source': '/box/c'})
        self.upload('f')
        with contextlib.suppress(AssertionError, *CUT):
            run = Run(self.daemon, 'r', bucket='box')
            for step in range(3):
                if run.publish(step).status == 201:
                    self.steps.append(step)
        self.key, gone = self.add_key(), self.add_key()
        if gone and (reply := self.ask('DELETE', f'/-/keys/{gone["key_id"]}')) is not None and reply.status == 204:
            self.revoked = gone
        self.ask('POST', '/-/gc', json.dumps({'live_percent': 100}))
        self.change('g', BODY[100:70_000])

    def add_key(self):
        reply = self.ask('POST', '/-/keys', json.dumps({'grants': ['box=read']}))
        return reply.json() if reply is not None and reply.status == 201 else None

    def ask(self, method, target, body=None, headers=None):
        try:
            return self.daemon.request(method, target, body, headers, timeout=60)
        except CUT:
            return None

    def change(self, key, body, headers=None):
        reply = self.ask('DELETE' if body is None else 'PUT', f'/box/{key}', None if headers else body, headers)
        self.note(key, None if body is None else hashlib.sha256(body).hexdigest(), reply)

    def note(self, key, value, reply):
        """A refusal (4xx) has changed nothing."""
        if reply is not None and reply.status in (200, 204):
            self.allowed[key] = {value}
        elif reply is None or reply.status >= 500:
            self.allowed.setdefault(key, {None}).add(value)

    def upload(self, key):
        begun = self.ask('POST', f'/box/{key}?uploads')
        if begun is None or begun.status != 200:
            return
        upload = tree(begun).findtext('UploadId')
        parts = (BODY[:5 << 20], BODY[:1_000])
        replies = [self.ask('PUT', f'/box/{key}?uploadId={upload}&partNumber={number}', part) for number, part in enumerate(parts, 1)]
        if any(reply is None or reply.status != 200 for reply in replies):
            return
        listed = ''.join(f'<Part><PartNumber>{number}</PartNumber><ETag>{reply.headers["ETag"]}</ETag></Part>' for number, reply in enumerate(replies, 1))
        reply = self.ask('POST', f'/box/{key}?uploadId={upload}', f'<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>')
        done = reply is not None and reply.status == 200 and b'<Error>' not in reply.body
        self.allowed.setdefault(key, {None})
        self.allowed[key] = ({hashlib.sha256(b''.join(parts)).hexdigest()} if done else self.allowed[key] | {hashlib.sha256(b''.join(parts)).hexdigest()})


@unittest.skipUnless(is_plain_build(), 'a server with a sanitizer does not stand another library that is loaded first')
class CallFailures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.totals = {}
        cls.scratch = tempfile.mkdtemp(prefix='deltabucket-test-')
        cls.addClassCleanup(shutil.rmtree, cls.scratch)

    def run_load(self, daemon, kind, number, failure=0, stays=False):
        """Gives the load, and how many calls there were. The start may fail too."""
        count = os.path.join(self.scratch, 'count')
        with contextlib.suppress(FileNotFoundError):
            os.remove(count)
        own = {'LD_PRELOAD': os.path.join(BUILD, 'disk_failer.so'), 'DISK_FAILER_FOLDER': daemon.folder, 'DISK_FAILER_KIND': kind,
               'DISK_FAILER_NUMBER': str(number), 'DISK_FAILER_ERRNO': str(failure), 'DISK_FAILER_COUNT': count, **({'DISK_FAILER_STAYS': '1'} if stays else {})}
        plain = daemon.environment
        daemon.environment = {**plain, **own}
        load = Load(daemon)
        try:
            daemon.start()
            load.run()
            daemon.await_end(signal.SIGTERM)
        except RuntimeError:
            pass  # the start failed
        finally:
            daemon.environment = plain
        with open(count, 'rb') as file:
            return load, struct.unpack('<Q', file.read(8))[0]

    def total(self, kind):
        if kind not in self.totals:
            with not_started() as daemon:
                load, self.totals[kind] = self.run_load(daemon, kind, 0)
                self.assertEqual((len(load.allowed), len(load.steps)), (8, 3))
                self.assertTrue(load.key and load.revoked)
                self.assertTrue(all(len(values) == 1 for values in load.allowed.values()), load.allowed)
        return self.totals[kind]

    def is_right(self, daemon, load):
        for key, values in load.allowed.items():
            try:
                got = daemon.request('GET', f'/box/{key}')
            except CUT as cut:
                self.fail(f'{key} cannot be read: {cut}')
            self.assertIn(got.status, (200, 404), (key, got.body))
            self.assertIn(hashlib.sha256(got.body).hexdigest() if got.status == 200 else None, values, key)
        for step in load.steps:
            read_step(self, daemon, 'box/r', step)
        for key, statuses in ((load.key, (200, 404)), (load.revoked, (403,))):
            if key:
                self.assertIn(daemon.request('GET', '/box/g', token=key['token']).status, statuses)

    def test_a_call_that_fails_loses_nothing(self):
        source = random.Random(3)
        for kind, failure, stays in CASES:
            for _ in range(CALLS * (3 if kind == 'sync' else 1)):
                number = source.randint(1, self.total(kind))
                with self.subTest(kind=kind, failure=failure, stays=stays, number=number), not_started() as daemon:
                    load, _ = self.run_load(daemon, kind, number, failure, stays)
                    daemon.start()
                    self.is_right(daemon, load)
                    daemon.stop()
                    daemon.check_store()


if __name__ == '__main__':
    unittest.main()
