"""hf_xet's transfers: what is sent and what is not, its settings for codecs and API versions, a server that dies or is busy, several clients at once."""
import contextlib
import http.client
import json
import os
import random
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

from tests.support.clients import both_schemes, content, read, tree, write
from tests.support.daemon import ROOT_TOKEN, Daemon
from tests.support.hub import MIDDLE, MISSING, NEWEST, OLDEST, HubCase, hub_program, ready
from tests.support.skips import needs_mount

MIB = 1 << 20


def weights_like(size, seed):
    """Bytes as BF16 weights have them: every other one of a few values, so that codec bg4-lz4 has something to do."""
    chance = random.Random(seed)
    found = bytearray(size)
    found[::2] = chance.randbytes((size + 1) // 2)
    found[1::2] = chance.randbytes(size // 2).translate(bytes(range(60, 64)) * 64)
    return bytes(found)


def text_like(size, seed):
    words = random.Random(seed).choices([b'anchor ', b'delta ', b'bucket ', b'step ', b'weights '], k=size // 5)
    return b''.join(words)[:size]


class XetCase(HubCase):
    def sent(self, pattern='/xorbs/'):
        """Body bytes of this client's POSTs since the test began."""
        return sum(call['received'] for call in self.requests(pattern, 'POST'))

    def s3(self, method, path, body=None, **options):
        reply = self.daemon.request(method, path, body, **options)
        self.assertLess(reply.status, 300, reply.body)
        return reply


@unittest.skipUnless(ready(NEWEST), MISSING)
@both_schemes
class HubXet(XetCase):
    version = NEWEST

    def test_codecs(self):
        bucket = self.new_bucket('codecs')
        sizes = {}
        for number, policy in enumerate(('none', 'lz4', 'bg4-lz4', 'auto')):
            files = {f'{policy}/weights': weights_like(1_500_001, number), f'{policy}/text': text_like(500_003, number), f'{policy}/noise': content(300_000, number)}
            driver = self.fresh_driver(policy, HF_XET_XORB_COMPRESSION_POLICY=policy)
            before = self.sent()
            self.upload(bucket, files, driver)
            sizes[policy] = self.sent() - before
            for name, data in files.items():
                self.assertSame(self.download(bucket, name), data)
                self.assertSame(self.s3('GET', f'/codecs/{name}').body, data)
        self.assertGreater(sizes['none'], sizes['lz4'])
        self.assertGreater(sizes['lz4'], sizes['bg4-lz4'])

    def test_versions_of_the_api(self):
        for version, other in (('1', '2'), ('2', '1')):
            bucket = self.new_bucket(f'api-{version}')
            driver = self.fresh_driver(f'api-{version}', HF_XET_CLIENT_RECONSTRUCTION_API_VERSION=version, HF_XET_CLIENT_SHARD_API_VERSION=version)
            self.setUp()
            data = content(2_000_000, int(version))
            self.upload(bucket, {'file': data, 'empty': b''}, driver)
            self.assertSame(self.download(bucket, 'file', driver), data)
            for what in ('reconstructions', 'shards'):
                self.assertTrue(self.requests(f'/v{version}/{what}'))
                self.assertFalse(self.requests(f'/v{other}/{what}'))

    def test_many_ranges_in_one_request(self):
        bucket = self.new_bucket('ranges')
        base = content(14 * MIB)
        self.upload(bucket, {'base': base})
        pieces = b''.join(base[at * MIB:(at + 2) * MIB] for at in (0, 4, 8, 12))
        self.upload(bucket, {'pieces': pieces})
        fetches = {}
        for name, value in (('one', '0'), ('many', '1')):
            reader = self.fresh_driver(f'ranges-{name}', HF_XET_CLIENT_ENABLE_MULTIRANGE_FETCHING=value)
            before = len(self.requests('/fetch/'))
            self.assertSame(self.download(bucket, 'pieces', reader), pieces)
            fetches[name] = len(self.requests('/fetch/')) - before
        self.assertLess(fetches['many'], fetches['one'])

    def test_several_xorbs(self):
        bucket = self.new_bucket('large')
        path, data = self.file('large', 140 * MIB)
        self.hub.batch_bucket_files(bucket, add=[(path, 'large')])
        self.assertGreaterEqual(len(self.requests('/xorbs/', 'POST')), 3)
        self.hub.download_bucket_files(bucket, files=[('large', self.path('large-back'))])
        with open(self.path('large-back'), 'rb') as back:
            self.assertSame(back.read(), data)
        os.remove(self.path('large-back'))
        start = 99 * MIB + 17
        self.assertSame(self.own.fs_read(f'buckets/{bucket}/large', start, 70_000), data[start:start + 70_000])
        reply = self.s3('GET', '/large/large', headers={'Range': f'bytes={start}-{start + 69_999}'})
        self.assertSame(reply.body, data[start:start + 70_000])

    def test_telemetry_is_answered(self):
        bucket = self.new_bucket('telemetry')
        self.hub.batch_bucket_files(bucket, add=[(b'counted', 'counted')])
        reports = self.requests('/v1/telemetry', 'POST')
        self.assertTrue(reports)
        self.assertEqual({report['status'] for report in reports}, {200})
        quiet = self.new_driver(HF_HUB_DISABLE_TELEMETRY='1')
        self.setUp()
        quiet.api.batch_bucket_files(bucket, add=[(b'not counted', 'quiet')])
        self.assertEqual(self.requests('/v1/telemetry'), [])

    def test_a_key_that_is_revoked(self):
        key = self.daemon.add_key()
        bucket = self.new_bucket('revoked')
        driver = self.fresh_driver('revoked', HF_TOKEN=key['token'])
        driver.api.batch_bucket_files(bucket, add=[(b'before', 'before')])
        self.daemon.admin('keys', 'revoke', key['key_id'])
        with self.fails('Exception'):
            driver.api.batch_bucket_files(bucket, add=[(b'after', 'after')])
        with self.fails('HfHubHTTPError', 401):
            driver.api.bucket_info(bucket)
        self.assertFiles(bucket, {'before': b'before'})


@unittest.skipUnless(ready(NEWEST), MISSING)
class HubDedup(XetCase):
    """What the store has already is not sent, whichever way it came."""
    version = NEWEST

    def test_content_that_came_through_s3(self):
        bucket, data = self.new_bucket('dedup-s3'), content(9_000_000, 1)
        self.s3('PUT', '/dedup-s3/whole', data)
        driver = self.fresh_driver('dedup-s3')
        self.upload(bucket, {'again': data}, driver)
        self.assertLess(self.sent(), 150_000)
        self.assertFiles(bucket, {'whole': data, 'again': data})

    def test_content_of_another_bucket(self):
        first, second, data = self.new_bucket('dedup-a'), self.new_bucket('dedup-b'), content(4_000_000, 2)
        self.upload(first, {'file': data})
        before = self.sent()
        self.upload(second, {'file': data}, self.fresh_driver('dedup-b'))
        self.assertLess(self.sent() - before, 150_000)
        self.assertFiles(second, {'file': data})

    def test_a_changed_part(self):
        bucket, data = self.new_bucket('dedup-part'), content(20_000_000, 3)
        self.upload(bucket, {'file': data})
        before = self.sent()
        changed = data[:9_000_000] + content(400_000, 4) + data[9_400_000:]
        self.upload(bucket, {'file': changed}, self.fresh_driver('dedup-part'))
        self.assertLess(self.sent() - before, 1_200_000)
        self.assertFiles(bucket, {'file': changed})

    def test_an_inserted_part(self):
        bucket, data = self.new_bucket('dedup-insert'), content(20_000_000, 5)
        self.upload(bucket, {'file': data})
        before = self.sent()
        longer = data[:7_000_001] + content(MIB, 6) + data[7_000_001:]
        self.upload(bucket, {'file': longer}, self.fresh_driver('dedup-insert'))
        self.assertLess(self.sent() - before, 1_800_000)
        self.assertFiles(bucket, {'file': longer})

    def test_a_xorb_that_is_here_already(self):
        """A client with empty caches that asks for no chunks builds the same xorb again: the answer to its grant request is that it is stored."""
        bucket, data = self.new_bucket('dedup-grant'), content(3_000_000, 9)
        self.upload(bucket, {'file': data})
        before = self.sent()
        driver = self.fresh_driver('dedup-grant', HF_XET_DEDUPLICATION_GLOBAL_DEDUP_QUERY_ENABLED='false')
        self.upload(bucket, {'again': data}, driver)
        self.assertEqual(self.sent() - before, 0)
        self.assertIn(200, {call['status'] for call in self.requests('/xorb-grants/')})
        self.assertFiles(bucket, {'file': data, 'again': data})

    def test_a_xorb_that_is_damaged(self):
        """Somebody reads it in vain; a client that sends it once more is told to, and mends the files of others."""
        bucket, data = self.new_bucket('damaged'), content(3_000_000, 11)
        self.upload(bucket, {'file': data})
        self.flip_byte(data[1_000_000:1_000_064])
        with self.assertRaises(http.client.HTTPException):
            self.daemon.request('GET', '/damaged/file')
        driver = self.fresh_driver('damaged', HF_XET_DEDUPLICATION_GLOBAL_DEDUP_QUERY_ENABLED='false')
        self.upload(bucket, {'again': data}, driver)
        self.assertIn(404, {call['status'] for call in self.requests('/xorb-grants/')})
        self.assertFiles(bucket, {'file': data, 'again': data})
        self.assertSame(self.s3('GET', '/damaged/file').body, data)

    def flip_byte(self, near):
        """One of those bytes, in the pack that holds them."""
        for folder, _, names in os.walk(os.path.join(self.daemon.folder, 'packs')):
            for path in (os.path.join(folder, name) for name in names if name.endswith('.pack')):
                with open(path, 'r+b') as pack:
                    at = pack.read().find(near)
                    if at >= 0:
                        pack.seek(at)
                        pack.write(bytes([near[0] ^ 1]))
                        return
        self.fail('the bytes are in no pack')

    def test_the_same_client_again(self):
        bucket, data = self.new_bucket('dedup-same'), content(5_000_000, 7)
        self.upload(bucket, {'file': data})
        before = self.sent()
        self.upload(bucket, {'copy': data})
        self.assertEqual(self.sent() - before, 0)
        self.assertFiles(bucket, {'file': data, 'copy': data})

    def test_a_cache_of_deleted_files(self):
        """The client's cache of chunks outlives the bucket's files: what it names is still there."""
        bucket, data = self.new_bucket('dedup-gone'), content(6_000_000, 8)
        self.upload(bucket, {'file': data})
        self.hub.batch_bucket_files(bucket, delete=['file'])
        self.daemon.admin('gc')
        self.hub.batch_bucket_files(bucket, add=[(data[:3_000_000], 'half')])
        self.assertFiles(bucket, {'half': data[:3_000_000]})

    def test_what_was_ended_is_sent_again(self):
        """After gc --end-promises a client that deleted its file sends it again, once its cache does not name it any more."""
        bucket, data = self.new_bucket('dedup-ended'), content(6_000_000, 10)
        self.upload(bucket, {'file': data}, self.fresh_driver('dedup-ended'))
        self.hub.batch_bucket_files(bucket, delete=['file'])
        freed = json.loads(self.daemon.admin('gc', '--end-promises', '--json').stdout)
        self.assertGreater(freed['bytes_freed'], 5_900_000)
        before = self.sent()
        self.upload(bucket, {'file': data}, self.fresh_driver('dedup-ended-again'))
        self.assertGreater(self.sent() - before, 5_900_000)
        self.assertFiles(bucket, {'file': data})


@unittest.skipUnless(ready(NEWEST), MISSING)
@needs_mount
class HubFull(unittest.TestCase):
    """A full disk ends an upload soon, and with a sentence; hf_xet repeats any 5xx for more than a minute."""
    SECONDS = 40

    def full_server(self, mebibytes):
        """On a disk of its own."""
        disk = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(os.rmdir, disk)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={mebibytes}m', 'none', disk], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', disk], check=True)
        return Daemon(tls=False, folder=os.path.join(disk, 'data'))

    def upload(self, daemon, size):
        """hf's attempt at a file of so many bytes, and the file."""
        self.assertEqual(daemon.request('PUT', '/models').status, 200)
        home = os.path.join(daemon.scratch, 'home')
        path = write(os.path.join(home, 'file'), random.Random(3).randbytes(size))
        environment = {'PATH': os.environ['PATH'], 'HOME': home, 'HF_HOME': home, 'HF_ENDPOINT': daemon.endpoint, 'HF_TOKEN': ROOT_TOKEN,
                       'HF_HUB_DISABLE_UPDATE_CHECK': '1', 'LANG': 'C.UTF-8'}
        done = subprocess.run([hub_program(NEWEST, 'hf'), 'buckets', 'cp', path, 'hf://buckets/main/models/file'], env=environment,
                              capture_output=True, text=True, timeout=self.SECONDS)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('no_space', daemon.log())
        self.assertEqual(daemon.request('HEAD', '/models/file').status, 404)
        return done, path

    def test_an_upload_onto_a_full_disk(self):
        with self.full_server(24) as daemon:
            done, path = self.upload(daemon, 30_000_000)
            self.assertIn('413', done.stderr)
            self.assertEqual(daemon.client('put', path, 'models/file', check=False).returncode, 8)

    def test_a_file_of_several_xorbs(self):
        """hf_xet sends the shard although a xorb was refused, and shows what it is told of the shard."""
        with self.full_server(60) as daemon:
            done, path = self.upload(daemon, 150_000_000)
            self.assertIn('413', done.stderr)
            self.assertNotIn('not stored here', done.stderr)
            self.assertEqual(daemon.client('put', path, 'models/file', check=False).returncode, 8)


@unittest.skipUnless(ready(NEWEST), MISSING)
class HubDamage(unittest.TestCase):
    """The disk lost bytes that a client has sent and, by its cache, need not send again. It sends them again once the damage is known."""

    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()
        self.assertEqual(self.daemon.request('PUT', '/models').status, 200)
        self.data = random.Random(self.id()).randbytes(3_000_000)
        self.path = write(os.path.join(self.daemon.scratch, 'home', 'file'), self.data)

    def upload(self, name):
        home = os.path.dirname(self.path)
        environment = {'PATH': os.environ['PATH'], 'HOME': home, 'HF_HOME': home, 'HF_ENDPOINT': self.daemon.endpoint, 'HF_TOKEN': ROOT_TOKEN,
                       'HF_HUB_DISABLE_UPDATE_CHECK': '1', 'LANG': 'C.UTF-8', 'HF_XET_CLIENT_RETRY_BASE_DELAY': '200ms'}
        return subprocess.run([hub_program(NEWEST, 'hf'), 'buckets', 'cp', self.path, f'hf://buckets/main/models/{name}'], env=environment,
                              capture_output=True, text=True, timeout=120)

    def spoil(self, at):
        """A bit of the stored content, between two starts."""
        endpoint = self.daemon.endpoint
        self.daemon.stop()
        for folder, _, names in os.walk(os.path.join(self.daemon.folder, 'packs')):
            for path in (os.path.join(folder, name) for name in names if name.endswith('.pack')):
                stored = read(path).find(self.data[at:at + 32])
                if stored >= 0:
                    with open(path, 'r+b') as file:
                        file.seek(stored)
                        file.write(bytes([self.data[at] ^ 8]))
        self.daemon.start()
        self.assertEqual(self.daemon.endpoint, endpoint)

    def holds(self, *names):
        for name in names:
            got = self.daemon.request('GET', f'/models/{name}')
            self.assertEqual((got.status, got.body == self.data), (200, True), name)

    def reads(self, name):
        """Whether a whole read comes to its end."""
        try:
            return self.daemon.request('GET', f'/models/{name}').status == 200
        except http.client.IncompleteRead:
            return False

    def test_known_damage_is_sent_again(self):
        """Also when the same place is damaged a second time, and an answer of the first time is in the cache."""
        self.assertEqual(self.upload('first').returncode, 0)
        for turn, name in enumerate(('second', 'third')):
            self.spoil(1_500_000)
            self.assertFalse(self.reads('first'))
            done = self.upload(name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.holds('first', *('second', 'third')[:turn + 1])

    def test_unknown_damage_is_told_and_sent_again_by_the_next(self):
        self.assertEqual(self.upload('first').returncode, 0)
        self.spoil(1_500_000)
        refused = self.upload('second')
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('whose stored bytes are damaged. Send the same files again', refused.stderr)
        done = self.upload('second')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.holds('first', 'second')


@unittest.skipUnless(ready(NEWEST) and ready(MIDDLE) and ready(OLDEST), MISSING)
@both_schemes
class HubTogether(XetCase):
    """Clients of all ages on one server."""
    version = NEWEST

    def test_each_reads_what_the_others_wrote(self):
        bucket = self.new_bucket('ages')
        drivers = {version: self.fresh_driver(f'age-{version}', version) for version in (NEWEST, MIDDLE, OLDEST)}
        files = {version: weights_like(700_000, number) for number, version in enumerate(drivers)}
        for version, driver in drivers.items():
            driver.api.batch_bucket_files(bucket, add=[(files[version], version), (b'', f'{version}-empty')])
        for driver in drivers.values():
            for version, data in files.items():
                self.assertSame(self.download(bucket, version, driver), data)

    def at_once(self, work, arguments):
        """A thread for each of `arguments`; none may fail."""
        failures = []

        def run(*words):
            try:
                work(*words)
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=run, args=words) for words in arguments]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_gc_beside_them(self):
        """Files come, are read and go, some of them again and again, while gc runs all the time."""
        bucket = self.new_bucket('gc-beside')
        drivers = [self.fresh_driver(f'gc-{version}', version) for version in (NEWEST, OLDEST)]
        done = threading.Event()

        def collect():
            while not done.is_set():
                self.daemon.admin('gc')

        def work(number, driver):
            for turn in range(4):
                files = {f'{number}/{turn}/{index}': content(30_000 + 1777 * index, 1000 * number + 50 * (turn // 2)) for index in range(8)}
                driver.api.batch_bucket_files(bucket, add=[(data, name) for name, data in files.items()])
                driver.api.download_bucket_files(bucket, files=[(name, self.path('gc', name)) for name in files])
                for name, data in files.items():
                    self.assertSame(read(self.path('gc', name)), data)
                if turn % 2:
                    driver.api.batch_bucket_files(bucket, delete=list(files))

        collector = threading.Thread(target=collect)
        collector.start()
        try:
            self.at_once(work, enumerate(drivers))
        finally:
            done.set()
            collector.join()
        self.assertEqual(self.hub.bucket_info(bucket)['total_files'], 2 * 2 * 8)

    def test_syncs_at_once(self):
        bucket = self.new_bucket('at-once')
        shared = {f'common/{index}': content(90_000, index) for index in range(12)}
        drivers = [self.fresh_driver(f'sync-{index}', version) for index, version in enumerate((NEWEST, MIDDLE, OLDEST))]
        folders = []
        for index in range(len(drivers)):
            folder = self.path(f'at-once-{index}')
            for name, data in (*shared.items(), (f'own/{index}', content(200_000 + index, index))):
                write(os.path.join(folder, name), data)
            folders.append(folder)
        self.at_once(lambda driver, folder: driver.own.sync(folder, f'hf://buckets/{bucket}'), zip(drivers, folders))
        down = self.path('at-once-down')
        self.own.sync(f'hf://buckets/{bucket}', down)
        everything = {name: digest for folder in folders for name, digest in tree(folder).items()}
        self.assertEqual(tree(down), everything)


@unittest.skipUnless(ready(NEWEST), MISSING)
class HubKilled(XetCase):
    """kill -9 of the server while a client sends: the client goes on when it is back, and nothing half-done is seen."""
    version = NEWEST

    def start_upload(self, driver, bucket, path, name):
        outcome = []

        def run():
            try:
                driver.api.batch_bucket_files(bucket, add=[(path, name)])
                outcome.append(None)
            except Exception as failure:
                outcome.append(failure)

        thread = threading.Thread(target=run)
        thread.start()
        return thread, outcome

    def kill_after(self, condition, seconds=90):
        limit = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), limit, 'the upload did not get that far')
            time.sleep(0.005)
        self.daemon.kill()

    def test_killed_and_back(self):
        bucket = self.new_bucket('killed')
        path, data = self.file('killed', 150 * MIB, 1)
        packs = os.path.join(self.daemon.folder, 'packs')

        def bytes_on_disk():
            return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(packs) for name in names)

        thread, outcome = self.start_upload(self.fresh_driver('killed'), bucket, path, 'file')
        self.kill_after(lambda: bytes_on_disk() > 20 * MIB)
        time.sleep(0.3)
        self.daemon.start()
        thread.join()
        if outcome[0] is not None:
            # It gave up: the user says it again. What had arrived is not sent again.
            self.upload(bucket, {'file': data}, self.fresh_driver('killed'))
        self.hub.download_bucket_files(bucket, files=[('file', self.path('killed-back'))])
        with open(self.path('killed-back'), 'rb') as back:
            self.assertSame(back.read(), data)
        self.assertEqual([file['path'] for file in self.hub.list_bucket_tree(bucket)], ['file'])

    def test_killed_between_the_batches(self):
        bucket = self.new_bucket('half-synced')
        local = self.path('half')
        for index in range(60):
            write(os.path.join(local, f'{index:03d}'), content(40_000, index))
        self.own.sync(local, f'hf://buckets/{bucket}', include=['*0'])
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(len(self.hub.list_bucket_tree(bucket)), 6)
        done = self.own.sync(local, f'hf://buckets/{bucket}')
        self.assertEqual(sum(action == 'upload' for action, _ in done), 54)
        down = self.path('half-down')
        self.own.sync(f'hf://buckets/{bucket}', down)
        self.assertEqual(tree(down), tree(local))


@unittest.skipUnless(ready(NEWEST), MISSING)
class HubBusy(HubCase):
    """Another program holds the catalog's lock for longer than the server waits."""
    version = NEWEST

    def test_clients_wait_as_long_as_they_are_told(self):
        bucket = self.new_bucket('busy')
        outcome = []

        def work():
            try:
                outcome.append(self.hub.batch_bucket_files(bucket, delete=['is/not/there']))
            except Exception as failure:
                outcome.append(failure)

        thread = threading.Thread(target=work)
        with contextlib.closing(sqlite3.connect(os.path.join(self.daemon.folder, 'catalog.db'), isolation_level=None)) as catalog:
            catalog.execute('BEGIN IMMEDIATE')
            thread.start()
            limit = time.monotonic() + 60
            while not self.called('BatchFiles', 429) and time.monotonic() < limit:
                time.sleep(0.05)
            catalog.execute('ROLLBACK')
        thread.join()
        self.assertEqual(outcome, [None])
        self.assertEqual((self.called('BatchFiles', 429), self.called('BatchFiles', 200)), (1, 1))
        self.assertIn(b'Rate limited. Waiting', read(self.driver.log))


if __name__ == '__main__':
    unittest.main()
