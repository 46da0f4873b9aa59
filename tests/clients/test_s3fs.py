"""s3fs-fuse, Debian's: a bucket mounted as a folder. It needs /dev/fuse and the right to mount.

Exceptions: use_path_request_style with the 127.0.0.1 endpoint, since there a bucket cannot be part of the host's name (the class with the
localhost endpoint does without); passwd_file is how it gets the keys, url the endpoint, CURL_CA_BUNDLE the CA; -s takes one call after another, since
s3fs (1.90) never sends a chmod that meets the release of the file, which comes some time after its close.
"""
import contextlib
import os
import shutil
import subprocess
import time
import unittest

from tests.support.clients import ClientCase, both_schemes, content, program, read, tree, write
from tests.support.skips import NO_FUSE

S3FS = program('/usr/bin/s3fs', 's3fs')
UNMOUNT = program('fusermount3', 'fusermount')


def mountable():
    if not S3FS or not UNMOUNT:
        return 's3fs is not installed'
    try:
        os.close(os.open('/dev/fuse', os.O_RDWR))
    except OSError:
        return NO_FUSE
    return None


@unittest.skipIf(mountable(), mountable() or '')
@both_schemes
class S3fs(ClientCase):
    agent = '^s3fs/'
    ca_variable = 'CURL_CA_BUNDLE'
    path_style = ['-o', 'use_path_request_style']

    @classmethod
    def prepare(cls):
        write(cls.path('passwd'), ':'.join(cls.keys).encode())
        os.chmod(cls.path('passwd'), 0o600)
        cls.daemon.request('PUT', '/s3fs')
        cls.mounts = []

    def url(self):
        return self.endpoint

    @contextlib.contextmanager
    def mounted(self, name):
        """The bucket as a folder; unmounted at the end, so that everything was written."""
        folder = self.path(name)
        os.makedirs(folder)
        command = [S3FS, 's3fs', folder, '-f', '-s', '-o', f'url={self.url()}', '-o', f'passwd_file={self.path("passwd")}', *self.path_style]
        log = open(self.path(name + '.log'), 'wb')
        process = subprocess.Popen(command, env=self.environment(), stdout=log, stderr=log)
        try:
            limit = time.monotonic() + 60
            while not os.path.ismount(folder):
                if process.poll() is not None or time.monotonic() > limit:
                    raise AssertionError(f's3fs did not mount: {read(self.path(name + ".log")).decode(errors="replace")[-2000:]}')
                time.sleep(0.05)
            yield folder
        finally:
            log.close()
            subprocess.run([UNMOUNT, '-u', folder], capture_output=True)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def test_files_and_attributes(self):
        with self.mounted('first') as folder:
            os.makedirs(os.path.join(folder, 'dir', 'deep'))
            for number, name in enumerate(('a', 'dir/b c', 'dir/deep/ü', 'empty')):
                path = write(os.path.join(folder, name), b'' if name == 'empty' else content(50_000, number))
                os.chmod(path, 0o640)
                os.utime(path, (1_000_000_000, 1_000_000_000))
            with open(os.path.join(folder, 'a'), 'ab') as file:
                file.write(b'appended')
            os.utime(os.path.join(folder, 'a'), (1_000_000_000, 1_000_000_000))
            os.symlink('a', os.path.join(folder, 'link'))
            before = tree(folder)
        with self.mounted('second') as folder:
            self.assertEqual(tree(folder), before)
            for name in ('a', 'dir/b c', 'dir/deep/ü'):
                stat = os.stat(os.path.join(folder, name))
                self.assertEqual((stat.st_mode & 0o777, stat.st_mtime), (0o640, 1_000_000_000), name)
            self.assertEqual(os.readlink(os.path.join(folder, 'link')), 'a')
            self.assertEqual(sorted(os.listdir(os.path.join(folder, 'dir'))), ['b c', 'deep'])
            os.rename(os.path.join(folder, 'dir'), os.path.join(folder, 'renamed'))
            self.assertSame(read(os.path.join(folder, 'renamed', 'b c')), content(50_000, 1))
            shutil.rmtree(os.path.join(folder, 'renamed'))
            self.assertNotIn('renamed', os.listdir(folder))
        self.assertSame(self.daemon.request('GET', '/s3fs/a').body, content(50_000, 0) + b'appended')
        self.assertCalled('GetObject', 'PutObject')

    def test_large_file_and_random_writes(self):
        data = bytearray(content(27_000_000))
        with self.mounted('large') as folder:
            path = write(os.path.join(folder, 'large.bin'), bytes(data))
            self.assertSame(read(path), bytes(data))
        with self.mounted('large-again') as folder:
            with open(os.path.join(folder, 'large.bin'), 'r+b') as file:
                file.seek(12_345_678)
                file.write(b'patched in the middle')
            data[12_345_678:12_345_678 + 21] = b'patched in the middle'
            with open(os.path.join(folder, 'large.bin'), 'rb') as file:
                file.seek(20_000_000)
                self.assertEqual(file.read(1000), bytes(data[20_000_000:20_001_000]))
            os.rename(os.path.join(folder, 'large.bin'), os.path.join(folder, 'large.moved'))
        self.assertSame(self.daemon.request('GET', '/s3fs/large.moved').body, bytes(data))
        self.assertCalled('CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload')


class S3fsVirtualHost(S3fs):
    """The default style: the bucket's name is a part of the host's."""
    tls = False
    path_style = []

    def url(self):
        return self.named_endpoint


if __name__ == '__main__':
    unittest.main()
