"""Objects by `deltabucket.Bucket` and by fsspec."""
import os
import pickle
import tempfile
import unittest

from tests.support.clients import content, read, tree, write
from tests.support.daemon import Daemon
from tests.support.package import package_is_ready, settings_of

if not package_is_ready('fsspec'):
    raise unittest.SkipTest('setup/clients has not installed numpy, ml_dtypes, cffi and fsspec')

import numpy  # noqa: E402
import deltabucket  # noqa: E402
from deltabucket.filesystem import DeltaBucketFileSystem  # noqa: E402


class BucketCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon())
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())

    def bucket(self, name=None):
        """A bucket of this test alone, which exists."""
        made = deltabucket.Bucket(name or self.id().rsplit('_', 1)[-1], **settings_of(self.daemon))
        self.addCleanup(made.close)
        made.create()
        return made


class Objects(BucketCase):
    def test_bytes(self):
        bucket = self.bucket()
        data = content(300_000)
        for source in (data, bytearray(data), memoryview(data)):
            bucket.put('a/b', source)
            self.assertEqual(bucket.get('a/b'), data)
        bucket.put('a/b', memoryview(data)[::2])
        self.assertEqual(bucket.get('a/b'), data[::2])
        bucket.put('empty', b'')
        self.assertEqual(bucket.get('empty'), b'')

    def test_files(self):
        bucket = self.bucket()
        data = content(3_000_000)
        path = write(os.path.join(self.folder, 'sent'), data)
        bucket.put('file', path)
        target = os.path.join(self.folder, 'got')
        self.assertIsNone(bucket.get('file', target))
        self.assertEqual(read(target), data)

    def test_what_cannot_be_content_or_a_target(self):
        bucket = self.bucket('refused')
        bucket.put('file', b'data')
        with self.assertRaisesRegex(TypeError, "content of 'file' is a dict; it must be bytes"):
            bucket.put('file', {'a': 1})
        folder = os.path.join(self.folder, 'target')
        os.mkdir(folder)
        for path in (folder, folder + '/'):
            with self.assertRaisesRegex(deltabucket.Invalid, 'is a folder'):
                bucket.get('file', path)
        self.assertEqual(os.listdir(folder), [])
        self.assertFalse(os.path.exists(folder + '.part'))
        self.assertIn("Bucket('refused', ", repr(bucket))

    def test_ranges(self):
        bucket = self.bucket()
        bucket.put('key', bytes(range(100)))
        self.assertEqual(bucket.read('key', 10, 5), bytes(range(10, 15)))
        self.assertEqual(bucket.read('key', 95, 50), bytes(range(95, 100)))
        self.assertEqual(bucket.read('key', 100, 50), b'')
        into = bytearray(10)
        self.assertEqual(bucket.read_into('key', 95, memoryview(into)[2:]), 5)
        self.assertEqual(into, b'\0\0' + bytes(range(95, 100)) + b'\0\0\0')
        for call in (lambda: bucket.read('key', -1, 5), lambda: bucket.read_into('key', -1, into),
                     lambda: bucket.read('key', 0, -1)):
            with self.assertRaises(ValueError):
                call()

    def test_lists(self):
        bucket = self.bucket()
        for key in ('a/1', 'a/2', 'b', 'ü/3'):
            bucket.put(key, key.encode())
        self.assertEqual([one.key for one in bucket.list()], ['a/1', 'a/2', 'b', 'ü/3'])
        self.assertEqual([one.key for one in bucket.list('a/')], ['a/1', 'a/2'])
        groups = bucket.list(delimiter='/')
        self.assertEqual([(one.key, one.size) for one in groups], [('a/', 0), ('b', 1), ('ü/', 0)])
        found = bucket.head('b')
        self.assertEqual((found.key, found.size), ('b', 1))
        self.assertIn(found.etag, [one.etag for one in groups])
        self.assertIsNotNone(found.modified.tzinfo)
        bucket.remove('b')
        bucket.remove('b')
        self.assertEqual([one.key for one in bucket.list('b')], [])

    def test_folders(self):
        """Up and down again: what differs moves, what the source lacks goes when that is asked for,
        and a dry run changes nothing."""
        bucket = deltabucket.Bucket('folders', **settings_of(self.daemon))
        self.addCleanup(bucket.close)
        here, there = (os.path.join(self.folder, name) for name in ('here', 'there'))
        data = content(3_000_000, 7)
        for name in ('a', 'deep/ü', 'old'):
            write(os.path.join(here, name), name.encode())
        write(os.path.join(here, 'large'), data)
        with self.assertRaises(deltabucket.NotFound):
            bucket.sync(here, 'run', direction='up')
        synced = bucket.sync(here, 'run', direction='up', create_bucket=True)
        self.assertEqual((synced.files, synced.moved, synced.moved_bytes, synced.removed),
                         (4, ('a', 'deep/ü', 'large', 'old'), 3_000_000 + 11, ()))
        self.assertGreater(synced.traffic_bytes, 3_000_000)
        bucket.put('beside', b'another folder')
        os.remove(os.path.join(here, 'old'))
        write(os.path.join(here, 'a'), b'b')
        write(os.path.join(here, 'large'), data[:1_500_000] + b'more' + data[1_500_000:])
        for dry in (True, False):
            synced = bucket.sync(here, 'run/', direction='up', delete=True, dry_run=dry)
            self.assertEqual((synced.files, synced.moved, synced.removed),
                             (3, ('a', 'large'), ('old',)))
            self.assertEqual(bucket.get('run/a'), b'a' if dry else b'b')
            self.assertLess(synced.traffic_bytes, 1_000_000)
        self.assertEqual([one.key for one in bucket.list()],
                         ['beside', 'run/a', 'run/deep/ü', 'run/large'])
        write(os.path.join(there, 'extra'), b'extra')
        synced = bucket.sync(there, 'run', direction='down')
        self.assertEqual((synced.moved, synced.removed), (('a', 'deep/ü', 'large'), ()))
        synced = bucket.sync(there, 'run', direction='down', delete=True)
        self.assertEqual((synced.moved, synced.traffic_bytes, synced.removed),
                         ((), 0, ('extra',)))
        self.assertEqual(tree(there), tree(here))

    def test_folders_that_are_refused(self):
        bucket = self.bucket()
        bucket.put('run/a', b'a')
        empty = os.path.join(self.folder, 'nothing')
        os.makedirs(empty)
        with self.assertRaisesRegex(deltabucket.NotFound, 'with delete this would empty'):
            bucket.sync(empty, 'run', direction='up', delete=True)
        with self.assertRaisesRegex(deltabucket.Invalid, 'up or down'):
            bucket.sync(empty, 'run', direction='sideways')
        with self.assertRaises(deltabucket.NotFound):
            bucket.sync(os.path.join(self.folder, 'nosuch'), direction='up')
        self.assertEqual(bucket.get('run/a'), b'a')
        bucket.put('bad/../out', b'')
        with self.assertRaisesRegex(deltabucket.Invalid, 'bad'):
            bucket.sync(empty, 'bad', direction='down')
        self.assertEqual(os.listdir(empty), [])

    def test_removals_that_the_server_refuses(self):
        """Keys of a run that are the server's own; all others go."""
        bucket = self.bucket()
        run = deltabucket.Run(f'{bucket.name}/policy', **settings_of(self.daemon))
        self.addCleanup(run.close)
        run.publish({'a': numpy.zeros(64, 'f4')})
        self.daemon.client('runs', 'settings', run.name, 'view_trl=true')
        self.daemon.await_views(bucket.name)
        own = [one.key for one in bucket.list('policy/anchors/')]
        self.assertTrue(own)
        bucket.put('old', b'old')
        new = os.path.join(self.folder, 'new')
        write(os.path.join(new, 'new'), b'new')
        for dry in (True, False):
            with self.assertLogs('deltabucket', 'WARNING') as logs, \
                    self.assertRaisesRegex(deltabucket.Denied, 'of the objects to remove .*stay'):
                bucket.sync(new, direction='up', delete=True, dry_run=dry)
            self.assertEqual(len(logs.output), len(own))
            self.assertIn(own[0], logs.output[0])
        self.assertEqual([one.key for one in bucket.list()], sorted([*own, 'new']))

    def test_a_bucket_can_be_sent_to_another_process(self):
        bucket = self.bucket('sent')
        bucket.put('key', b'data')
        there = pickle.loads(pickle.dumps(bucket))
        self.addCleanup(there.close)
        self.assertEqual((there.name, there.endpoint), (bucket.name, bucket.endpoint))
        bucket.close()
        self.assertEqual(there.get('key'), b'data')

    def test_failures(self):
        bucket = self.bucket()
        for call in (lambda: bucket.get('none'), lambda: bucket.head('none'),
                     lambda: bucket.read('none', 0, 1),
                     lambda: bucket.get('none', os.path.join(self.folder, 'none'))):
            with self.assertRaises(deltabucket.NotFound) as caught:
                call()
            self.assertEqual((caught.exception.kind, caught.exception.number), ('no_key', 21))
            self.assertIn('none', str(caught.exception))
        with self.assertRaises(deltabucket.NotFound) as caught:
            deltabucket.Bucket('nowhere', **settings_of(self.daemon)).put('key', b'1')
        self.assertEqual(caught.exception.kind, 'no_bucket')
        self.assertTrue(caught.exception.request_id)
        with self.assertRaises(deltabucket.Exists):
            bucket.create(exist_ok=False)
        with self.assertRaises(deltabucket.Denied):
            settings = dict(settings_of(self.daemon), token='wrong')
            deltabucket.Bucket('failures', **settings).list()
        with self.assertRaises(deltabucket.Untrusted):
            settings = dict(settings_of(self.daemon), ca=None)
            deltabucket.Bucket('failures', retries=0, **settings).list()
        with self.assertRaises(ValueError):
            bucket.put('a\0b', b'')
        bucket.close()
        with self.assertRaisesRegex(ValueError, 'closed'):
            bucket.list()


class FileSystem(BucketCase):
    def files(self):
        made = DeltaBucketFileSystem(**settings_of(self.daemon), skip_instance_cache=True)
        self.name = 'fs-' + self.id().rsplit('_', 1)[-1]
        made.mkdir(self.name)
        return made

    def test_protocol(self):
        import fsspec
        fsspec.register_implementation('deltabucket', DeltaBucketFileSystem)
        self.files()
        url = f'deltabucket://{self.name}/a/b.bin'
        data = content(500_000)
        with fsspec.open(url, 'wb', **settings_of(self.daemon)) as file:
            file.write(data[:1000])
            file.write(data[1000:])
        with fsspec.open(url, 'rb', block_size=4096, **settings_of(self.daemon)) as file:
            file.seek(1000)
            self.assertEqual(file.read(500), data[1000:1500])
            self.assertEqual(file.read(), data[1500:])

    def test_tree(self):
        files = self.files()
        for name in ('x/1', 'x/y/2', '3'):
            files.pipe_file(f'{self.name}/{name}', name.encode())
        self.assertEqual(files.ls(self.name, detail=False), [f'{self.name}/3', f'{self.name}/x'])
        self.assertEqual(sorted(files.find(self.name)),
                         [f'{self.name}/{name}' for name in ('3', 'x/1', 'x/y/2')])
        self.assertTrue(files.isdir(f'{self.name}/x') and files.isfile(f'{self.name}/x/1'))
        self.assertEqual(files.cat_file(f'{self.name}/x/y/2', 1, 3), b'/y')
        self.assertEqual(files.cat_file(f'{self.name}/x/y/2', -1), b'2')
        files.mv(f'{self.name}/x/1', f'{self.name}/z')
        self.assertFalse(files.exists(f'{self.name}/x/1'))
        self.assertEqual(files.cat_file(f'{self.name}/z'), b'x/1')
        files.rm(f'{self.name}/x', recursive=True)
        self.assertEqual(files.ls(self.name, detail=False), [f'{self.name}/3', f'{self.name}/z'])
        with self.assertRaises(FileNotFoundError):
            files.open(f'{self.name}/x/1', 'rb')
        with self.assertRaises(FileExistsError):
            files.open(f'{self.name}/z', 'xb')

    def test_failed(self):
        files = self.files()
        with self.assertRaises(KeyError):
            with files.open(f'{self.name}/half', 'wb') as file:
                file.write(b'half')
                raise KeyError
        self.assertFalse(files.exists(f'{self.name}/half'))


if __name__ == '__main__':
    unittest.main()
