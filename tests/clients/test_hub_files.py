"""HfFileSystem over hf://buckets: ls, find, glob, walk, info, read with ranges, write, rm, cp, mv; the newest huggingface_hub and 1.29."""
import os
import unittest

from tests.support.checkpoints import write_safetensors
from tests.support.clients import both_schemes, content, read
from tests.support.hub import MIDDLE, MISSING, NEWEST, HubCase, ready

LARGE_BYTES = 24 << 20


class Files:
    def test_views_right_after_a_publish(self):
        """A delta of a run with view_trl is there as soon as its publish has ended: HfFileSystem lists the folder to find it."""
        for number in range(3):
            path = self.path(f'step-{number}.safetensors')
            write_safetensors(path, {'w': ('BF16', [LARGE_BYTES // 2], bytes([number]) + content(LARGE_BYTES - 1))})
            self.daemon.client('publish', '--run', 'fs-views/policy', '--create-bucket', path)
            if number == 0:
                self.daemon.client('runs', 'settings', 'fs-views/policy', 'view_trl=true')
                continue
            delta = f'buckets/main/fs-views/policy/deltas/step_{number:06d}.safetensors'
            self.assertTrue(self.fs.exists(delta))
            self.assertGreater(len(self.fs.cat_file(delta)), 0)

    def root(self, name):
        """A new bucket with four files; its path as HfFileSystem writes it."""
        bucket = self.new_bucket(name)
        self.hub.batch_bucket_files(bucket, add=[(b'one', 'one.txt'), (b'two', 'dir/two.txt'), (b'3', 'dir/sub/three.bin'), (b'', 'dir/empty')])
        return f'buckets/{bucket}'

    def test_listing(self):
        root = self.root('fs-list')
        self.assertEqual(sorted(self.fs.ls(f'hf://{root}', detail=False)), [f'{root}/dir', f'{root}/one.txt'])
        self.assertEqual({entry['name']: (entry['type'], entry['size']) for entry in self.fs.ls(f'{root}/dir', detail=True)},
                         {f'{root}/dir/empty': ('file', 0), f'{root}/dir/sub': ('directory', 0), f'{root}/dir/two.txt': ('file', 3)})
        self.assertEqual(self.fs.find(root), [f'{root}/dir/empty', f'{root}/dir/sub/three.bin', f'{root}/dir/two.txt', f'{root}/one.txt'])
        self.assertEqual(self.fs.find(f'{root}/dir', withdirs=True),
                         [f'{root}/dir', f'{root}/dir/empty', f'{root}/dir/sub', f'{root}/dir/sub/three.bin', f'{root}/dir/two.txt'])
        self.assertEqual(self.fs.glob(f'{root}/**/*.txt'), [f'{root}/dir/two.txt', f'{root}/one.txt'])
        self.assertEqual(self.fs.glob(f'{root}/*/sub/*'), [f'{root}/dir/sub/three.bin'])
        walked = {at: (sorted(folders), sorted(files)) for at, folders, files in self.fs.walk(root)}
        self.assertEqual(walked[f'{root}/dir'], (['sub'], ['empty', 'two.txt']))

    def test_info(self):
        root = self.root('fs-info')
        self.assertEqual((self.fs.info(f'{root}/one.txt')['size'], self.fs.info(f'{root}/dir')['type']), (3, 'directory'))
        self.assertEqual([self.fs.exists(f'{root}/{name}') for name in ('one.txt', 'dir', 'dir/sub', 'absent', 'dir/absent')],
                         [True, True, True, False, False])
        self.assertEqual((self.fs.isfile(f'{root}/one.txt'), self.fs.isdir(f'{root}/dir'), self.fs.isdir(f'{root}/one.txt')), (True, True, False))
        with self.fails('FileNotFoundError'):
            self.fs.info(f'{root}/absent')
        with self.fails('FileNotFoundError'):
            self.fs.ls('buckets/main/no-such-bucket')
        self.assertFalse(self.fs.exists('buckets/main/no-such-bucket/x'))
        self.assertEqual(self.fs.url(f'{root}/dir/two.txt'), f'{self.endpoint}/{root}/resolve/dir/two.txt')

    def test_reading(self):
        root, data = self.root('fs-read'), content(12_000_000)
        self.own.fs_write(f'{root}/big', data)
        self.assertSame(self.own.fs_read(f'{root}/big'), data)
        for start, length in ((0, 1), (5_242_879, 2), (11_999_990, 100), (1_000_000, 6_000_000), (12_000_000, 5)):
            self.assertSame(self.own.fs_read(f'{root}/big', start, length), data[start:start + length])
        self.assertSame(self.own.fs_read(f'{root}/big', 0, 1000, block_size=0), data[:1000])
        self.assertSame(self.fs.cat_file(f'{root}/big', start=100, end=200_000), data[100:200_000])
        self.assertSame(self.fs.tail(f'{root}/big', size=1000), data[-1000:])
        self.assertEqual(self.fs.cat([f'{root}/one.txt', f'{root}/dir/two.txt']), {f'{root}/one.txt': b'one', f'{root}/dir/two.txt': b'two'})
        self.assertEqual(self.own.fs_read(f'{root}/dir/empty'), b'')
        with self.fails('FileNotFoundError'):
            self.own.fs_read(f'{root}/absent')

    def test_writing(self):
        root = self.root('fs-write')
        self.own.fs_write(f'hf://{root}/new/file ü#%41.txt', 'text\nof lines', 'w')
        self.assertEqual(self.own.fs_lines(f'hf://{root}/new/file ü#%41.txt'), ['text', 'of lines'])
        self.fs.pipe_file(f'{root}/piped', b'piped')
        self.assertEqual(self.fs.cat_file(f'{root}/piped'), b'piped')
        self.fs.touch(f'{root}/touched')
        self.assertEqual(self.fs.info(f'{root}/touched')['size'], 0)
        path, data = self.file('put-local', 300_000)
        self.fs.put_file(path, f'{root}/put')
        self.fs.get_file(f'{root}/put', self.path('got-local'))
        self.assertSame(read(self.path('got-local')), data)
        self.fs.get(f'{root}/dir', self.path('got-folder'), recursive=True)
        self.assertEqual(read(self.path('got-folder', 'sub', 'three.bin')), b'3')
        self.assertEqual(os.path.getsize(self.path('got-folder', 'empty')), 0)

    def test_removing(self):
        root = self.root('fs-remove')
        self.fs.rm_file(f'{root}/one.txt')
        self.assertFalse(self.fs.exists(f'{root}/one.txt'))
        self.fs.rm(f'{root}/dir', recursive=True)
        self.assertEqual(self.hub.list_bucket_tree(root.removeprefix('buckets/')), [])

    def test_odd_names(self):
        root = self.root('fs-names')
        for name in ('a%20b', 'ü ö', 'x+y', 'h#sh', 'wh?t', "it's"):
            self.own.fs_write(f'{root}/odd/{name}', name.encode())
            self.assertEqual(self.own.fs_read(f'{root}/odd/{name}'), name.encode())
        self.assertEqual(len(self.fs.ls(f'{root}/odd')), 6)


@unittest.skipUnless(ready(NEWEST), MISSING)
@both_schemes
class HubFilesNewest(Files, HubCase):
    version = NEWEST

    def test_empty_bucket(self):
        self.assertEqual(self.fs.ls(f'buckets/{self.new_bucket("fs-empty")}'), [])

    def test_copying(self):
        root, other = self.root('fs-copy'), self.new_bucket('fs-other')
        self.fs.cp_file(f'{root}/dir/two.txt', f'{root}/copied')
        self.fs.cp_file(f'{root}/dir/two.txt', f'buckets/{other}/from-there')
        self.fs.mv(f'{root}/one.txt', f'{root}/moved.txt')
        self.assertEqual((self.fs.cat_file(f'{root}/copied'), self.fs.cat_file(f'buckets/{other}/from-there')), (b'two', b'two'))
        self.assertEqual((self.fs.cat_file(f'{root}/moved.txt'), self.fs.exists(f'{root}/one.txt')), (b'one', False))

    def test_following(self):
        """live_follow: a cached listing is dropped when somebody else has changed what it shows, through whatever face."""
        root = self.root('fs-follow')
        first = [f'{root}/dir', f'{root}/one.txt']
        self.assertEqual(sorted(self.own.fs_kept('deaf', root)), first)
        self.assertEqual(sorted(self.own.fs_kept('follower', root, live_follow=True)), first)
        self.assertTrue(self.own.fs_subscribed('main/fs-follow'))
        self.assertEqual(self.own.fs_kept_until('follower', root, first), first)
        self.assertEqual(self.daemon.request('PUT', '/fs-follow/by-s3', b'put').status, 200)
        second = sorted([*first, f'{root}/by-s3'])
        self.assertEqual(self.own.fs_kept_until('follower', root, second), second)
        self.hub.batch_bucket_files('main/fs-follow', add=[(b'new', 'by-hub')], delete=['one.txt'])
        third = sorted([f'{root}/by-hub', f'{root}/by-s3', f'{root}/dir'])
        self.assertEqual(self.own.fs_kept_until('follower', root, third), third)
        self.assertEqual(sorted(self.own.fs_kept('deaf', root)), first)

    def test_without_xet(self):
        """HF_HUB_DISABLE_XET: reads are one plain GET."""
        root, data = self.root('fs-plain'), content(700_000)
        self.fs.pipe_file(f'{root}/plain', data)
        plain = self.new_driver(HF_HUB_DISABLE_XET='1')
        self.setUp()
        plain.fs.get_file(f'{root}/plain', self.path('plain-get'))
        self.assertSame(read(self.path('plain-get')), data)
        self.assertEqual(self.requests('reconstructions'), [])


@unittest.skipUnless(ready(MIDDLE), MISSING)
class HubFilesMiddle(Files, HubCase):
    version = MIDDLE


if __name__ == '__main__':
    unittest.main()
