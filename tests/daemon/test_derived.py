"""Full checkpoints that any client uploads are stored as deltas of earlier ones, and nobody notices but the disk."""
import hashlib
import re
import tempfile
import threading
import time
import unittest

from tests.daemon.test_gc import gc, pack_bytes
from tests.support.checkpoints import expand_small
from tests.support.daemon import Daemon, bytes_alone
from tests.support.s3 import Bucket

STEPS = 10
PATIENCE = 120
PART = 5 * 1024 * 1024


def key_of(step):
    return f'ckpt/step_{step:06d}/model.safetensors'


def metric(daemon, name):
    text = daemon.request('GET', '/-/metrics').body.decode()
    return int(re.search(rf'^deltabucket_{name} (\d+)$', text, re.MULTILINE).group(1))


def wait_for_swaps(daemon, count):
    limit = time.monotonic() + PATIENCE
    while metric(daemon, 'derived_swapped_total') < count:
        assert time.monotonic() < limit, f'{metric(daemon, "derived_swapped_total")} of {count} were swapped'
        time.sleep(0.1)


def facts(reply):
    """What a reader is told; not the digest, which a multipart object gets later."""
    names = ('ETag', 'Content-Length', 'Last-Modified', 'Content-Type', 'x-amz-checksum-crc64nvme', 'x-amz-meta-step')
    return {name: reply.headers[name] for name in names}


class Derived(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.files = []
        for path in expand_small(cls.scratch.name, STEPS):
            with open(path, 'rb') as file:
                cls.files.append(file.read())

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def open(self, daemon):
        bucket = Bucket(daemon, 'weights')
        self.addCleanup(bucket.close)
        return bucket

    def put_series(self, bucket, first, last):
        """Gives what a HEAD says of each, before anything happens behind the scenes."""
        said = {}
        for step in range(first, last):
            reply = bucket.put(key_of(step), self.files[step], content_type='application/weights', x_amz_meta_step=str(step))
            self.assertEqual(reply.status, 200)
            said[step] = facts(bucket.ask('HEAD', key_of(step), headers={'x-amz-checksum-mode': 'ENABLED'}))
        return said

    def check(self, bucket, said):
        for step, before in said.items():
            got = bucket.ask('GET', key_of(step), headers={'x-amz-checksum-mode': 'ENABLED'})
            self.assertEqual(hashlib.sha256(got.body).digest(), hashlib.sha256(self.files[step]).digest(), step)
            self.assertEqual(facts(got), before)

    def check_range(self, bucket, step, first, last):
        got = bucket.ask('GET', key_of(step), headers={'Range': f'bytes={first}-{last}'})
        self.assertEqual((got.status, got.body), (206, self.files[step][first:last + 1]), (step, first, last))

    def test_a_series(self):
        with Daemon(tls=False) as daemon:
            bucket = self.open(daemon)
            said = self.put_series(bucket, 0, STEPS)
            plain = pack_bytes(daemon.folder)
            wait_for_swaps(daemon, STEPS - 1)
            self.check(bucket, said)
            gc(daemon)
            self.assertLess(pack_bytes(daemon.folder), plain / 4)
            self.check(bucket, said)
            size = len(self.files[0])
            for step in (1, STEPS - 1):
                for first, last in ((0, 0), (0, size - 1), (7, 8), (size // 2, size // 2 + 99_999), (size - 1, size - 1), (4095, 70_001)):
                    self.check_range(bucket, step, first, last)
                self.assertEqual(bucket.ask('GET', key_of(step), headers={'If-None-Match': said[step]['ETag']}).status, 304)
                self.assertEqual(bucket.ask('GET', key_of(step), headers={'If-Match': '"other"'}).status, 412)
                self.assertEqual(bucket.ask('GET', key_of(step), headers={'Range': f'bytes={size}-'}).status, 416)
            daemon.stop()
            daemon.start()
            bucket = self.open(daemon)
            self.check(bucket, said)

    @bytes_alone
    def test_killed_in_between(self):
        with Daemon(tls=False, arguments=['--derive-rate', '8']) as daemon:
            bucket = self.open(daemon)
            said = self.put_series(bucket, 0, STEPS)
            wait_for_swaps(daemon, 2)
            daemon.kill()
            daemon.start()
            bucket = self.open(daemon)
            self.check(bucket, said)
            wait_for_swaps(daemon, 1)
            daemon.stop()
            daemon.arguments = []
            daemon.start()
            bucket = self.open(daemon)
            said[STEPS] = self.put_series(bucket, STEPS, STEPS + 1)[STEPS]
            wait_for_swaps(daemon, 1)
            limit = time.monotonic() + PATIENCE
            while metric(daemon, 'derive_waiting') > 0 and time.monotonic() < limit:
                time.sleep(0.1)
            gc(daemon)
            self.assertLess(pack_bytes(daemon.folder), STEPS * len(self.files[0]) / 4)
            self.check(bucket, said)

    def test_deleting_the_first_ones(self):
        with Daemon(tls=False) as daemon:
            bucket = self.open(daemon)
            said = self.put_series(bucket, 0, 5)
            wait_for_swaps(daemon, 4)
            for step in (0, 1):
                bucket.ask('DELETE', key_of(step))
                del said[step]
            bucket.put(key_of(2), b'something else')
            del said[2]
            gc(daemon)
            self.check(bucket, said)
            self.assertEqual(bucket.copy(f'weights/{key_of(4)}', 'copy').status, 200)
            for step in (3, 4):
                bucket.ask('DELETE', key_of(step))
            gc(daemon)
            self.assertEqual(bucket.ask('GET', 'copy').body, self.files[4])
            for key in (key_of(2), 'copy'):
                bucket.ask('DELETE', key)
            self.assertEqual(bucket.ask('DELETE').status, 204)
            gc(daemon)
            gc(daemon)
            self.assertLess(pack_bytes(daemon.folder), 100_000)

    def test_readers_while_it_happens(self):
        wrong = []
        with Daemon(tls=False) as daemon:
            bucket = self.open(daemon)
            self.put_series(bucket, 0, 6)
            done = threading.Event()

            def read(step):
                own = Bucket(daemon, 'weights')
                while not done.is_set():
                    if own.ask('GET', key_of(step)).body != self.files[step]:
                        wrong.append(step)
                own.close()

            readers = [threading.Thread(target=read, args=(step,)) for step in range(1, 6)]
            for reader in readers:
                reader.start()
            try:
                wait_for_swaps(daemon, 5)
                gc(daemon)
            finally:
                done.set()
                for reader in readers:
                    reader.join()
        self.assertEqual(wrong, [])

    @bytes_alone
    def test_multipart_uploads_keep_their_parts(self):
        """Nine copies of the weights, one behind the other, as one tensor: large enough for three parts."""
        header = b'{"w":{"dtype":"BF16","shape":[%d],"data_offsets":[0,%d]}}'
        with Daemon(tls=False) as daemon:
            bucket = self.open(daemon)
            for step in range(2):
                weights = self.files[step][-1_200_000:] * 9
                head = header % (len(weights) // 2, len(weights))
                head += b' ' * (-len(head) % 8)
                body = len(head).to_bytes(8, 'little') + head + weights
                pieces = [body[at:at + PART] for at in range(0, len(body), PART)]
                self.assertEqual(bucket.upload(key_of(step), pieces, x_amz_checksum_algorithm='CRC32').status, 200)
            attributes = {'x-amz-object-attributes': 'ETag,Checksum,ObjectParts,StorageClass,ObjectSize'}
            before = bucket.ask('GET', key_of(1), query='attributes', headers=attributes)
            wait_for_swaps(daemon, 1)
            after = bucket.ask('GET', key_of(1), query='attributes', headers=attributes)
            self.assertIn(b'<PartNumber>3</PartNumber>', before.body)
            self.assertEqual(after.body, before.body)
            self.assertEqual(bucket.ask('GET', key_of(1)).body, body)
            for number, piece in enumerate(pieces, 1):
                got = bucket.ask('GET', key_of(1), query={'partNumber': number})
                self.assertEqual((got.status, got.body == piece, got.headers['x-amz-mp-parts-count']), (206, True, '3'))

    @bytes_alone
    def test_off(self):
        with Daemon(tls=False, arguments=['--derive=no']) as daemon:
            bucket = self.open(daemon)
            said = self.put_series(bucket, 0, 3)
            time.sleep(2.5)
            self.assertEqual((metric(daemon, 'derived_swapped_total'), metric(daemon, 'derive_waiting')), (0, 0))
            self.check(bucket, said)


if __name__ == '__main__':
    unittest.main()
