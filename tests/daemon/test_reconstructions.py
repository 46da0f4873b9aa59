"""Files by their Xet hash, whoever stored them and however: reconstructions, fetch URLs, and who may have them."""
import json
import os
import random
import tempfile
import time
import unittest

from tests.daemon.test_derived import wait_for_swaps
from tests.daemon.test_gc import gc
from tests.support import xet
from tests.support.checkpoints import expand_small
from tests.support.daemon import Daemon, bytes_alone
from tests.support.s3 import Bucket

ZERO = bytes(32)
U64_MAX = 18446744073709551614


def hash_of(*parts):
    return xet.file_hash([(xet.chunk_hash(piece), len(piece)) for part in parts for piece in xet.chunks(part)])


class Reconstructions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(tls=False)
        cls.daemon.start()
        cls.bucket = Bucket(cls.daemon, 'data')
        cls.cas = xet.Cas(cls.daemon, 'main/data')
        cls.random = random.Random(8)
        cls.noise = cls.random.randbytes(700_000)

    @classmethod
    def tearDownClass(cls):
        cls.bucket.close()
        cls.daemon.__exit__()

    def check(self, raw_hash, data, cas=None):
        for version in (1, 2):
            self.assertEqual((cas or self.cas).download(raw_hash, version), data)

    def test_objects_of_any_size(self):
        text = b''.join(b'%d: the same words over and over, which takes little room\n' % i for i in range(9000))
        for size in (1, 300, 1024, 1025, 8191, 8192, 131072, 131073):
            self.bucket.put(f'size/{size}', self.noise[:size])
            self.check(hash_of(self.noise[:size]), self.noise[:size])
        self.bucket.put('text', text)
        self.check(hash_of(text), text)
        self.bucket.put('empty', b'')
        reply = self.cas.reconstruction(ZERO, 2)
        self.assertEqual((reply.status, reply.json()), (200, {'offset_into_first_range': 0, 'terms': [], 'xorbs': {}}))
        self.assertEqual(reply.headers['Cache-Control'], 'private, no-store')
        self.assertEqual(self.cas.reconstruction(ZERO, 2, '0-0').status, 416)

    def test_ranges(self):
        self.bucket.put('ranges', self.noise)
        name = hash_of(self.noise)
        for first, last in [(0, 0), (0, 699_999), (699_999, 699_999), (65_535, 65_537)] + [
                sorted(self.random.sample(range(700_000), 2)) for _ in range(10)]:
            for version in (1, 2):
                self.assertEqual(self.cas.download(name, version, f'{first}-{last}'), self.noise[first:last + 1])
        self.assertEqual(self.cas.download(name, 2, f'600000-{U64_MAX}'), self.noise[600_000:])
        for text in ('700000-', f'256000000-{U64_MAX}', '9-8', 'x-9', '-0', '0-1,2-3'):
            for version in (1, 2):
                self.assertEqual(self.cas.reconstruction(name, version, text).status, 416, text)
        reply = self.cas.request('HEAD', f'/v1/files/{xet.text(name)}')
        self.assertEqual((reply.status, reply.headers['Content-Length']), (200, '700000'))

    def test_multipart_copies_and_shared_chunks(self):
        parts = [self.random.randbytes(5 * 1024 * 1024), self.random.randbytes(1_000_000)]
        self.bucket.upload('many', parts)
        self.bucket.copy('/data/many', 'copied')
        whole = b''.join(parts)
        name = hash_of(*parts)
        self.wait_for_hash(name)
        self.check(name, whole)
        self.bucket.ask('DELETE', 'many')
        self.check(name, whole)
        twice = whole[:2_000_000] + b'between' + whole[1_000_000:2_500_000]
        self.bucket.put('twice', twice)
        self.check(hash_of(twice), twice)

    def wait_for_hash(self, name):
        """File hashes of multipart objects are worked out in the background."""
        limit = time.monotonic() + 60
        while self.cas.reconstruction(name).status == 404 and time.monotonic() < limit:
            time.sleep(0.1)

    def test_files_of_shards(self):
        pieces = xet.chunks(self.random.randbytes(900_000))
        xorb, other = xet.Xorb(pieces[:-3]), xet.Xorb(pieces[-3:])
        count = len(xorb.pieces)
        terms = [xet.term(xorb, 0, 2), xet.term(other), xet.term(xorb, 4, 6), xet.term(xorb, 5, count), xet.term(xorb, 1, 2)]
        chunks = pieces[0:2] + pieces[-3:] + pieces[4:6] + pieces[5:count] + pieces[1:2]
        name = xet.file_hash([(xet.chunk_hash(piece), len(piece)) for piece in chunks])
        for one in (xorb, other):
            self.assertEqual(self.cas.put_xorb(one).status, 200)
        shard = xet.Shard().add_file(name, terms).add_xorb(xorb.hash, xorb.entries).add_xorb(other.hash, other.entries)
        self.assertEqual(self.cas.put_shard(shard).status, 200)
        self.check(name, b''.join(chunks))

        one = self.cas.reconstruction(name, 1).json()
        self.assertEqual([(t['hash'], t['range']['start'], t['range']['end']) for t in one['terms']],
                         [(xet.text(t.xorb), t.first, t.end) for t in terms])
        body, ends = xorb.body(), [0]
        for piece in xorb.pieces:
            ends.append(ends[-1] + 8 + len(piece))
        entries = one['fetch_info'][xet.text(xorb.hash)]
        self.assertEqual([(e['range'], e['url_range']) for e in entries],
                         [({'start': a, 'end': b}, {'start': ends[a], 'end': ends[b] - 1}) for a, b in ((0, 2), (4, count))])

        two = self.cas.reconstruction(name, 2).json()
        self.assertEqual(one['terms'], two['terms'])
        [entry] = two['xorbs'][xet.text(xorb.hash)]
        self.assertEqual([(r['chunks'], r['bytes']) for r in entry['ranges']], [(e['range'], e['url_range']) for e in entries])
        joined = ','.join(f'{r["bytes"]["start"]}-{r["bytes"]["end"]}' for r in entry['ranges'])
        reply = self.cas.fetch(entry['url'], joined)
        self.assertEqual((reply.status, reply.headers.get_content_type()), (206, 'multipart/byteranges'))
        boundary = reply.headers['Content-Type'].split('boundary=')[1]
        self.assertGreaterEqual(len(boundary), 40)
        parts = reply.body.split(f'--{boundary}'.encode())
        self.assertEqual((parts[0], parts[-1]), (b'', b'--\r\n'))
        for part, bounds in zip(parts[1:-1], entry['ranges'], strict=True):
            first, last = bounds['bytes']['start'], bounds['bytes']['end']
            head, data = part[2:-2].split(b'\r\n\r\n', 1)
            self.assertIn(f'Content-Range: bytes {first}-{last}/{len(body)}'.encode(), head)
            self.assertEqual(data, body[first:last + 1])
        self.assertEqual(self.cas.fetch(entry['url']).status, 400)  # which of them?
        self.assertEqual(self.cas.fetch(entry['url'], f'0-{len(body) - 1}').status, 403)  # not what is between

        batch = self.cas.request('GET', f'/v1/reconstructions?file_id={xet.text(name)}&file_id={"a" * 64}').json()
        self.assertEqual(batch['files'], {xet.text(name): one['terms']})
        self.assertEqual(set(batch['fetch_info']), set(one['fetch_info']))

    @bytes_alone
    def test_who_may(self):
        data = self.noise[1000:400_000]
        name = hash_of(data)
        private_bucket, public = Bucket(self.daemon, 'private'), Bucket(self.daemon, 'public')
        self.addCleanup(private_bucket.close)
        self.addCleanup(public.close)
        private_bucket.put('in/a', data)
        other = self.daemon.add_key('--namespace', 'other')['token']
        reader = self.daemon.add_key('--namespace', 'main', '--grant', 'private/out/=read,write')['token']
        private = xet.Cas(self.daemon, 'main/private', 'read')
        self.check(name, data, private)
        self.assertEqual(self.cas.reconstruction(name).status, 404)  # another bucket
        self.assertEqual(xet.Cas(self.daemon, 'main/private', 'read', token=reader).reconstruction(name).status, 404)  # another prefix
        self.assertEqual(self.daemon.request('GET', f'/xet/v2/reconstructions/{xet.text(name)}', token=None).status, 401)
        self.assertEqual(self.daemon.request('GET', f'/xet/v2/reconstructions/{xet.text(name)}', token=other).status, 401)
        self.assertEqual(private.request('GET', '/v2/reconstructions/' + 'g' * 64).status, 400)

        public.put('a', data)
        self.assertEqual(public.ask('PUT', query='acl', headers={'x-amz-acl': 'public-read'}).status, 200)
        for token in (None, other):
            self.check(name, data, xet.Cas(self.daemon, 'main/public', 'read', token=token))

    def url_of(self, bucket, token):
        name = hash_of(self.noise[:30_000])
        plan = xet.Cas(self.daemon, f'main/{bucket}', 'read', token=token).reconstruction(name).json()
        return next(iter(plan['xorbs'].values()))[0]['url']

    def opens(self, url, byte_range='0-99'):
        return self.cas.fetch(url, byte_range).status

    def test_urls_end_with_what_permitted_them(self):
        bucket = Bucket(self.daemon, 'ended')
        self.addCleanup(bucket.close)
        bucket.put('a', self.noise[:30_000])
        key = self.daemon.add_key('--namespace', 'main', '--grant', 'ended=read')
        other = self.daemon.add_key('--namespace', 'main')
        self.assertEqual(bucket.ask('PUT', query='acl', headers={'x-amz-acl': 'public-read'}).status, 200)
        mine, others, nobodys = (self.url_of('ended', token) for token in (key['token'], other['token'], None))
        self.assertEqual([self.opens(url) for url in (mine, others, nobodys)], [206] * 3)
        self.daemon.admin('keys', 'revoke', key['key_id'])
        self.assertEqual([self.opens(url) for url in (mine, others, nobodys)], [403, 206, 206])
        self.assertEqual(bucket.ask('PUT', query='acl', headers={'x-amz-acl': 'private'}).status, 200)
        self.assertEqual([self.opens(url) for url in (mine, others, nobodys)], [403, 206, 403])

    def test_urls(self):
        self.bucket.put('urls', self.noise)
        plan = self.cas.reconstruction(hash_of(self.noise), 1, '300000-400000').json()
        [[entry]] = plan['fetch_info'].values()
        first, last = entry['url_range']['start'], entry['url_range']['end']
        good = self.cas.fetch(entry['url'], f'{first}-{last}')
        self.assertEqual((good.status, good.headers['Content-Range'].split('/')[0]), (206, f'bytes {first}-{last}'))
        self.assertIsNone(good.headers['ETag'])
        self.assertIn('private', good.headers['Cache-Control'])
        self.assertEqual((good.headers['X-Content-Type-Options'], good.headers['Content-Security-Policy']), ('nosniff', 'sandbox'))
        self.assertEqual(self.cas.fetch(entry['url']).body, good.body)
        for at in (-1, -40, -60, -90):
            url = entry['url'][:at] + ('A' if entry['url'][at] != 'A' else 'B') + (entry['url'][at + 1:] if at < -1 else '')
            reply = self.cas.fetch(url, f'{first}-{last}')
            self.assertEqual((reply.status, 'error' in reply.json()), (403, True))
        for text in (f'{first - 1}-{last}', f'{first}-{last + 1}', '0-5', f'{last + 1}-'):
            self.assertEqual(self.cas.fetch(entry['url'], text).status, 403, text)
        self.assertEqual(self.daemon.request('GET', '/xet/v1/fetch/', token=None).status, 404)

    @bytes_alone
    def test_urls_stay_out_of_the_log(self):
        self.bucket.put('secret', self.noise)
        plan = self.cas.reconstruction(hash_of(self.noise), 1).json()
        url = next(iter(plan['fetch_info'].values()))[0]['url']
        self.assertEqual(self.cas.fetch(url).status, 200)
        self.assertEqual(self.cas.fetch(url[:-1]).status, 403)
        self.daemon.await_log(' status=403 ')
        self.assertIn('path=/xet/v1/fetch/{token}', self.daemon.log())
        self.assertNotIn(url.rsplit('/', 1)[1][:40], self.daemon.log())

    @bytes_alone
    def test_telemetry(self):
        for target in ('/v1/telemetry', '/xet/v1/telemetry'):
            reply = self.daemon.request('POST', target, b'{"event":"xet_upload_summary"}', token=self.cas.token)
            self.assertEqual((reply.status, reply.body), (200, b'{}'))
        self.assertEqual(self.daemon.request('GET', '/xet/health', token=None).status, 200)
        self.assertEqual(self.cas.request('GET', '/v2/file-chunk-hashes/' + 'a' * 64).status, 404)


class WhatMoves(unittest.TestCase):
    def test_urls_survive_compaction_or_say_so(self):
        """Between the reconstruction and the fetch the pack is compacted: the right bytes, or 403 and a new reconstruction that works."""
        source = random.Random(3)
        keep, before_it, behind = source.randbytes(2_500_000), source.randbytes(3_000_000), source.randbytes(3_000_000)
        with Daemon(tls=False, arguments=['--xet-promise', '0', '--xet-answer-promise', '0']) as daemon:
            first = Bucket(daemon, 'data')
            first.put('all', before_it + keep + behind)
            first.close()
            daemon.stop()  # by then the index of chunks knows all of it
            daemon.start()
            bucket = Bucket(daemon, 'data')
            self.addCleanup(bucket.close)
            bucket.put('keep', keep)
            cas, name = xet.Cas(daemon, 'main/data'), hash_of(keep)
            entries = [e for es in cas.reconstruction(name, 1).json()['fetch_info'].values() for e in es]
            bounds = [f'{e["url_range"]["start"]}-{e["url_range"]["end"]}' for e in entries]
            self.assertGreater(max(e['url_range']['start'] for e in entries), 2_000_000)  # within the xorb of the large object
            before = [cas.fetch(e['url'], b).body for e, b in zip(entries, bounds)]
            bucket.ask('DELETE', 'all')
            report = daemon.request('POST', '/-/gc', b'{"live_percent":100}').json()
            self.assertGreater(report['packs_compacted'], 0, report)
            for entry, text, body in zip(entries, bounds, before):
                reply = cas.fetch(entry['url'], text)
                self.assertTrue(reply.status == 403 or (reply.status == 206 and reply.body == body), reply.status)
            self.assertEqual(cas.download(name), keep)
            moved = [e['url_range']['start'] for es in cas.reconstruction(name, 1).json()['fetch_info'].values() for e in es]
            self.assertLess(max(moved), 2_000_000)  # what is gone counts nothing
            bucket.ask('DELETE', 'keep')
            self.assertEqual(cas.reconstruction(name).status, 404)
            gc(daemon)
            self.assertEqual({cas.fetch(entry['url'], text).status for entry, text in zip(entries, bounds)}, {403})

    def check_derived_get(self, daemon, scratch, files):
        """Our client takes what the server would have to make into chunks as it is, unless it has chunks of its own."""
        key, seed, out = 'weights/ckpt/step_000002/model.safetensors', f'{scratch}/step_000001.safetensors', f'{scratch}/out'
        self.assertEqual(daemon.request('HEAD', f'/{key}').headers['x-deltabucket-derived'], 'true')
        for more, is_whole in (((), True), (('--seed', seed), False)):
            got = json.loads(daemon.client('get', key, out, '--json', *more).stdout.splitlines()[-1])
            self.assertEqual(got['received'] == len(files[2]), is_whole, got)
            with open(out, 'rb') as file:
                self.assertEqual(file.read(), files[2])
            os.remove(out)
        daemon.client('sync', 'weights', f'{scratch}/tree')
        with open(f'{scratch}/tree/ckpt/step_000002/model.safetensors', 'rb') as file:
            self.assertEqual(file.read(), files[2])

    def test_derived_objects_are_made_into_records(self):
        with tempfile.TemporaryDirectory() as scratch, Daemon(tls=False) as daemon:
            bucket = Bucket(daemon, 'weights')
            self.addCleanup(bucket.close)
            files = []
            for step, path in enumerate(expand_small(scratch, 3)):
                with open(path, 'rb') as file:
                    files.append(file.read())
                bucket.put(f'ckpt/step_{step:06d}/model.safetensors', files[step])
            wait_for_swaps(daemon, 2)
            cas = xet.Cas(daemon, 'main/weights', 'read')
            self.check_derived_get(daemon, scratch, files)
            tail = files[2][-100_000:]
            name = hash_of(files[2])
            size = len(files[2])
            self.assertEqual(cas.download(name, 2, f'{size - 100_000}-{size - 1}'), tail)
            self.assertEqual(cas.download(name, 1), files[2])


if __name__ == '__main__':
    unittest.main()
