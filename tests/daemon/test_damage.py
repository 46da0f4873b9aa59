"""What a server does with a catalog that is empty, new, another store's, older or damaged: it refuses or serves what is there, says what is wrong, and
destroys nothing: with the right catalog put back everything that was acknowledged reads as it was."""
import contextlib
import http.client
import json
import os
import random
import shutil
import sqlite3
import time
import unittest

from tests.support.checkpoints import expand_small, sha256
from tests.support.daemon import REPLY_SECONDS, ROOT_TOKEN, Daemon
from tests.support.s3 import tree

# What starts and stops do is about files; the threads in it meet in other modules too.
THREADS_MEET = False


def packs_of(folder):
    """Every pack file with its bytes."""
    found = {}
    for at, _, names in os.walk(os.path.join(folder, 'packs')):
        for name in names:
            if name.endswith('.pack'):
                with open(os.path.join(at, name), 'rb') as file:
                    found[name] = file.read()
    return found


class Damage(unittest.TestCase):
    def setUp(self):
        self.source = random.Random(self.id())
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()
        self.daemon.request('PUT', '/bkt')
        self.objects = {}
        self.fill(0, 6)
        self.checkpoints = expand_small(self.daemon.scratch, 2)
        for step in range(2):
            self.daemon.client('publish', '--run', 'bkt/r', '--step', step, self.checkpoints[step])
        self.daemon.stop()
        self.saved = os.path.join(self.daemon.scratch, 'saved')
        shutil.copytree(self.daemon.folder, self.saved, ignore=shutil.ignore_patterns('control.sock'))

    def fill(self, first, last):
        for i in range(first, last):
            body = self.source.randbytes((200, 5_000, 90_000, 700_000, 3_000_000, 40)[i % 6])
            self.assertEqual(self.daemon.request('PUT', f'/bkt/k{i}', body).status, 200)
            self.objects[f'k{i}'] = body

    def path(self, name):
        return os.path.join(self.daemon.folder, name)

    def write(self, name, data):
        with open(self.path(name), 'wb') as file:
            file.write(data)

    def put_back(self, *names):
        self.daemon.is_damaged = True  # the journal knows later changes
        for name in names:
            for path in (self.path(name), self.path(name + '-wal'), self.path(name + '-shm')):
                if os.path.exists(path):
                    os.remove(path)
            for suffix in ('', '-wal'):
                if os.path.exists(os.path.join(self.saved, name + suffix)):
                    shutil.copy(os.path.join(self.saved, name + suffix), self.path(name + suffix))

    def refuses(self, *words):
        """The start says these words and ends; no byte of a pack has gone."""
        before = packs_of(self.daemon.folder)
        with self.assertRaises(RuntimeError) as refused:
            self.daemon.start()
        said = str(refused.exception)
        for word in words + ('nothing was changed', 'OPERATIONS.md'):
            self.assertIn(word, said.splitlines()[-1])
        self.assertEqual(packs_of(self.daemon.folder), before)
        self.assertFalse(os.path.exists(self.path('set-aside')))

    def all_is_there(self):
        for key, body in self.objects.items():
            got = self.daemon.request('GET', f'/bkt/{key}')
            self.assertEqual((got.status, got.body), (200, body), key)
        into = os.path.join(self.daemon.scratch, 'worker')
        for step in range(2):
            self.daemon.client('follow', '--run', 'bkt/r', '--into', into, '--once', '--step', step)
            self.assertEqual(sha256(os.path.join(into, 'current', 'model.safetensors')), sha256(self.checkpoints[step]))

    def starts_as_it_was(self):
        self.daemon.arguments = []
        self.daemon.start()
        self.all_is_there()
        self.daemon.admin('gc')
        self.all_is_there()
        self.daemon.stop()

    def older_catalog(self):
        """The saved one is older than what was put since."""
        self.daemon.start()
        self.fill(6, 12)
        self.daemon.stop()
        self.newer = os.path.join(self.daemon.scratch, 'newer')
        shutil.copytree(self.daemon.folder, self.newer)
        self.put_back('catalog.db')

    def scramble(self, name, offset, length=64):
        """Other bytes in the middle of a file."""
        with open(self.path(name), 'r+b') as file:
            file.seek(offset)
            old = file.read(length)
            file.seek(offset)
            file.write(bytes(byte ^ 0x5a for byte in old))

    def middle_of_log(self):
        """In a frame of the log's middle, but none of page 1, without which nothing can be served."""
        with open(self.path('catalog.db-wal'), 'rb') as file:
            log = file.read()
        frame = (len(log) - 32) // 4120 // 2
        while int.from_bytes(log[32 + frame * 4120:][:4], 'big') == 1:
            frame += 1
        return 32 + frame * 4120 + 2000

    def leave_log(self):
        """A server that was killed, whose changes all stand in the log."""
        self.daemon.start()
        self.fill(6, 12)
        self.daemon.kill()
        shutil.rmtree(self.saved)
        shutil.copytree(self.daemon.folder, self.saved, ignore=shutil.ignore_patterns('control.sock'))
        return os.path.getsize(self.path('catalog.db-wal'))

    def statuses(self):
        """By key: whether it reads as it was, is missing, or cannot be told; anything else is a fault."""
        found = {}
        for key, body in self.objects.items():
            got = self.daemon.request('GET', f'/bkt/{key}')
            self.assertIn(got.status, (200, 404, 503), (key, got.body))
            if got.status == 200:
                self.assertEqual(got.body, body, key)
            found[key] = got.status
        return found

    def test_a_damaged_log_is_refused_and_heals_when_it_is_put_back(self):
        size = self.leave_log()
        for offset in (size // 3, size // 2, 8):
            self.scramble('catalog.db-wal', offset)
            self.refuses('catalog.db-wal', 'is damaged')
            self.put_back('catalog.db', 'acknowledged')
        os.truncate(self.path('catalog.db-wal'), size // 2)
        self.refuses('catalog.db-wal', 'is damaged')
        os.remove(self.path('catalog.db-wal'))
        self.refuses('catalog.db is older than this store')
        self.put_back('catalog.db', 'acknowledged')
        self.starts_as_it_was()

    def test_a_flipped_bit_in_the_log_costs_nothing(self):
        size = self.leave_log()
        for offset in (4, 16, size // 16 * 4, size // 8 * 4 + 1, size - 200):  # flips of a word's high bits look alike to SQLite's checksum
            with open(self.path('catalog.db-wal'), 'r+b') as file:
                file.seek(offset)
                byte = file.read(1)[0]
                file.seek(offset)
                file.write(bytes([byte ^ 2]))
            self.daemon.start()
            self.all_is_there()
            self.daemon.kill()
            self.put_back('catalog.db', 'acknowledged')

    def test_what_proves_itself_of_a_damaged_log_is_served(self):
        self.leave_log()
        for policy in ('read-only', 'serve'):
            self.scramble('catalog.db-wal', self.middle_of_log())
            os.rename(self.path('journal'), os.path.join(self.daemon.scratch, f'journal-{policy}'))
            before = packs_of(self.daemon.folder)
            self.daemon.arguments = ['--after-damage', policy]
            self.daemon.start()
            found = self.statuses()
            self.assertGreaterEqual(list(found.values()).count(200), 6, found)
            self.assertEqual(self.daemon.request('PUT', '/bkt/new', b'x' * 50_000).status == 200, policy == 'serve')
            self.assertEqual(self.daemon.stop(), 0)
            if policy == 'read-only':
                self.assertEqual(packs_of(self.daemon.folder), before)
            else:
                self.assertIn('catalog.db-wal.1', os.listdir(self.path('set-aside')))
            shutil.rmtree(self.daemon.folder)
            shutil.copytree(self.saved, self.daemon.folder)
        self.starts_as_it_was()

    def pages(self):
        return os.path.getsize(self.path('catalog.db')) // 4096

    def test_no_damaged_page_is_an_answer(self):
        """Each page by itself: the start is refused, or what needs the page is not answered, or an
        index was rebuilt. rebuild makes a catalog without the damage."""
        outcomes, damaged = {}, []
        for page in range(1, self.pages() + 1, 3):
            self.scramble('catalog.db', (page - 1) * 4096 + 1500)
            before = packs_of(self.daemon.folder)
            try:
                self.daemon.start()
            except RuntimeError:
                outcomes['refused'] = outcomes.get('refused', 0) + 1
            else:
                found = set(self.statuses().values())
                self.assertNotIn(404, found, page)
                ready = self.daemon.request('GET', '/-/ready').body.decode()
                word = 'damaged' if 'damaged' in ready else 'right' if found == {200} else 'later'
                outcomes[word] = outcomes.get(word, 0) + 1
                if word == 'damaged':
                    damaged.append(page)
                self.daemon.admin('gc', check=False)
                self.daemon.stop()
            self.assertLessEqual(set(before), set(packs_of(self.daemon.folder)), page)
            self.put_back('catalog.db', 'acknowledged')
        self.assertGreater(outcomes['right'], 3, outcomes)
        self.assertTrue(damaged, outcomes)
        self.daemon.start()  # the last one may have had a page that its snapshot could not read
        self.daemon.stop()
        self.scramble('catalog.db', (damaged[0] - 1) * 4096 + 1500)
        self.daemon.admin('rebuild', '--replace')
        self.starts_as_it_was()

    def test_an_empty_catalog_is_refused(self):
        self.write('catalog.db', b'')
        self.refuses('catalog.db', 'is empty')
        self.put_back('catalog.db')
        self.starts_as_it_was()

    def test_an_emptied_catalog_leaves_its_log_as_it_is(self):
        """What was acknowledged last may be nowhere else."""
        self.daemon.start()
        self.fill(6, 9)
        self.daemon.kill()
        kept = {}
        for name in ('catalog.db', 'catalog.db-wal'):
            with open(self.path(name), 'rb') as file:
                kept[name] = file.read()
        self.assertGreater(len(kept['catalog.db-wal']), 4096)
        self.write('catalog.db', b'')
        self.refuses('catalog.db', 'is empty')
        with open(self.path('catalog.db-wal'), 'rb') as file:
            self.assertEqual(file.read(), kept['catalog.db-wal'])
        self.write('catalog.db', kept['catalog.db'])
        self.starts_as_it_was()

    def test_a_catalog_without_a_first_page_is_refused(self):
        with open(self.path('catalog.db'), 'r+b') as file:
            file.write(bytes(4096))
        with self.assertRaises(RuntimeError) as refused:
            self.daemon.start()
        self.assertIn('deltabucketd rebuild --replace', str(refused.exception))
        self.put_back('catalog.db')
        self.starts_as_it_was()

    def test_a_missing_catalog_is_refused(self):
        os.remove(self.path('catalog.db'))
        self.refuses('catalog.db', 'is missing')
        self.put_back('catalog.db')
        self.starts_as_it_was()

    def test_a_new_catalog_is_refused(self):
        with Daemon(tls=False) as other:
            other.stop()
            shutil.copy(os.path.join(other.folder, 'catalog.db'), self.path('catalog.db'))
        self.refuses('another store')
        os.remove(self.path('acknowledged'))
        self.refuses('different stores')
        self.put_back('catalog.db', 'acknowledged')
        self.starts_as_it_was()

    def ready(self, query=''):
        reply = self.daemon.request('GET', '/-/ready' + query, token=None)
        return reply.status, reply.body.decode()

    def becomes(self, status, word, query=''):
        limit = time.monotonic() + REPLY_SECONDS
        while self.ready(query)[0] != status or word not in self.ready(query)[1]:
            self.assertLess(time.monotonic(), limit, self.ready(query))
            time.sleep(0.1)

    def test_a_server_whose_catalog_is_emptied_is_not_ready(self):
        self.daemon.is_damaged = True
        self.daemon.start()
        self.assertEqual([self.ready()[0], self.ready('?write')[0]], [200, 200])
        os.truncate(self.path('catalog.db'), 0)
        self.assertEqual([self.ready()[0], self.ready('?write')[0]], [503, 503])
        self.assertIn('catalog.db cannot be read', self.ready()[1])
        self.assertEqual(self.daemon.request('GET', '/minio/health/cluster', token=None).status, 503)
        self.daemon.kill()
        self.daemon.admin('rebuild', '--replace')
        self.starts_as_it_was()

    def test_a_catalog_that_is_deleted_under_its_server_is_told(self):
        self.daemon.start()
        os.remove(self.path('catalog.db'))
        self.becomes(200, 'catalog lost: catalog.db was deleted')
        self.assertIn('catalog_unnamed', self.daemon.log())
        self.fill(6, 8)
        self.daemon.kill()
        self.daemon.admin('rebuild')
        self.starts_as_it_was()

    def test_an_older_catalog_is_refused(self):
        self.older_catalog()
        self.refuses('is older than this store')
        os.remove(self.path('acknowledged'))
        self.refuses('is older than the packs')
        self.saved = self.newer
        self.put_back('catalog.db', 'acknowledged')
        self.starts_as_it_was()

    def test_an_older_catalog_is_served_read_only_when_told(self):
        self.older_catalog()
        before = packs_of(self.daemon.folder)
        self.daemon.arguments = ['--after-damage', 'read-only']
        self.daemon.start()
        self.assertIn('read-only', self.daemon.request('GET', '/-/ready').body.decode())
        self.assertEqual(self.daemon.request('GET', '/-/ready?write').status, 503)
        for path, status in (
            ('live', 200),
            ('ready', 200),
            ('cluster/read', 200),
            ('cluster', 503),
        ):
            self.assertEqual(
                self.daemon.request('GET', f'/minio/health/{path}', token=None).status, status
            )
        for i in range(12):
            got = self.daemon.request('GET', f'/bkt/k{i}')
            self.assertEqual((got.status, got.body) if i < 6 else got.status, (200, self.objects[f'k{i}']) if i < 6 else 404)
        refused = self.daemon.request('PUT', '/bkt/new', b'x' * 100_000)
        self.assertEqual((refused.status, refused.code()), (503, 'ServiceUnavailable'))
        self.assertEqual(self.daemon.request('DELETE', '/bkt/k1').status, 503)
        self.assertEqual(self.daemon.stop(), 0)
        self.assertEqual(packs_of(self.daemon.folder), before)
        self.saved = self.newer
        self.put_back('catalog.db')
        self.starts_as_it_was()

    def test_what_an_older_catalog_does_not_name_comes_back_with_the_right_one(self):
        self.older_catalog()
        before = packs_of(self.daemon.folder)
        self.daemon.arguments = ['--after-damage', 'serve']
        self.refuses('The journal leads to change', 'deltabucketd rebuild --replace', f'move {self.path("journal")} away')
        os.rename(self.path('journal'), os.path.join(self.daemon.scratch, 'journal'))
        self.daemon.start()
        self.assertEqual(self.daemon.request('GET', '/bkt/k7').status, 404)
        self.daemon.admin('gc')
        listed = self.daemon.admin('set-aside').stdout
        self.assertIn('.pack', listed)
        aside = {name: None for name in os.listdir(self.path('set-aside'))}
        self.assertEqual(set(before), set(packs_of(self.daemon.folder)) | {name for name in aside if name.endswith('.pack')})
        metrics = self.daemon.request('GET', '/-/metrics').body.decode()
        self.assertIn(f'deltabucket_set_aside_files {len(aside)}', metrics)
        self.daemon.stop()
        self.saved = self.newer
        self.put_back('catalog.db', 'acknowledged')
        self.starts_as_it_was()
        self.assertEqual([name for name in os.listdir(self.path('set-aside')) if name.endswith('.pack')], [])

    def test_what_is_set_aside_goes_by_the_operators_word(self):
        os.makedirs(self.path('packs/00'), exist_ok=True)
        stray = '00112233445566778899aabbccddeeff.pack'
        self.write(f'packs/00/{stray}', b'not a pack of this store')
        self.daemon.start()
        self.assertIn(stray, self.daemon.admin('set-aside').stdout)
        self.assertNotEqual(self.daemon.admin('set-aside', 'drop', '../catalog.db', check=False).returncode, 0)
        self.assertNotEqual(self.daemon.admin('set-aside', 'drop', check=False).returncode, 0)
        self.daemon.stop()
        self.daemon.start()
        self.assertIn(stray, self.daemon.admin('set-aside').stdout)
        self.daemon.admin('set-aside', 'drop', stray)
        self.assertNotIn(stray, self.daemon.admin('set-aside').stdout)
        self.all_is_there()

    def kill_during_an_upload(self):
        """Gives the names of packs that nothing came of."""
        before = set(packs_of(self.daemon.folder))
        connection = http.client.HTTPConnection('127.0.0.1', self.daemon.port, timeout=REPLY_SECONDS)
        connection.putrequest('PUT', '/bkt/half')
        connection.putheader('Authorization', f'Bearer {ROOT_TOKEN}')
        connection.putheader('Content-Length', str(16 << 20))
        connection.endheaders()
        connection.send(self.source.randbytes(8 << 20))
        limit = time.monotonic() + REPLY_SECONDS
        while set(packs_of(self.daemon.folder)) == before and time.monotonic() < limit:
            time.sleep(0.02)
        self.daemon.kill()
        connection.close()
        return sorted(set(packs_of(self.daemon.folder)) - before)

    def test_what_a_killed_upload_left_goes_only_when_all_is_known_to_be_there(self):
        """After a kill it is. A note that was put back, or is from before the machine was started, may be behind the catalog."""
        self.daemon.start()
        self.fill(6, 7)
        left = self.kill_during_an_upload()
        self.assertTrue(left)
        self.daemon.start()
        self.daemon.await_log('orphan_removed')
        self.assertFalse(set(left) & set(packs_of(self.daemon.folder)))
        self.assertFalse(os.path.exists(self.path('set-aside')))
        left = self.kill_during_an_upload()
        shutil.copy(self.path('acknowledged'), self.path('copy'))
        os.rename(self.path('copy'), self.path('acknowledged'))
        self.daemon.start()
        self.assertTrue(set(left) <= set(os.listdir(self.path('set-aside'))))
        self.all_is_there()

    def test_tails_of_packs_stay(self):
        """A committed length that is too small costs no byte."""
        before = packs_of(self.daemon.folder)
        self.daemon.start()
        self.daemon.edit_catalog('UPDATE packs SET length = 64')
        self.daemon.kill()
        self.assertEqual({name: len(data) for name, data in packs_of(self.daemon.folder).items()},
                         {name: len(data) for name, data in before.items()})
        self.put_back('catalog.db', 'acknowledged')
        self.starts_as_it_was()


class KeysAndGrants(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()
        self.daemon.request('PUT', '/box')
        self.daemon.request('PUT', '/box/k', b'secret')
        self.reader = self.daemon.add_key('--name', 'reader', '--grant', 'box/in=read')
        self.other = self.daemon.add_key('--name', 'other', '--grant', 'box=read')

    def status(self, key, target='/box/k'):
        return self.daemon.request('GET', target, token=key and key['token']).status

    def test_a_key_that_lost_its_grants_opens_nothing(self):
        self.assertEqual((self.status(self.reader), self.status(self.other)), (403, 200))
        self.daemon.edit_catalog("DELETE FROM grants WHERE bucket = CAST('box' AS BLOB) AND length(prefix) > 0")
        self.assertIn(self.status(self.reader), (401, 403))
        self.assertEqual(self.status(self.other), 200)
        self.assertIn(f"key_damaged key={self.reader['key_id']}", self.daemon.log())
        listed = self.daemon.admin('keys', 'list').stdout.splitlines()
        self.assertEqual([self.reader['key_id'] in line for line in listed], ['damaged: it opens nothing' in line for line in listed])
        self.assertIn('damaged: it opens nothing', self.daemon.client('keys').stdout)
        self.daemon.admin('keys', 'revoke', self.reader['key_id'])
        self.assertNotIn(self.reader['key_id'], self.daemon.admin('keys', 'list').stdout)

    def test_a_page_of_keys_is_lost(self):
        """Most of it: the server starts, names what it lost, and the command line works by who one is."""
        self.daemon.is_damaged = True
        self.daemon.stop()
        with contextlib.closing(sqlite3.connect(f'file:{self.daemon.folder}/catalog.db?mode=ro&immutable=1', uri=True)) as catalog:
            page, = catalog.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'keys'").fetchone()
        with open(os.path.join(self.daemon.folder, 'catalog.db'), 'r+b') as file:
            file.seek((page - 1) * 4096)
            file.write(bytes(4000))
        self.daemon.start()
        self.assertIn('key_damaged key=damaged-1', self.daemon.log())
        self.assertIn('The root key cannot be stored', self.daemon.log())
        self.assertEqual(self.daemon.request('GET', '/box/k').body, b'secret')
        self.assertIn(self.status(self.other), (401, 403))
        self.assertIn('damaged-1', self.daemon.admin('keys', 'list').stdout)
        refused = self.daemon.admin('keys', 'revoke', 'damaged-1', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('does not match its checksum', refused.stderr)

    def test_damaged_grants_of_a_bucket_are_none(self):
        policy = json.dumps({'Version': '2012-10-17', 'Statement': [
            {'Effect': 'Allow', 'Principal': '*', 'Action': 's3:GetObject', 'Resource': 'arn:aws:s3:::box/*'}]})
        self.assertEqual(self.daemon.request('PUT', '/box?policy', policy.encode()).status, 204)
        self.assertEqual(self.status(None), 200)
        self.daemon.edit_catalog("UPDATE bucket_grants SET prefix = CAST('k' AS BLOB)")
        self.assertEqual(self.status(None), 403)
        self.daemon.await_log('bucket_access_damaged bucket=box')
        self.assertEqual(self.status(self.other), 200)
        self.assertEqual(self.daemon.request('GET', '/box/k').status, 200)
        self.assertEqual(self.daemon.request('PUT', '/box?policy', policy.encode()).status, 204)
        self.assertEqual(self.status(None), 403)
        self.assertEqual(self.daemon.request('DELETE', '/box?publicAccessBlock').status, 204)
        self.assertEqual(self.status(None), 200)


INDEXED_SECONDS = 2


class StoredBytes(unittest.TestCase):
    """A byte of a pack is flipped between two starts: nobody has read it since."""

    def setUp(self):
        self.source = random.Random(self.id())
        self.daemon = Daemon(tls=False)
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()
        self.daemon.request('PUT', '/box')
        self.bodies = {'small': self.source.randbytes(90_000), 'large': self.source.randbytes(3_000_000)}
        for key, body in self.bodies.items():
            self.assertEqual(self.daemon.request('PUT', f'/box/{key}', body).status, 200)

    def spoil(self, *keys):
        self.daemon.stop()
        for key in keys:
            self.flip(self.bodies[key][20_000:20_032])
        before = self.indexed()
        self.daemon.start()
        limit = time.monotonic() + INDEXED_SECONDS
        while self.indexed() == before and time.monotonic() < limit:
            time.sleep(0.01)

    def packs(self):
        """(path, bytes) of each."""
        for at, _, names in os.walk(os.path.join(self.daemon.folder, 'packs')):
            for path in (os.path.join(at, name) for name in names if name.endswith('.pack')):
                with open(path, 'rb') as file:
                    yield path, file.read()

    def indexed(self):
        """How many chunks an upload may find. Those of a pack that was open come behind a start."""
        path = os.path.join(self.daemon.folder, 'chunks.db')
        with contextlib.closing(sqlite3.connect(f'file:{path}?mode=ro', uri=True)) as index:
            return index.execute('SELECT COUNT(*) FROM chunk').fetchone()[0]

    def flip(self, content):
        """Noise is stored as it is."""
        for path, data in self.packs():
            if content in data:
                with open(path, 'r+b') as file:
                    file.seek(data.index(content))
                    file.write(bytes([content[0] ^ 8]))
                return
        self.fail('no pack holds the bytes')

    def holds(self, key, body):
        self.assertEqual(self.daemon.request('GET', f'/box/{key}').body, body)

    def copy(self, key):
        return self.daemon.request('PUT', '/box/copy', headers={'x-amz-copy-source': f'/box/{key}'})

    def put_onto_damage(self, key):
        body = self.bodies[key]
        self.spoil(key)
        self.assertEqual(self.daemon.request('PUT', '/box/again', body).status, 200)
        self.holds('again', body)
        self.assertIn('chunk_damaged', self.daemon.log())
        self.daemon.await_log('chunk_mended')
        self.daemon.stop()
        self.daemon.start()
        self.holds(key, body)
        self.holds('again', body)

    def test_a_small_put_of_damaged_bytes_reads_back_and_heals_the_other(self):
        self.put_onto_damage('small')

    def test_a_large_put_of_damaged_bytes_reads_back_and_heals_the_other(self):
        self.put_onto_damage('large')

    def test_known_damage_outlives_a_restart_and_is_not_copied(self):
        self.spoil('small')
        with self.assertRaises(http.client.IncompleteRead):
            self.daemon.request('GET', '/box/small')
        self.daemon.await_log('chunk_damaged')
        self.daemon.stop()
        self.daemon.start()
        refused = self.copy('small')
        self.assertEqual(refused.status, 409)
        self.assertIn(b"The stored bytes of &apos;small&apos; are damaged. Upload the same bytes again", refused.body)
        self.assertEqual(self.copy('large').status, 200)
        self.assertEqual(self.daemon.request('PUT', '/box/elsewhere', self.bodies['small']).status, 200)
        self.daemon.await_log('chunk_mended')
        self.assertEqual(self.copy('small').status, 200)
        self.holds('copy', self.bodies['small'])

    def test_a_damaged_part_becomes_no_object(self):
        """Completion is refused until the part has been sent again; the others stay as they are."""
        parts = [self.source.randbytes(5 << 20), self.source.randbytes(300_000)]
        upload = tree(self.daemon.request('POST', '/box/parts?uploads')).findtext('UploadId')

        def send(number):
            reply = self.daemon.request('PUT', f'/box/parts?partNumber={number}&uploadId={upload}', parts[number - 1])
            self.assertEqual(reply.status, 200)
            return f'<Part><PartNumber>{number}</PartNumber><ETag>{reply.headers["ETag"]}</ETag></Part>'

        def complete(*listed):
            return self.daemon.request(
                'POST', f'/box/parts?uploadId={upload}', f'<CompleteMultipartUpload>{"".join(listed)}</CompleteMultipartUpload>'
            )

        listed = [send(1), send(2)]
        self.daemon.stop()
        self.flip(parts[1][20_000:20_032])
        self.daemon.start()
        self.assertEqual(self.daemon.admin('scrub', check=False).returncode, 4)
        self.assertIn(b'\nchunks damaged: 1 ', self.daemon.request('GET', '/-/ready').body)
        told = self.daemon.admin('fsck', '--online', check=False).stdout
        self.assertIn(f'part 2 of upload {upload} of box/parts', told)
        told = self.daemon.client('damage', check=False)
        self.assertEqual(told.returncode, 7)
        self.assertIn(f'upload box/parts  part 2 of {upload}\n', told.stdout)
        self.assertIn('Send the bytes of what is listed here again', told.stderr)
        refused = complete(*listed)
        self.assertEqual((refused.status, refused.code()), (409, 'ContentDamaged'))
        self.assertIn(b'The stored bytes of part 2 are damaged. Upload that part again', refused.body)
        self.assertEqual(complete(listed[0], send(2)).status, 200)
        self.holds('parts', b''.join(parts))

    def test_damage_that_nothing_uses_is_told_as_such(self):
        self.spoil('large')
        self.daemon.request('DELETE', '/box/large')
        self.assertEqual(self.daemon.admin('scrub', check=False).returncode, 4)
        told = self.daemon.client('damage', check=False)
        self.assertEqual(told.returncode, 7)
        self.assertIn('no key, step or upload uses that', told.stderr)

    def refused(self):
        """The answer once the catalog knows the damage, a moment after a read has met it."""
        limit = time.monotonic() + INDEXED_SECONDS
        while True:
            try:
                return self.daemon.request('GET', '/box/large')
            except http.client.IncompleteRead:
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.01)

    def test_known_damage_is_told_before_the_body(self):
        """And the client takes it for what it is, by either way of reading."""
        self.spoil('large')
        refused = self.refused()
        self.assertEqual((refused.status, refused.code()), (409, 'ContentDamaged'))
        for words in ([], ['--plain']):
            done = self.daemon.client('get', *words, 'box/large', os.path.join(self.daemon.scratch, 'out'), check=False)
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertRegex(done.stderr, 'large.* are damaged. Upload the same bytes again')
        done = self.daemon.client('sync', 'box', os.path.join(self.daemon.scratch, 'all'), check=False)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertRegex(done.stderr, 'large.* are damaged. Upload the same bytes again')

    RANGES = (  # of 'large', whose chunk at 20,000 is damaged: (first, last, whether they touch it)
        (20_000, 20_010, True),
        (19_990, 20_000, True),
        (0, 1_499_999, True),
        (0, 2_999_999, True),
        (2_999_000, 2_999_999, False),
        (1_000_000, 2_000_000, False),
    )

    def ranges_are(self, target, body, token=ROOT_TOKEN):
        for first, last, is_damaged in self.RANGES:
            got = self.daemon.request('GET', target, headers={'Range': f'bytes={first}-{last}'}, token=token)
            if is_damaged:
                self.assertEqual(got.status, 409, (target, first, last, got.body[:200]))
                self.assertIn(b'are damaged. Upload the same bytes again', got.body)
            else:
                self.assertEqual((got.status, got.body == body[first:last + 1]), (206, True), (target, first, last))

    def test_a_range_of_known_damage_is_refused_before_its_body(self):
        """By each face, and by the number of a version; all others are served."""
        body = self.bodies['large']
        self.daemon.request('PUT', '/box?versioning', b'<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')
        version = self.daemon.request('PUT', '/box/large', body).headers['x-amz-version-id']
        self.daemon.request('PUT', '/box/large', b'newer')
        self.spoil('large')
        with self.assertRaises(http.client.IncompleteRead):
            self.daemon.request('GET', f'/box/large?versionId={version}')
        self.ranges_are(f'/box/large?versionId={version}', body)
        self.daemon.request('DELETE', f"/box/large?versionId={self.daemon.request('HEAD', '/box/large').headers['x-amz-version-id']}")
        self.ranges_are('/box/large', body)
        self.ranges_are('/buckets/main/box/resolve/large', body)

    def test_a_part_of_known_damage_is_refused_before_its_body(self):
        body = self.source.randbytes(12_000_000)
        self.bodies['parts'] = body
        upload = self.daemon.request('POST', '/box/parts?uploads').body.decode().split('<UploadId>')[1].split('<')[0]
        parts = ''
        for number, at in enumerate((0, 6_000_000), 1):
            reply = self.daemon.request('PUT', f'/box/parts?partNumber={number}&uploadId={upload}', body[at:at + 6_000_000])
            parts += f"<Part><PartNumber>{number}</PartNumber><ETag>{reply.headers['ETag']}</ETag></Part>"
        done = f'<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>'.encode()
        self.assertEqual(self.daemon.request('POST', f'/box/parts?uploadId={upload}', done).status, 200)
        self.spoil('parts')
        with self.assertRaises(http.client.IncompleteRead):
            self.daemon.request('GET', '/box/parts')
        for number, status in ((1, 409), (2, 206), (1, 409)):
            self.assertEqual(self.daemon.request('GET', f'/box/parts?partNumber={number}').status, status)

    def test_a_small_read_that_meets_damage_says_so(self):
        """Nothing was sent yet, so nothing need be cut off."""
        self.spoil('large', 'small')
        for target, reach in (('/box/large', 'bytes=20000-20010'), ('/buckets/main/box/resolve/small', 'bytes=20000-30000')):
            got = self.daemon.request('GET', target, headers={'Range': reach})
            self.assertEqual(got.status, 409, got.body)
            self.assertIn(b'are damaged. Upload the same bytes again', got.body)

    def test_the_step_of_known_damage_is_refused(self):
        """Its objects are read by the faces of steps, too."""
        checkpoints = expand_small(self.daemon.scratch, 1)
        self.daemon.client('publish', '--run', 'box/r', '--step', 0, checkpoints[0])
        limit = time.monotonic() + REPLY_SECONDS
        while self.daemon.request('GET', '/v1/runs/box/r/steps/0').json()['verified'] != 'ok':
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.05)
        anchor = self.daemon.request('GET', '/v1/runs/box/r/steps/0').json()['forms'][0]['objects'][0]
        target, size = f"/v1/runs/box/r/{anchor['url']}", anchor['size']
        self.daemon.stop()
        for path, data in self.packs():
            with open(path, 'r+b') as file:
                file.seek(len(data) // 2)
                file.write(bytes([data[len(data) // 2] ^ 8]))
        self.daemon.start()
        seen = []
        for _ in range(2):
            for first in range(0, size, 50_000):
                try:
                    seen.append(self.daemon.request('GET', target, headers={'Range': f'bytes={first}-{min(first + 49_999, size - 1)}'}).status)
                except http.client.IncompleteRead:
                    seen.append('cut')
        self.assertLessEqual(set(seen[len(seen) // 2:]), {206, 409}, seen)
        self.assertIn(409, seen)

    def test_damage_that_the_disk_takes_back_is_no_reason_to_refuse(self):
        self.spoil('large')
        self.assertEqual(self.refused().status, 409)
        content = self.bodies['large'][20_000:20_032]
        self.flip(bytes([content[0] ^ 8]) + content[1:])
        self.holds('large', self.bodies['large'])

    def test_writers_of_the_hub_get_another_url_while_damage_is_known(self):
        """Then their caches, which belong to a URL, are empty. It leads to the same, and the old one still does."""
        def url(kind):
            return self.daemon.request('GET', f'/api/buckets/main/box/xet-{kind}-token').json()['casUrl']
        plain = self.daemon.endpoint + '/xet'
        self.assertEqual((url('write'), url('read')), (plain, plain))
        self.spoil('large', 'small')
        self.assertEqual(url('write'), plain)
        seen = set()
        for key in ('large', 'small'):
            with self.assertRaises(http.client.IncompleteRead):
                self.daemon.request('GET', f'/box/{key}')
            seen.add(url('write'))
            self.assertEqual((url('write') in seen, url('read')), (True, plain))
        self.assertEqual(len(seen), 2)
        for one in (*seen, plain):
            self.assertTrue(one.startswith(plain), one)
            self.assertEqual(self.daemon.request('GET', f'{one[len(self.daemon.endpoint):]}/health', token=None).status, 200)
        for key in ('large', 'small'):
            self.daemon.request('PUT', f'/box/{key}', self.bodies[key])
        limit = time.monotonic() + REPLY_SECONDS
        while url('write') != plain:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    def test_a_transfer_of_damaged_bytes_sends_them_again(self):
        """The command line asks what is stored here, and is not told of what cannot be read."""
        path = os.path.join(self.daemon.scratch, 'large')
        with open(path, 'wb') as file:
            file.write(self.bodies['large'])
        self.spoil('large')
        self.daemon.client('put', path, 'box/sent')
        self.holds('sent', self.bodies['large'])
        self.daemon.await_log('chunk_mended')
        self.holds('large', self.bodies['large'])


if __name__ == '__main__':
    unittest.main()
