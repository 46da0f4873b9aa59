"""One store behind the faces: S3's objects, versions, published steps and derived checkpoints are files of the Hub's bucket, and the other way round."""
import os
import tempfile
import time
import unittest

from tests.daemon.test_derived import wait_for_swaps
from tests.support.checkpoints import expand_small, sha256
from tests.support.clients import content, md5, read, write
from tests.support.hub import MISSING, NEWEST, HubCase, ready
from tests.support.s3 import Bucket, quote

PART = 5 << 20


@unittest.skipUnless(ready(NEWEST), MISSING)
class HubAndS3(HubCase):
    version = NEWEST

    def bucket(self, name):
        self.new_bucket(name)
        found = Bucket.__new__(Bucket)
        found.daemon, found.name, found.connection = self.daemon, name, self.daemon.connect()
        self.addCleanup(found.close)
        return found

    def assertHubReads(self, bucket, key, data):
        name = f'main/{bucket.name}'
        self.assertSame(self.download(name, key), data)
        self.assertSame(self.fs.cat_file(f'buckets/{name}/{key}'), data)
        file, = self.hub.get_bucket_paths_info(name, [key])
        self.assertEqual((file['size'], len(file['xet_hash'])), (len(data), 64))

    def test_put_then_download(self):
        bucket = self.bucket('from-s3')
        for size in (0, 1, 1000, 1024, 1025, 8192, 131073, 2_000_000):
            data = content(size)
            self.assertEqual(bucket.put(f'puts/{size}', data).status, 200)
            self.assertHubReads(bucket, f'puts/{size}', data)
        self.assertEqual(self.hub.bucket_info('main/from-s3')['total_files'], 8)
        self.fs.get('buckets/main/from-s3/puts', self.path('puts'), recursive=True)
        self.assertEqual({int(name): os.path.getsize(self.path('puts', name)) for name in os.listdir(self.path('puts'))}[131073], 131073)

    def test_multipart_then_download(self):
        bucket = self.bucket('from-parts')
        pieces = [content(PART, 1), content(PART + 3, 2), content(77, 3)]
        self.assertEqual(bucket.upload('dir/parts', pieces).status, 200)
        self.assertHubReads(bucket, 'dir/parts', b''.join(pieces))
        start = PART - 100
        self.assertSame(self.own.fs_read('buckets/main/from-parts/dir/parts', start, 200), b''.join(pieces)[start:start + 200])

    def test_upload_then_get(self):
        bucket = self.bucket('from-hub')
        for size in (0, 1, 1024, 131073, 3_000_000):
            data = content(size, 5)
            self.hub.batch_bucket_files('main/from-hub', add=[(data, f'files/ü {size}')])
            got = bucket.ask('GET', f'files/ü {size}')
            self.assertEqual(got.status, 200)
            self.assertSame(got.body, data)
            head = bucket.ask('HEAD', f'files/ü {size}')
            self.assertEqual((int(head.headers['Content-Length']), head.headers['ETag']), (size, got.headers['ETag']))
            if size:
                part = bucket.ask('GET', f'files/ü {size}', headers={'Range': f'bytes={size // 2}-'})
                self.assertEqual(part.status, 206)
                self.assertSame(part.body, data[size // 2:])
        copied = bucket.copy(f'/from-hub/{quote("files/ü 3000000")}', 'copied')
        self.assertEqual(copied.status, 200)
        self.assertSame(self.download('main/from-hub', 'copied'), content(3_000_000, 5))

    def test_the_own_command(self):
        """`deltabucket put` sends codecs that no Xet client knows: those see plain records. What hf sent, `deltabucket get` reads."""
        bucket, data = self.bucket('own-command'), b''.join(bytes((60 + at % 3, value)) for at, value in enumerate(content(700_000, 11)))
        path = write(self.path('own.safetensors'), data)
        self.daemon.client('put', path, 'own-command/put')
        self.assertHubReads(bucket, 'put', data)
        self.upload('main/own-command', {'again': data, 'changed': data[:500_000] + b'!' + data[500_000:]}, self.fresh_driver('own-command'))
        self.daemon.client('get', 'own-command/changed', self.path('own-back'))
        self.assertSame(read(self.path('own-back')), data[:500_000] + b'!' + data[500_000:])
        self.assertHubReads(bucket, 'again', data)

    def test_another_namespace(self):
        """The Hub's `team/x` is S3's `team--x`."""
        token = self.daemon.add_key('--namespace', 'team')['token']
        self.hub.create_bucket('team/x', token=token)
        self.hub.batch_bucket_files('team/x', add=[(b'of the team', 'file')], token=token)
        reply = self.daemon.request('GET', '/team--x/file', token=token)
        self.assertEqual((reply.status, reply.body), (200, b'of the team'))
        self.assertEqual(self.daemon.request('PUT', '/team--made', token=token).status, 200)
        self.assertEqual([bucket['id'] for bucket in self.hub.list_buckets('team', token=token)], ['team/made', 'team/x'])

    def test_changes_are_seen_at_once(self):
        bucket = self.bucket('changes')
        self.hub.batch_bucket_files('main/changes', add=[(b'first', 'file')])
        self.assertEqual(bucket.put('file', b'through S3').status, 200)
        self.assertFiles('main/changes', {'file': b'through S3'})
        self.assertEqual(bucket.ask('DELETE', 'file').status, 204)
        self.assertFiles('main/changes', {})
        with self.fails('EntryNotFoundError'):
            self.hub.get_bucket_file_metadata('main/changes', 'file')

    def test_versions(self):
        bucket = self.bucket('versioned')
        bucket.set_versioning('Enabled')
        first = bucket.put('file', b'the first').headers['x-amz-version-id']
        self.hub.batch_bucket_files('main/versioned', add=[(b'the second, by the Hub', 'file')])
        self.assertFiles('main/versioned', {'file': b'the second, by the Hub'})
        self.hub.batch_bucket_files('main/versioned', delete=['file'])
        self.assertFiles('main/versioned', {})
        self.assertEqual(bucket.ask('GET', 'file', query={'versionId': first}).body, b'the first')

    def test_a_bucket_made_through_s3(self):
        self.assertEqual(self.daemon.request('PUT', '/s3-made').status, 200)
        self.assertTrue(self.hub.bucket_info('main/s3-made')['private'])
        self.hub.batch_bucket_files('main/s3-made', add=[(b'x', 'x')])
        reply = self.daemon.request('GET', '/s3-made/x')
        self.assertEqual((reply.status, reply.body), (200, b'x'))
        self.hub.delete_bucket('main/s3-made')
        self.assertEqual(self.daemon.request('HEAD', '/s3-made').status, 404)

    def test_md5_of_s3_stays(self):
        bucket, data = self.bucket('etags'), content(400_000, 9)
        self.assertEqual(bucket.put('file', data).headers['ETag'], f'"{md5(data)}"')
        self.hub.get_bucket_file_metadata('main/etags', 'file')
        self.assertEqual(bucket.ask('HEAD', 'file').headers['ETag'], f'"{md5(data)}"')


@unittest.skipUnless(ready(NEWEST), MISSING)
class HubAndSteps(HubCase):
    version = NEWEST
    steps = 4

    @classmethod
    def prepare(cls):
        super().prepare()
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.paths = expand_small(scratch.name, cls.steps)

    def test_derived_checkpoints(self):
        bucket = self.new_bucket('derived')
        for step, path in enumerate(self.paths):
            self.assertEqual(self.daemon.request('PUT', f'/derived/ckpt/{step}.safetensors', read(path)).status, 200)
        before = {file['path']: file['xet_hash'] for file in self.hub.list_bucket_tree(bucket, recursive=True)}
        wait_for_swaps(self.daemon, self.steps)
        after = {file['path']: file['xet_hash'] for file in self.hub.list_bucket_tree(bucket, recursive=True)}
        self.assertEqual(after, before)
        for step, path in enumerate(self.paths):
            self.assertSame(self.download(bucket, f'ckpt/{step}.safetensors'), read(path))
        data = read(self.paths[-1])
        self.assertSame(self.own.fs_read(f'buckets/{bucket}/ckpt/{self.steps}.safetensors', 500_000, 90_000), data[500_000:590_000])

    def settled_files(self, bucket, run, steps):
        """Once the server has proven all steps and shows an anchor that it makes no more: the one that it shows moves on with the steps."""
        files = None
        while True:
            before, files = files, {file['path']: file['size'] for file in self.hub.list_bucket_tree(bucket, recursive=True)}
            proofs = [self.daemon.request('GET', f'/v1/runs/{run}/steps/{step}').json()['verified'] for step in range(steps)]
            if proofs == ['ok'] * steps and files == before:
                return files
            time.sleep(0.5)

    def test_published_steps(self):
        bucket = self.new_bucket('published')
        for step in range(3):
            self.daemon.client('publish', '--run', 'published/run', '--step', step, self.paths[step])
        files = self.settled_files(bucket, 'published/run', 3)
        down = self.path('published')
        self.own.sync(f'hf://buckets/{bucket}', down)
        for name, size in files.items():
            reply = self.daemon.request('GET', f'/published/{quote(name)}')
            self.assertEqual((reply.status, len(reply.body)), (200, size))
            self.assertSame(read(os.path.join(down, name)), reply.body)
        self.assertIn(sha256(self.paths[0]), {sha256(os.path.join(down, name)) for name in files})


if __name__ == '__main__':
    unittest.main()
