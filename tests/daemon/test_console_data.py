"""The numbers behind the console: buckets, what their prefixes take, search, packs and the store."""
import hashlib
import json
import os
import random
import sqlite3
import time
import unittest
import urllib.parse

from tests.daemon.test_step_proof import FORMATS, STEPS, Proofs
from tests.support.checkpoints import read_safetensors, write_safetensors
from tests.support.daemon import ROOT_TOKEN, Daemon

KEYS = {'a': 1, 'a-b': 2, 'a/1': 3, 'a/2': 4, 'a/b/c': 5, 'a/b/d': 6, 'a0': 7, 'c//d': 8, 'Ünï/ö': 9, 'z': 10}

# of the table `versions`
COLUMNS = ('sequence id bucket key state is_marker kind size etag digest file_hash modified_ms headers part_set contents checksum has_id retired_ms'
           ' part_count checksum_kind checksum_value storage_class acl tags').split()


def get(daemon, path, token=ROOT_TOKEN, **query):
    text = urllib.parse.urlencode(query)
    reply = daemon.request('GET', path + ('?' + text if text else ''), token=token)
    if reply.status != 200:
        raise AssertionError(f'{path}: {reply.status} {reply.body}')
    return reply.json()


def pages(daemon, path, token=ROOT_TOKEN, **query):
    """All pages, each after the `next` of the one before."""
    page = get(daemon, path, token, **query)
    yield page
    while 'next' in page:
        page = get(daemon, path, token, **{**query, 'after': page['next']})
        yield page


def added_up(replies):
    """The replies of BucketUsage as one."""
    whole = {'objects': 0, 'bytes': 0, 'older_versions': 0, 'older_bytes': 0, 'entries': {}}
    for reply in replies:
        for name in ('objects', 'bytes', 'older_versions', 'older_bytes'):
            whole[name] += reply[name]
        for entry in reply['entries']:
            held = whole['entries'].setdefault(entry['name'], [entry['folder'], 0, 0])
            held[1] += entry['objects']
            held[2] += entry['bytes']
    return whole


def expected_entries(sizes, prefix):
    entries = {}
    for key, size in sizes.items():
        if key.startswith(prefix):
            first, slash, _ = key[len(prefix):].partition('/')
            held = entries.setdefault(first + slash, [bool(slash), 0, 0])
            held[1] += 1
            held[2] += size
    return entries


def make_key(daemon, *grants):
    return daemon.request('POST', '/-/keys', json.dumps({'grants': list(grants)}).encode()).json()['token']


class Buckets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        for bucket in ('first', 'second', 'third'):
            cls.daemon.request('PUT', f'/{bucket}')
        for key, size in KEYS.items():
            cls.daemon.request('PUT', f'/first/{urllib.parse.quote(key)}', os.urandom(size))
        cls.daemon.request('PUT', '/third?acl', b'', headers={'x-amz-acl': 'public-read'})
        for run in ('one', 'two'):
            cls.daemon.request('POST', f'/v1/runs/second/{run}', b'')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def test_list(self):
        whole = get(self.daemon, '/-/buckets')
        found = {bucket['bucket']: bucket for bucket in whole['buckets']}
        self.assertEqual(list(found), ['first', 'second', 'third'])
        self.assertEqual([found['first'][name] for name in ('objects', 'bytes', 'runs', 'public', 'versioning', 'namespace')],
                         [len(KEYS), sum(KEYS.values()), 0, False, 'never', 'main'])
        self.assertEqual([found['second']['runs'], found['third']['public']], [2, True])
        self.assertEqual(found['first']['may'], ['read', 'list', 'write', 'admin'])
        one_by_one = [bucket for page in pages(self.daemon, '/-/buckets', limit=1) for bucket in page['buckets']]
        self.assertEqual(one_by_one, whole['buckets'])

    def test_a_key_with_grants_sees_what_they_name(self):
        whole = make_key(self.daemon, 'first=read,list')
        part = make_key(self.daemon, 'first/a/=list', 'second/x/=write', 'nowhere=read')
        self.assertEqual([(b['bucket'], b['may'], b['objects']) for b in get(self.daemon, '/-/buckets', whole)['buckets']],
                         [('first', ['read', 'list'], len(KEYS))])
        seen = get(self.daemon, '/-/buckets', part)['buckets']
        self.assertEqual([(b['bucket'], b['may']) for b in seen], [('first', ['list']), ('second', ['write'])])
        for bucket in seen:  # sums over all of it would tell of what the key may not see
            self.assertFalse({'objects', 'bytes', 'updated', 'runs'} & set(bucket), bucket)

    def test_usage_by_prefix(self):
        for prefix in ('', 'a', 'a/', 'a/b/', 'Ünï', 'nothing'):
            reply = get(self.daemon, '/-/buckets/first/usage', prefix=prefix)
            entries = expected_entries(KEYS, prefix)
            self.assertEqual({e['name']: [e['folder'], e['objects'], e['bytes']] for e in reply['entries']}, entries, prefix)
            self.assertEqual([reply['objects'], reply['bytes'], reply['complete']],
                             [sum(e[1] for e in entries.values()), sum(e[2] for e in entries.values()), True])
            for limit in (1, 2, 3):
                replies = list(pages(self.daemon, '/-/buckets/first/usage', prefix=prefix, limit=limit))
                self.assertEqual(added_up(replies)['entries'], entries)
                self.assertEqual([r['complete'] for r in replies], [False] * (len(replies) - 1) + [True])
                self.assertLessEqual(max(len(r['entries']) for r in replies), limit)

    def test_usage_asks_for_list_of_the_prefix(self):
        token = make_key(self.daemon, 'first/a/=list')
        self.assertEqual(get(self.daemon, '/-/buckets/first/usage', token, prefix='a/')['objects'], 4)
        self.assertEqual(get(self.daemon, '/-/buckets/first/search', token, prefix='a/')['scanned'], 4)
        for path in ('usage', 'usage?prefix=', 'usage?prefix=a', 'search', 'search?prefix=a&contains=b'):
            self.assertEqual(self.daemon.request('GET', f'/-/buckets/first/{path}', token=token).status, 403, path)
        # what a page before said does not lead out of the prefix
        after = get(self.daemon, '/-/buckets/first/usage', limit=1)['next']
        reply = get(self.daemon, '/-/buckets/first/usage', token, prefix='a/', after=after)
        self.assertEqual({e['name'] for e in reply['entries']}, {'1', '2', 'b/'})
        behind = 'c' + b'b'.hex()
        self.assertEqual(get(self.daemon, '/-/buckets/first/usage', token, prefix='a/', after=behind)['entries'], [])

    def test_strange_positions_are_refused(self):
        for after in ('x', 'c6', 'czz', 'o', 'o1', 'o-61', 'oo-61', 'c' + 'ab' * 9000, 'o99999999999999999999-61'):
            reply = self.daemon.request('GET', f'/-/buckets/first/usage?after={urllib.parse.quote(after)}')
            self.assertEqual((reply.status, reply.code()), (400, 'invalid'), after)
        for path in ('/-/buckets?limit=0', '/-/buckets?limit=x', '/-/packs?after=-1', '/-/packs?limit=', '/-/buckets/first/search?limit=0'):
            self.assertEqual(self.daemon.request('GET', path).status, 400, path)

    def test_search(self):
        for contains in ('', 'b', '/b/', 'ö', 'nothing', 'A'):
            found = get(self.daemon, '/-/buckets/first/search', contains=contains)
            wanted = sorted((key for key in KEYS if contains in key), key=str.encode)
            self.assertEqual([o['key'] for o in found['objects']], wanted, contains)
            self.assertEqual([o['size'] for o in found['objects']], [KEYS[key] for key in wanted])
            self.assertEqual(found['scanned'], len(KEYS))
            by_one = list(pages(self.daemon, '/-/buckets/first/search', contains=contains, limit=1))
            self.assertEqual([o['key'] for page in by_one for o in page['objects']], wanted)
        body = self.daemon.request('GET', '/first/z').body
        self.assertEqual(get(self.daemon, '/-/buckets/first/search', prefix='z')['objects'][0]['etag'], hashlib.md5(body).hexdigest())
        # the prefix is not searched
        self.assertEqual(get(self.daemon, '/-/buckets/first/search', prefix='a/', contains='a')['objects'], [])


class Versions(unittest.TestCase):
    def test_older_versions_are_counted(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/kept')
            daemon.request('PUT', '/kept?versioning',
                           b'<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')
            for size in (100, 200, 300):
                for key in ('a/x', 'a/y', 'b'):
                    daemon.request('PUT', f'/kept/{key}', os.urandom(size))
            daemon.request('DELETE', '/kept/b')  # a marker, and one more older version
            wanted = {'objects': 2, 'bytes': 600, 'older_versions': 7, 'older_bytes': 1200}
            for limit in (1, 100):
                whole = added_up(pages(daemon, '/-/buckets/kept/usage', limit=limit))
                self.assertEqual({name: whole[name] for name in wanted}, wanted)
            below = get(daemon, '/-/buckets/kept/usage', prefix='a/')
            self.assertEqual([below['older_versions'], below['older_bytes']], [4, 600])
            # a bucket that lets everyone list its objects does not show its versions
            daemon.request('PUT', '/kept?acl', b'', headers={'x-amz-acl': 'public-read'})
            stranger = json.loads(daemon.request('POST', '/-/keys', b'{"namespace":"elsewhere"}').body)['token']
            public = get(daemon, '/-/buckets/kept/usage', stranger)
            self.assertEqual([public['objects'], 'older_versions' in public], [2, False])
            after = 'o1-' + b'a'.hex()
            self.assertEqual(daemon.request('GET', f'/-/buckets/kept/usage?after={after}', token=stranger).status, 400)
            # what reads 50,000 rows is not for everyone
            self.assertEqual(len(get(daemon, '/-/buckets/kept/search', stranger)['objects']), 2)
            for target in ('kept/usage', 'kept/search', 'none/search'):
                reply = daemon.request('GET', f'/-/buckets/{target}', token=None)
                self.assertEqual((reply.status, reply.json()['error']['code']), (401, 'no_credentials'))


class Many(unittest.TestCase):
    def test_one_request_reads_a_bounded_number_of_keys(self):
        """Rows as PutObject of small objects would make them, 120,000 in one folder and as many older versions of one key."""
        with Daemon(tls=False) as daemon:
            daemon.is_damaged = True  # the bytes of the new rows are not there
            daemon.request('PUT', '/many')
            daemon.request('PUT', '/many/folder/x', b'12345')
            columns = [row for row in COLUMNS if row not in ('sequence', 'key', 'state')]
            copy = (f"INSERT INTO versions (key, state, {', '.join(columns)}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                    f" WHERE i < 120000) SELECT {{}}, {', '.join(columns)} FROM n, versions WHERE key = CAST('folder/x' AS BLOB) AND state = 1")
            daemon.edit_catalog(copy.format("CAST('folder/' || printf('%06d', i) AS BLOB), 1"), copy.format("CAST('folder/old' AS BLOB), 2"))
            replies = list(pages(daemon, '/-/buckets/many/usage'))
            self.assertEqual([r['objects'] + r['older_versions'] for r in replies], [50_000] * 4 + [40_001])
            whole = added_up(replies)
            self.assertEqual(whole['entries'], {'folder/': [True, 120_001, 600_005]})
            self.assertEqual([whole['older_versions'], whole['older_bytes']], [120_000, 600_000])
            found = list(pages(daemon, '/-/buckets/many/search', contains='99999'))
            self.assertEqual([r['scanned'] for r in found], [50_000, 50_000, 20_001])
            self.assertEqual([o['key'] for r in found for o in r['objects']], ['folder/099999'])


class Store(unittest.TestCase):
    def test_sums_and_packs(self):
        with Daemon(tls=False) as daemon:
            daemon.request('PUT', '/space')
            for number in range(3):
                daemon.request('PUT', f'/space/large{number}', os.urandom(2_000_000))
            store = get(daemon, '/-/storage')
            packs = [pack for page in pages(daemon, '/-/packs', limit=1) for pack in page['packs']]
            self.assertEqual(store['packs']['count'], len(packs))
            self.assertEqual(store['packs']['bytes'], sum(pack['bytes'] for pack in packs))
            self.assertEqual(store['packs']['open'], sum(pack['state'] == 'open' for pack in packs))
            self.assertEqual(store['objects'], {'count': 3, 'logical_bytes': 6_000_000})
            self.assertEqual([store['gc'], store['damaged_chunks'], store['backup_holds']], [{'last': None, 'freed_bytes': 0}, 0, 0])
            self.assertEqual(store['packs']['live_bytes'], store['packs']['bytes'])
            self.assertEqual(sorted(pack['number'] for pack in packs), [pack['number'] for pack in packs])
            self.assertEqual(packs, get(daemon, '/-/packs')['packs'])
            daemon.request('DELETE', '/space/large0')
            lost = get(daemon, '/-/storage')
            self.assertLess(lost['packs']['live_bytes'], store['packs']['live_bytes'] - 1_900_000)
            freed = json.loads(daemon.admin('gc', '--json').stdout)
            after = get(daemon, '/-/storage')
            self.assertEqual(after['gc']['freed_bytes'], freed['bytes_freed'])
            self.assertEqual({name: after['gc']['last'][name] for name in freed}, freed)
            self.assertIn('ended', after['gc']['last'])
            self.assertLess(after['packs']['bytes'], store['packs']['bytes'] - 1_900_000)

    def test_storage_asks_for_metrics_and_packs_for_root(self):
        with Daemon(tls=False) as daemon:
            token = make_key(daemon, 'metrics')
            self.assertIn('packs', get(daemon, '/-/storage', token))
            self.assertEqual(daemon.request('GET', '/-/packs', token=token).status, 403)
            self.assertEqual(daemon.request('GET', '/-/storage', token=make_key(daemon)).status, 403)
            self.assertEqual(get(daemon, '/-/buckets', token), {'buckets': []})


def count_changed(before, after, width=2):
    """{name: elements whose bytes differ} of two checkpoint files."""
    old, new = read_safetensors(before), read_safetensors(after)
    kind = {1: 'B', 2: 'H', 4: 'I', 8: 'Q'}[width]
    return {name: sum(a != b for a, b in zip(memoryview(old[name][2]).cast(kind), memoryview(data).cast(kind)))
            for name, (_, _, data) in new.items()}


class Changes(Proofs):
    def counts(self, step):
        reply = self.call('GET', f'/steps/{step}/changes')
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()

    def pages(self, step, limit):
        """All tensors, read in pages."""
        tensors, at = [], 0
        while at is not None:
            page = self.call('GET', f'/steps/{step}/changes?from={at}&limit={limit}').json()
            self.assertLessEqual(len(page['tensors']), limit)
            tensors += page['tensors']
            at = page.get('next')
        return {**page, 'tensors': tensors}

    def check_counts(self, step, expected):
        """The three places that tell it say the same."""
        said = self.counts(step)
        self.assertEqual({tensor['name']: tensor['changed'] for tensor in said['tensors']}, expected)
        self.assertEqual(said['changed'], sum(expected.values()))
        self.assertEqual(said['elements'], sum(tensor['elements'] for tensor in said['tensors']))
        short = {'elements': said['changed'], 'of': said['elements']}
        self.assertEqual(self.call('GET', f'/steps/{step}').json()['changed'], short)
        listed = {known['step']: known for known in self.call('GET', '/steps').json()['steps']}
        self.assertEqual(listed[step]['changed'], short)
        return said

    def not_counted(self, step, why):
        reply = self.call('GET', f'/steps/{step}/changes')
        self.assertEqual((reply.status, reply.code()), (404, 'not_found'), reply.body)
        self.assertIn(why, reply.json()['error']['message'])
        known = self.call('GET', f'/steps/{step}').json()
        self.assertNotIn('changed', known)

    def test_every_format_is_counted(self):
        daemon = self.start()
        self.publish(0, self.anchor_form(0))
        for step in range(1, STEPS + 1):
            forms = [self.delta_form(step, form=FORMATS[step % len(FORMATS)])] + ([self.anchor_form(step)] if step == 2 else [])
            self.publish(step, *forms)
        self.assertEqual([step['verified'] for step in self.settled(STEPS + 1)], ['ok'] * (STEPS + 1))
        self.not_counted(0, 'no delta')
        whole = self.counts(1)
        self.assertNotIn('next', whole)
        for limit in (1, 3, len(whole['tensors'])):
            self.assertEqual(self.pages(1, limit), whole)
        self.assertEqual(self.call('GET', f'/steps/1/changes?from={len(whole["tensors"])}').json(), {**whole, 'tensors': []})
        self.assertEqual(self.call('GET', '/steps/1/changes?limit=0').code(), 'invalid')
        for step in range(1, STEPS + 1):
            said = self.check_counts(step, count_changed(self.checkpoints[step - 1], self.checkpoints[step]))
            tensors = read_safetensors(self.checkpoints[step])
            self.assertEqual([[t['dtype'], t['shape'], t['elements']] for t in said['tensors']],
                             [['BF16', tensors[t['name']][1], len(tensors[t['name']][2]) // 2] for t in said['tensors']])
        [_, *shown] = daemon.client('steps', 'models/run').stdout.splitlines()
        density = 100 * self.counts(STEPS)['changed'] / self.counts(STEPS)['elements']
        self.assertIn(f'{density:.2f}% changed', shown[STEPS])
        self.assertNotIn('changed', shown[0])
        told = json.loads(daemon.client('steps', '--json', 'models/run').stdout.splitlines()[STEPS])
        self.assertEqual(told['changed'], self.call('GET', f'/steps/{STEPS}').json()['changed'])

    def test_counts_go_with_their_steps(self):
        daemon = self.start()
        self.publish(0, self.anchor_form(0))
        self.publish(1, self.delta_form(1))
        self.publish(2, self.delta_form(2), self.anchor_form(2))
        self.settled(3)
        counts = self.counts(2)
        daemon.stop()
        daemon.start()
        self.assertEqual(self.counts(2), counts)
        self.assertEqual(self.call('DELETE', '/steps/1').status, 204)
        gone = self.call('GET', '/steps/1/changes')
        self.assertEqual((gone.status, gone.code()), (410, 'collected'))
        self.assertEqual(self.rows(), 1)
        self.assertEqual(self.counts(2), counts)
        self.assertEqual(self.call('DELETE', '').status, 204)
        self.assertEqual(self.call('GET', '/steps/2/changes').status, 404)
        self.waits_until(lambda: self.rows() == 0)

    def rows(self):
        """Of the table, in the catalog with all that is in its log."""
        with sqlite3.connect(f'file:{self.daemon.folder}/catalog.db?mode=ro', uri=True) as catalog:
            return catalog.execute('SELECT count(*) FROM step_changes').fetchone()[0]

    def waits_until(self, is_so):
        limit = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), limit, self.daemon.log())
            time.sleep(0.02)

    def test_what_is_not_known_is_not_told(self):
        daemon = self.start('--step-work=no')
        self.publish(0, self.anchor_form(0))
        self.publish(1, self.delta_form(1))
        self.not_counted(1, 'not through yet')
        self.publish(2, self.anchor_form(2))
        self.publish(3, self.delta_form(3, target=4))
        daemon.stop()
        daemon.arguments = []
        daemon.start()
        self.assertEqual([step['verified'] for step in self.settled(4)], ['ok', 'ok', 'ok', 'failed'])
        self.check_counts(1, count_changed(self.checkpoints[0], self.checkpoints[1]))
        self.not_counted(2, 'no delta')
        self.not_counted(3, 'failed')
        self.assertEqual(self.call('GET', '/steps/9/changes').code(), 'no_step')
        self.assertEqual(self.call('PUT', '/settings', {'verify': False}).status, 200)
        self.publish(4, self.anchor_form(4))
        self.publish(5, self.delta_form(5))
        self.not_counted(5, 'verify was off')

    def test_kills_between_lose_no_count(self):
        daemon = self.start('--step-rate', '1')  # MiB/s: slow enough to be caught at it
        self.publish(0, self.anchor_form(0))
        for step in range(1, STEPS + 1):
            self.publish(step, self.delta_form(step))
            daemon.kill()
            daemon.start()
        daemon.stop()
        daemon.arguments = []
        daemon.start()
        self.assertEqual([step['verified'] for step in self.settled(STEPS + 1)], ['ok'] * (STEPS + 1))
        for step in range(1, STEPS + 1):
            self.check_counts(step, count_changed(self.checkpoints[step - 1], self.checkpoints[step]))
        daemon.stop()
        daemon.command('fsck')
        daemon.start()

    def test_what_a_publisher_sends_is_counted(self):
        """Of all widths: dtypes of 1, 2, 4 and 8 bytes, a tensor that stays, one that changes whole, one without elements, and steps that are
        equal. And it says how long it took."""
        daemon = self.start()
        paths = []
        for step in range(3):
            source = random.Random(min(step, 1))
            tensors = {'whole': ('F32', [3000], source.randbytes(12000)), 'empty': ('F32', [0], b''), 'stays': ('BF16', [5], b'0123456789')}
            for name, dtype, width in (('one', 'F8_E4M3', 1), ('two', 'F16', 2), ('four', 'F32', 4), ('eight', 'I64', 8)):
                data = bytearray(width * 70_000)
                for place in range(7 if step else 0):
                    data[place * 9999 * width] = 1
                tensors[name] = (dtype, [70_000], bytes(data))
            path = os.path.join(self.scratch, f'widths-{step}.safetensors')
            write_safetensors(path, tensors)
            paths.append(path)
            daemon.client('publish', '--run', 'models/run', '--take-over', '--anchor', 'never' if step else 'always', path)
        known = self.settled(3)
        self.assertEqual([step['verified'] for step in known], ['ok'] * 3)
        expected = {'empty': 0, 'stays': 0, 'one': 7, 'two': 7, 'four': 7, 'eight': 7}
        old, new = (read_safetensors(path)['whole'][2] for path in paths[:2])
        said = self.check_counts(1, {'whole': sum(old[at:at + 4] != new[at:at + 4] for at in range(0, len(old), 4)), **expected})
        self.assertEqual(said['elements'], 3000 + 5 + 4 * 70_000)
        self.assertEqual(self.counts(2)['changed'], 0)
        self.assertEqual(known[2]['changed'], {'elements': 0, 'of': said['elements']})
        for step in known:
            self.assertIs(type(step['publish_ms']), int)
            self.assertLess(step['publish_ms'], 120_000)
        [_, *shown] = daemon.client('steps', 'models/run').stdout.splitlines()
        self.assertRegex(shown[2], r'  0\.00% changed  (\d+ ms|\d+\.\d s)$')

    def test_a_publish_is_repeated_whatever_it_took(self):
        self.start()
        form = self.anchor_form(0)
        self.assertEqual(self.publish(0, form, publish_ms=1234)['publish_ms'], 1234)
        self.assertEqual(self.publish(0, form, publish_ms=99)['publish_ms'], 1234)
        self.publish(0, form)
        self.assertEqual(self.call('GET', '/steps/0').json()['publish_ms'], 1234)
        self.assertNotIn('publish_ms', self.publish(1, self.delta_form(1)))
        self.assertNotIn('publish_ms', self.call('GET', '/steps').json()['steps'][1])
        most = 31 * 24 * 3600 * 1000
        for wrong in (-1, most + 1, 1.5, '7', 2**70, [], True):
            body = {'step': 2, 'epoch': 1, 'digest': self.digests[2], 'forms': [form], 'files': [], 'publish_ms': wrong,
                    'base': {'step': 1, 'digest': self.digests[1]}}
            reply = self.call('PUT', '/steps/2', body)
            self.assertEqual((reply.status, reply.code()), (400, 'invalid'), (wrong, reply.body))
        # what a publisher says of changes is not asked for
        self.assertNotIn('changed', self.publish(2, self.anchor_form(2), publish_ms=most, changed={'elements': 1, 'of': 2}))
        self.settled(3)
        self.assertNotIn('changed', self.call('GET', '/steps/2').json())


if __name__ == '__main__':
    unittest.main()
