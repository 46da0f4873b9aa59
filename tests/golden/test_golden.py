"""Yesterday's bytes: data folders and deltas that released versions wrote (make.py) are read, added to and refused as they were then."""
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from tests.golden import history, hub
from tests.support import xet
from tests.support.checkpoints import sha256
from tests.support.daemon import CLIENT, ROOT_TOKEN, Daemon
from tests.support.signer import Signer

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = sorted(name for name in os.listdir(HERE) if os.path.exists(os.path.join(HERE, name, 'expected.json')))
assert VERSIONS
# Version 0.1.0 ended with 1 for every malformed delta and with 7 for wrong bases and results; they have codes of their own now, and so have
# encodings that are not known.
EXIT_CODES_SINCE = {1: {13, 14}, 7: {11, 12}}


NEWEST_SCHEMA = max(int(name[:4]) for name in os.listdir(os.path.join(HERE, '..', '..', 'migrations')) if name.endswith('.sql'))


class Golden(unittest.TestCase):
    """Calls each test for every version that has this part; `self.golden` is its folder, `self.expected` what make.py wrote down."""
    part = None

    def run(self, result=None):
        for version in VERSIONS:
            if not os.path.isdir(os.path.join(HERE, version, self.part)):
                continue
            self.version = version
            self.golden = os.path.join(HERE, version)
            with open(os.path.join(self.golden, 'expected.json')) as file:
                self.expected = json.load(file)
            result = super().run(result)
        return result

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='deltabucket-test-')
        self.addCleanup(shutil.rmtree, self.folder)

    def sum_of(self, body):
        path = os.path.join(self.folder, 'sum')
        with open(path, 'wb') as file:
            file.write(body)
        return sha256(path)

    def assert_same_tree(self, left, right):
        def tree(folder):
            paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
            return {os.path.relpath(path, folder): sha256(path) for path in paths}
        self.assertEqual(tree(left), tree(right))


class Store(Golden):
    part = 'store'

    def setUp(self):
        super().setUp()
        store = os.path.join(self.folder, 'store')
        shutil.copytree(os.path.join(self.golden, 'store'), store)
        os.chmod(store, 0o700)
        os.chmod(os.path.join(store, 'master.key'), 0o600)  # version control does not keep it
        self.daemon = Daemon(tls=False, folder=store)
        for name in ('KEY_ID', 'SECRET', 'TOKEN'):
            del self.daemon.environment[f'DELTABUCKET_ROOT_{name}']  # the root key must come from the store
        self.addCleanup(self.daemon.__exit__)
        self.daemon.start()

    def get(self, target, **options):
        return self.daemon.request('GET', target, **options)

    def target(self, key):
        return f"/{self.expected['bucket']}/" + key.replace(' ', '%20')

    def pack_bytes(self):
        packs = os.path.join(self.folder, 'store', 'packs')
        return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(packs) for name in names if name.endswith('.pack'))

    def follow(self, *more):
        into = os.path.join(self.folder, 'worker')
        self.daemon.client('follow', '--run', f"{self.expected['bucket']}/followed", '--into', into, '--once', *more)
        return sha256(os.path.join(into, 'current', 'model.safetensors'))

    def test_objects(self):
        for key, known in self.expected['objects'].items():
            reply = self.get(self.target(key))
            self.assertEqual((reply.status, len(reply.body), self.sum_of(reply.body)), (200, known['size'], known['sha256']), key)
            for name, value in known['headers'].items():
                self.assertEqual(reply.headers[name], value, (key, name))
            middle = known['size'] // 2
            if middle > 0:
                part = self.get(self.target(key), headers={'Range': f'bytes={middle}-'})
                self.assertEqual((part.status, part.body), (206, reply.body[middle:]), key)

    def test_listing(self):
        listing = self.get(f"/{self.expected['bucket']}?list-type=2").body.decode()
        keys = [piece.split('</Key>')[0] for piece in listing.split('<Key>')[1:]]
        self.assertEqual(keys, sorted(keys))
        for key in list(self.expected['objects']) + ['pinned/overwritten']:
            self.assertIn(key, keys)
        self.assertNotIn('pinned/deleted', keys)

    def test_the_hub_has_them_too(self):
        """Hashes of what came without one are found anew, and lead to the same bytes."""
        bucket = f"main/{self.expected['bucket']}"
        files, totals, before = {}, self.get(f'/api/buckets/{bucket}').json(), None
        while totals != before:  # the server makes files of its own meanwhile
            files = {entry['path']: entry for entry in self.get(f'/api/buckets/{bucket}/tree').json()}
            before, totals = totals, self.get(f'/api/buckets/{bucket}').json()
        self.assertEqual((totals['totalFiles'], totals['size']), (len(files), sum(entry['size'] for entry in files.values())))
        cas = xet.Cas(self.daemon, bucket, kind='read')
        for path, entry in files.items():
            body = self.get(self.target(path)).body
            self.assertEqual(len(body), entry['size'], path)
            self.assertEqual(entry['xetHash'] == '0' * 64, body == b'', path)
            if body:
                self.assertEqual(self.sum_of(cas.download(xet.raw(entry['xetHash']))), self.sum_of(body), path)

    def test_steps(self):
        for run, steps in self.expected['runs'].items():
            base = f"/v1/runs/{self.expected['bucket']}/{run}"
            self.assertEqual(self.get(base).json()['head'], len(steps) - 1)
            for number, step in enumerate(steps):
                manifest = self.get(f'{base}/steps/{number}').json()
                for fact in ('digest', 'label', 'metadata'):
                    self.assertEqual(manifest.get(fact), step[fact], (run, number))
                self.assertEqual(sum(len(form['objects']) for form in manifest['forms']), len(step['objects']))
                for target, known in step['objects'].items():
                    self.assertEqual(self.sum_of(self.get(f'{base}/{target}').body), known, (run, target))

    def test_its_catalog_of_before_is_refused_from_now_on(self):
        """And stays as it is: the store has been started since."""
        self.daemon.stop()
        store = os.path.join(self.folder, 'store')
        kept = {name: os.path.join(self.folder, name) for name in ('catalog.db', 'catalog.db-wal') if os.path.exists(os.path.join(store, name))}
        for name, path in kept.items():
            shutil.move(os.path.join(store, name), path)
        before = os.path.join(self.golden, 'store', 'catalog.db')
        shutil.copy(before, store)
        for policy in ('refuse', 'read-only', 'serve')[:3 if self.version < 'v0_4' else 1]:
            self.daemon.arguments = ['--after-damage', policy]
            with self.assertRaisesRegex(RuntimeError, 'nothing was changed.*store'):
                self.daemon.start()
            self.assertEqual(sha256(before), sha256(os.path.join(store, 'catalog.db')), policy)
        self.daemon.arguments = []
        for name, path in kept.items():
            shutil.copy(path, os.path.join(store, name))
        self.daemon.start()
        self.test_objects()

    def test_its_catalog_is_kept_for_the_program_that_made_it(self):
        """Where it was migrated; with its packs, for a day."""
        before = os.path.join(self.golden, 'store', 'catalog.db')
        with open(before, 'rb') as file:
            schema = int.from_bytes(file.read(64)[60:], 'big')
        kept = os.path.join(self.folder, 'store', 'before-migration')
        migrated = schema < NEWEST_SCHEMA
        self.assertEqual(os.listdir(kept) if os.path.exists(kept) else [], [str(schema)] if migrated else [])
        with sqlite3.connect(f'file:{before}?immutable=1', uri=True) as catalog:
            dump = list(catalog.iterdump())
        if migrated:
            with sqlite3.connect(os.path.join(kept, str(schema), 'catalog.db')) as catalog:
                self.assertEqual(list(catalog.iterdump()), dump)
        with open(os.path.join(self.folder, 'store', 'backup-holds') if migrated else os.devnull) as file:
            self.assertEqual(' before-migration\n' in file.read(), migrated)

    def test_keys_behind_pinned_objects_are_gone(self):
        self.assertEqual(self.get(self.target('pinned/deleted')).status, 404)
        self.assertEqual(self.get(self.target('pinned/overwritten')).body, b'something else')

    def test_every_step_can_be_followed(self):
        for number, step in enumerate(self.expected['runs']['followed']):
            self.assertEqual(self.follow('--step', number), step['sha256'])

    def test_one_more_step(self):
        path = os.path.join(self.golden, 'step.safetensors')
        steps = self.expected['runs']['followed']
        self.assertEqual(self.follow(), steps[-1]['sha256'])
        self.daemon.client('publish', '--run', f"{self.expected['bucket']}/followed", '--take-over', '--step', len(steps), path)
        self.assertEqual(self.follow(), self.expected['step'])
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.get(f"/v1/runs/{self.expected['bucket']}/followed").json()['head'], len(steps))

    def test_keys_and_grants(self):
        reader = self.expected['reader']
        inside, outside = self.target('public/weights.bf16'), self.target('inline')
        signed = lambda path, key: Signer.of(self.daemon, key_id=key['key_id'], secret=key['secret']).headers('GET', path)
        self.assertEqual(self.get(inside, token=reader['token']).status, 200)
        self.assertEqual(self.get(outside, token=reader['token']).status, 403)
        self.assertEqual(self.daemon.request('PUT', inside, b'no', token=reader['token']).status, 403)
        self.assertEqual(self.get(inside, token=None, headers=signed(inside, reader)).status, 200)
        self.assertEqual(self.get(outside, token=None, headers=signed(outside, reader)).status, 403)
        self.assertEqual(self.get(outside, token=None, headers=signed(outside, self.expected['root'])).status, 200)
        self.assertEqual(self.expected['root']['token'], ROOT_TOKEN)

    def test_anchors(self):
        for target, known in self.expected.get('anchors', {}).items():
            self.assertEqual(self.sum_of(self.get(target).body), known, target)

    def test_versions_and_uploads(self):
        if 'history' in self.expected:
            history.check(self, self.daemon, self.expected['history'])

    def test_hub_files(self):
        if 'hub' in self.expected:
            hub.check(self, self.daemon, self.expected['hub'])

    def test_rebuilt_chunk_index_finds_old_chunks(self):
        known = self.expected['objects']['large text']
        body = self.get(self.target('large text')).body
        before = self.pack_bytes()
        self.assertEqual(self.daemon.request('PUT', self.target('again'), body).status, 200)
        self.assertLess(self.pack_bytes() - before, 1024)
        self.assertEqual(self.sum_of(self.get(self.target('again')).body), known['sha256'])

    def test_it_is_checked_and_clean_once_it_was_started(self):
        self.daemon.stop()
        self.daemon.check_store()
        fresh = os.path.join(self.folder, 'fresh')
        shutil.copytree(os.path.join(self.golden, 'store'), fresh)
        os.chmod(fresh, 0o700)
        os.chmod(os.path.join(fresh, 'master.key'), 0o600)
        done = self.daemon.command('fsck', '--json', '--data', fresh)
        found = [finding['kind'] for finding in json.loads(done.stdout)['findings'] if finding['severity'] != 'note']
        if done.returncode == 8:
            self.assertIn('Start the server once', done.stderr)
        else:  # today's schema, from before there was a journal
            self.assertEqual((done.returncode, found), (4, ['journal']))


class Deltas(Golden):
    part = 'deltas'

    def setUp(self):
        super().setUp()
        self.deltas = os.path.join(self.golden, 'deltas')
        self.out = os.path.join(self.folder, 'out')

    def apply(self, base, delta):
        return subprocess.run([CLIENT, 'apply', base, os.path.join(self.deltas, delta), self.out], capture_output=True, text=True, timeout=60)

    def base(self, name):
        path = os.path.join(self.deltas, name)
        if not name.endswith('.gz'):
            return path
        plain = os.path.join(self.folder, name[:-3])
        with gzip.open(path) as source, open(plain, 'wb') as target:
            shutil.copyfileobj(source, target)
        return plain

    def found(self, name):
        """Names in version 0.1.0 were of files, without their suffix."""
        return name if os.path.exists(os.path.join(self.deltas, name)) else name + '.safetensors'

    def test_deltas_make_the_same_checkpoints(self):
        for name, (base, known) in self.expected['deltas']['applied'].items():
            done = self.apply(self.base(base), self.found(name))
            self.assertEqual(done.returncode, 0, (name, done.stderr))
            self.assertEqual(sha256(self.out), known, name)
            os.remove(self.out)

    def test_folders(self):
        for name, (base, known) in self.expected['deltas'].get('folders', {'sharded-delta': ['sharded-0', 'sharded-1']}).items():
            done = self.apply(self.base(base), name)
            self.assertEqual(done.returncode, 0, (name, done.stderr))
            self.assert_same_tree(self.out, self.base(known))
            shutil.rmtree(self.out)

    def test_bad_deltas_are_refused(self):
        base = self.base('base.safetensors')
        for name, (status, word) in self.expected['deltas']['refused'].items():
            if name == 'full-checkpoint':  # since then a full checkpoint of the base's tensors is a delta too
                continue
            done = self.apply(base, self.found(f'bad/{name}'))
            self.assertIn(done.returncode, {status} | EXIT_CODES_SINCE.get(status, set()), (name, done.stderr))
            self.assertIn(word, done.stderr, name)
            self.assertEqual(os.listdir(self.folder), [], name)


if __name__ == '__main__':
    unittest.main()
