"""A disk that takes no writes: reads go on, changes get 503 with a sentence, and what is wrong is told."""
import functools
import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

from tests.support.daemon import BUILD, Daemon
from tests.support.disk_log import is_plain_build
from tests.support.runs import Run, read_step
from tests.support.skips import needs_mount
from tests.support.xet import Cas, chunk_hash, chunks, file_hash

BODIES = {'inline': 300, 'small': 50_000, 'large': 3_000_000}


def put_all(test, daemon, bucket='read'):
    source = random.Random(test.id())
    daemon.request('PUT', f'/{bucket}')
    test.objects = {f'/{bucket}/{name}': source.randbytes(size) for name, size in BODIES.items()}
    for target, body in test.objects.items():
        test.assertEqual(daemon.request('PUT', target, body).status, 200)
    test.assertEqual(Run(daemon, 'r').publish(0).status, 201)


@functools.cache
def xet_hash(body):
    return file_hash([(chunk_hash(piece), len(piece)) for piece in chunks(body)])


def reads_all(test, daemon):
    """By each face."""
    for target, body in test.objects.items():
        got = daemon.request('GET', target)
        test.assertEqual((got.status, got.body), (200, body), target)
        hub, name = target.rsplit('/', 1)
        got = daemon.request('GET', f'/buckets/main{hub}/resolve/{name}')
        test.assertEqual((got.status, got.body), (200, body), target)
        test.assertEqual(Cas(daemon, f'main{hub}', 'read').download(xet_hash(body)), body, target)
    read_step(test, daemon, 'models/r', 0)
    listing = daemon.request('GET', '/read?list-type=2').body.decode()
    test.assertEqual(listing.count('<Key>'), len(test.objects))


def refuses_all(test, daemon):
    for method, target, body in (('PUT', '/read/new', b'1' * 100), ('PUT', '/read/new', b'2' * 60_000), ('PUT', '/read/new', b'3' * 3_000_000),
                                 ('DELETE', '/read/small', None), ('PUT', '/other', None)):
        reply = daemon.request(method, target, body)
        test.assertEqual((reply.status, reply.code()), (503, 'ServiceUnavailable'), (method, target))
        test.assertIn(b'read-only at present', reply.body)
        test.assertNotIn(daemon.folder.encode(), reply.body)
    ready = daemon.request('GET', '/-/ready', token=None)
    test.assertEqual(ready.status, 200)
    test.assertIn(b'read-only: ', ready.body)
    test.assertEqual(daemon.request('GET', '/-/ready?write', token=None).status, 503)
    test.assertIn('deltabucket_read_only 1', daemon.request('GET', '/-/metrics').body.decode())


@unittest.skipUnless(is_plain_build(), 'a server with a sanitizer does not stand another library that is loaded first')
class WhileRunning(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.flag = os.path.join(self.daemon.scratch, 'refuse')
        self.daemon.environment.update(LD_PRELOAD=os.path.join(BUILD, 'disk_refuser.so'), DISK_REFUSER_FOLDER=self.daemon.folder,
                                       DISK_REFUSER_FLAG=self.flag)
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()
        put_all(self, self.daemon)

    def refuse(self):
        open(self.flag, 'w').close()

    def await_ready(self, status):
        limit = time.monotonic() + 60
        while self.daemon.request('GET', '/-/ready?write').status != status:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.1)

    def test_reads_go_on_and_writes_come_back(self):
        self.refuse()
        self.assertEqual(self.daemon.request('PUT', '/read/first', b'x' * 1_000_000).status, 503)
        refuses_all(self, self.daemon)
        reads_all(self, self.daemon)
        self.assertIn(' read_only message=', self.daemon.log())
        os.remove(self.flag)
        self.await_ready(200)
        self.assertEqual(self.daemon.request('PUT', '/read/again', b'y' * 100_000).status, 200)
        self.objects['/read/again'] = b'y' * 100_000
        self.assertIn('deltabucket_read_only 0', self.daemon.request('GET', '/-/metrics').body.decode())
        self.daemon.kill()
        self.daemon.start()
        reads_all(self, self.daemon)

    def test_readiness_is_asked_of_the_disk(self):
        """Nobody has to write for it to be noticed."""
        self.await_ready(200)
        self.refuse()
        self.await_ready(503)
        reads_all(self, self.daemon)
        os.remove(self.flag)
        self.await_ready(200)

    def test_a_start_is_read_only_and_changes_nothing(self):
        self.daemon.kill()
        self.start_refused()

    def test_a_start_after_a_clean_stop(self):
        """Then the logs of both databases are gone, and SQLite cannot make them."""
        self.assertEqual(self.daemon.stop(), 0)
        self.assertFalse([name for name in os.listdir(self.daemon.folder) if name.endswith('-wal')])
        self.start_refused()

    def start_refused(self):
        self.refuse()
        before = {name: os.stat(os.path.join(at, name)).st_mtime_ns for at, _, names in os.walk(self.daemon.folder) for name in names}
        self.daemon.start()
        reads_all(self, self.daemon)
        refuses_all(self, self.daemon)
        self.assertEqual(self.daemon.stop(), 0)
        after = {name: os.stat(os.path.join(at, name)).st_mtime_ns for at, _, names in os.walk(self.daemon.folder) for name in names}
        self.assertEqual(before, after)
        os.remove(self.flag)
        self.daemon.start()
        reads_all(self, self.daemon)
        self.assertEqual(self.daemon.request('PUT', '/read/again', b'z').status, 200)


@needs_mount
class Mounted(unittest.TestCase):
    def setUp(self):
        self.disk = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.disk)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=200m', 'none', self.disk], check=True)
        self.addCleanup(subprocess.run, ['umount', self.disk], check=True)

    def test_a_read_only_mount(self):
        self.remount_after(lambda daemon: daemon.kill())

    def test_a_read_only_mount_after_a_clean_stop(self):
        self.remount_after(lambda daemon: self.assertEqual(daemon.stop(), 0))

    def remount_after(self, end):
        with Daemon(tls=False, folder=os.path.join(self.disk, 'data')) as daemon:
            put_all(self, daemon)
            end(daemon)
            subprocess.run(['mount', '-o', 'remount,ro', self.disk], check=True)
            daemon.start()
            reads_all(self, daemon)
            refuses_all(self, daemon)
            self.assertEqual(daemon.stop(), 0)
            subprocess.run(['mount', '-o', 'remount,rw', self.disk], check=True)
            daemon.start()
            reads_all(self, daemon)
            self.assertEqual(daemon.request('PUT', '/read/again', b'z').status, 200)


if __name__ == '__main__':
    unittest.main()
