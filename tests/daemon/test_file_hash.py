"""One store for all faces: what comes in through S3 in parts, or is stored as a delta, is a file to Xet clients, by the hash that its chunks say."""
import hashlib
import tempfile
import time
import unittest

from tests.daemon.test_derived import key_of, metric, wait_for_swaps
from tests.support import xet
from tests.support.checkpoints import expand_small
from tests.support.daemon import Daemon
from tests.support.s3 import Bucket

STEPS = 3
PART = 5 * 1024 * 1024
PATIENCE = 60


def noise(seed, size):
    return hashlib.shake_256(seed.encode()).digest(size)


def hash_of(pieces):
    """Of a file whose pieces were chunked apart."""
    return xet.text(xet.file_hash([(xet.chunk_hash(chunk), len(chunk)) for piece in pieces for chunk in xet.chunks(piece)]))


def records(body):
    """The contents of records as a Xet client is shown them; the server's own are plain."""
    found, at = [], 0
    while at < len(body):
        stored, scheme, size = int.from_bytes(body[at + 1:at + 4], 'little'), body[at + 4], int.from_bytes(body[at + 5:at + 8], 'little')
        assert (body[at], scheme, stored) == (0, 0, size), body[at:at + 8]
        found.append(body[at + 8:at + 8 + size])
        at += 8 + stored
    assert at == len(body)
    return found


def fetch_term(cas, term, fetches):
    first, end = term['range']['start'], term['range']['end']
    fetch = next(f for f in fetches if f['range']['start'] <= first and end <= f['range']['end'])
    path = fetch['url'][fetch['url'].index('/', len('https://')):]
    reply = cas.daemon.request('GET', path, headers={'Range': f'bytes={fetch["url_range"]["start"]}-{fetch["url_range"]["end"]}'}, token=None)
    assert reply.status in (200, 206), (reply.status, reply.body[:200])
    content = b''.join(records(reply.body)[first - fetch['range']['start']:end - fetch['range']['start']])
    assert len(content) == term['unpacked_length']
    return content


def download(cas, file, byte_range=None):
    reply = cas.reconstruction(xet.raw(file), version=1, byte_range=byte_range)
    assert reply.status == 200, (reply.status, reply.body)
    plan = reply.json()
    return b''.join(fetch_term(cas, term, plan['fetch_info'][term['hash']]) for term in plan['terms'])[plan['offset_into_first_range']:]


class FileHash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.files = []
        for path in expand_small(cls.scratch.name, STEPS)[:STEPS]:
            with open(path, 'rb') as file:
                cls.files.append(file.read())

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def open(self, daemon):
        bucket = Bucket(daemon, 'weights')
        self.addCleanup(bucket.close)
        return bucket

    def hashes(self, daemon):
        """The files of the bucket by their path, as the Hub lists them."""
        reply = daemon.request('GET', '/api/buckets/main/weights/tree?recursive=true', timeout=PATIENCE)
        self.assertEqual(reply.status, 200, reply.body)
        return {entry['path']: entry['xetHash'] for entry in reply.json() if entry['type'] == 'file'}

    def test_parts(self):
        pieces = [noise('one', PART), noise('two', 200_000)]
        with Daemon(tls=False) as daemon:
            bucket = self.open(daemon)
            bucket.upload('parts', pieces)
            etag = bucket.ask('HEAD', 'parts').headers['ETag']
            bucket.copy('weights/parts', 'copy')
            self.assertEqual(bucket.put('single', pieces[1]).status, 200)
            listed = self.hashes(daemon)
            self.assertEqual(listed, {'parts': hash_of(pieces), 'copy': hash_of(pieces), 'single': hash_of(pieces[1:])})
            self.assertEqual(bucket.ask('HEAD', 'parts').headers['ETag'], etag)
            self.assertEqual(bucket.ask('GET', 'parts').body, b''.join(pieces))
            cas = xet.Cas(daemon, 'main/weights', kind='read')
            self.assertEqual(download(cas, listed['parts']), b''.join(pieces))
            daemon.kill()
            daemon.start()
            self.assertEqual(self.hashes(daemon), listed)

    def test_nobody_has_to_ask(self):
        with Daemon(tls=False) as daemon:
            self.open(daemon).upload('parts', [noise('one', PART), b'end'])
            limit = time.monotonic() + PATIENCE
            while metric(daemon, 'file_hashes_total') == 0:
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.05)

    def test_stored_as_deltas(self):
        with Daemon(tls=False, arguments=['--xet-promise', '0', '--xet-answer-promise', '0']) as daemon:
            bucket = self.open(daemon)
            for step, file in enumerate(self.files):
                self.assertEqual(bucket.put(key_of(step), file).status, 200)
            before = self.hashes(daemon)
            wait_for_swaps(daemon, STEPS - 1)
            self.assertEqual(self.hashes(daemon), before)
            cas = xet.Cas(daemon, 'main/weights', kind='read')
            for again in range(2):
                for step, file in enumerate(self.files):
                    got = download(cas, before[key_of(step)])
                    self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(file).digest(), step)
                self.assertEqual(metric(daemon, 'xet_made_files_total'), STEPS - 1, again)
            part = download(cas, before[key_of(1)], byte_range='100001-200000')
            self.assertEqual(part[:100_000], self.files[1][100_001:200_001])
            daemon.stop()
            daemon.start()
            cas = xet.Cas(daemon, 'main/weights', kind='read')
            self.assertEqual(download(cas, before[key_of(2)]), self.files[2])
            self.assertEqual(metric(daemon, 'xet_made_files_total'), 0)  # it was kept
            self.assertEqual(self.open(daemon).ask('GET', key_of(2)).body, self.files[2])

    def test_none_may_be_kept(self):
        with Daemon(tls=False, arguments=['--xet-made-max', '0']) as daemon:
            bucket = self.open(daemon)
            for step in range(2):
                bucket.put(key_of(step), self.files[step])
            wait_for_swaps(daemon, 1)
            cas = xet.Cas(daemon, 'main/weights', kind='read')
            listed = self.hashes(daemon)
            self.assertEqual(download(cas, listed[key_of(0)]), self.files[0])
            reply = cas.reconstruction(xet.raw(listed[key_of(1)]), version=1)
            self.assertGreaterEqual(reply.status, 400)
            self.assertIn('xet_made_max', reply.json()['error'])
            self.assertEqual(daemon.request('GET', f'/buckets/main/weights/resolve/{key_of(1)}').body, self.files[1])


if __name__ == '__main__':
    unittest.main()
