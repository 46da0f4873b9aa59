"""rclone with provider Other: Debian's version and the current one.

Settings: a remote's provider, keys, endpoint and region; the CA in SSL_CERT_FILE. Exception: --s3-upload-cutoff and
--s3-chunk-size in the multipart test, whose defaults (200 MiB) would make it slow; --transfers is left as it is.
"""
import os
import unittest

from tests.support.clients import REGION, ClientCase, both_schemes, installed, md5, multipart_etag, program, read, tree, write

DEBIAN = program('/usr/bin/rclone')
CURRENT = installed('rclone')


class RcloneCase(ClientCase):
    agent = '^rclone/'
    ca_variable = 'SSL_CERT_FILE'
    program = None

    @classmethod
    def prepare(cls):
        write(cls.path('.config', 'rclone', 'rclone.conf'), f'''[remote]
type = s3
provider = Other
access_key_id = {cls.keys[0]}
secret_access_key = {cls.keys[1]}
endpoint = {cls.endpoint}
region = {REGION}
'''.encode())
        cls.rclone('mkdir', 'remote:rclone')

    @classmethod
    def rclone(cls, *arguments, check=True, data=None):
        return cls.run_program(cls.program, *arguments, check=check, data=data)


class RcloneTests:
    def plant(self, name):
        """A tree with old modification times."""
        for number, entry in enumerate(('a', 'b/c', 'b/d e+f', 'ü/ä', 'empty')):
            path = write(self.path(name, entry), b'' if entry == 'empty' else os.urandom(30_000 + number))
            os.utime(path, ns=(10**18 + number * 10**9 + 123_456_789,) * 2)
        return self.path(name)

    def test_sync_check_and_times(self):
        source = self.plant('sync')
        self.rclone('sync', source, 'remote:rclone/sync')
        self.rclone('check', source, 'remote:rclone/sync')
        self.rclone('check', '--download', source, 'remote:rclone/sync')
        self.rclone('sync', 'remote:rclone/sync', self.path('sync.back'))
        self.assertEqual(tree(self.path('sync.back')), tree(source))
        for entry in tree(source):
            self.assertEqual(os.stat(self.path('sync.back', entry)).st_mtime_ns, os.stat(os.path.join(source, entry)).st_mtime_ns, entry)
        write(self.path('sync', 'a'), b'changed')
        os.remove(self.path('sync', 'b', 'c'))
        self.rclone('sync', source, 'remote:rclone/sync')
        self.assertEqual(set(self.rclone('lsf', '-R', '--files-only', 'remote:rclone/sync').stdout.split('\n')) - {''}, set(tree(source)))
        self.rclone('check', source, 'remote:rclone/sync')
        sums = dict(reversed(line.split('  ', 1)) for line in self.rclone('md5sum', 'remote:rclone/sync').stdout.splitlines())
        self.assertEqual(sums['a'], md5(b'changed'))

    def test_nothing_to_do_copies_nothing(self):
        source = self.plant('idle')
        self.rclone('copy', source, 'remote:rclone/idle')
        self.assertEqual(self.called('PutObject', least=5), 5)
        self.rclone('copy', source, 'remote:rclone/idle')
        self.assertEqual(self.called('PutObject'), 5)

    def test_multipart(self):
        path, data = self.file('large.bin', 17_000_001)
        small_parts = ['--s3-upload-cutoff', '5M', '--s3-chunk-size', '5M']
        self.rclone('copyto', *small_parts, path, 'remote:rclone/large.bin')
        self.assertCalled('CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload')
        self.rclone('check', self.path('large.bin'), 'remote:rclone/', '--include', '/large.bin', check=False)
        self.rclone('copyto', 'remote:rclone/large.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)
        self.rclone('copyto', *small_parts, 'remote:rclone/large.bin', 'remote:rclone/large.copy')
        self.rclone('copyto', 'remote:rclone/large.copy', path + '.copy')
        self.assertSame(read(path + '.copy'), data)
        reply = self.daemon.request('HEAD', '/rclone/large.bin')
        self.assertEqual(reply.headers['ETag'], f'"{multipart_etag(data, 5 << 20)}"')

    def test_move_within_the_server(self):
        source = self.plant('move')
        self.rclone('copy', source, 'remote:rclone/move')
        self.rclone('move', 'remote:rclone/move', 'remote:rclone/moved')
        self.assertEqual(self.rclone('lsf', '-R', '--files-only', 'remote:rclone/move', check=False).stdout, '')
        self.rclone('check', source, 'remote:rclone/moved')
        self.assertIn('2001-09-09', self.rclone('lsl', 'remote:rclone/moved').stdout)

    def test_streams_and_ranges(self):
        data = os.urandom(700_000)
        self.rclone('rcat', 'remote:rclone/stream', data=data)
        self.rclone('copyto', 'remote:rclone/stream', self.path('stream'))
        self.assertSame(read(self.path('stream')), data)
        self.rclone('rcat', 'remote:rclone/text', data=b'0123456789')
        self.assertEqual(self.rclone('cat', '--offset', '5', '--count', '3', 'remote:rclone/text').stdout, '567')

    def test_sizes_and_removal(self):
        self.rclone('copy', self.plant('purge'), 'remote:rclone-purge/x')
        self.assertIn('Total objects: 5', self.rclone('size', 'remote:rclone-purge').stdout)
        self.assertIn('rclone-purge', self.rclone('lsd', 'remote:').stdout)
        self.rclone('delete', 'remote:rclone-purge/x/b')
        self.rclone('purge', 'remote:rclone-purge')
        self.assertNotIn('rclone-purge', self.rclone('lsd', 'remote:').stdout)


@unittest.skipUnless(DEBIAN, 'rclone is not installed')
@both_schemes
class RcloneDebian(RcloneTests, RcloneCase):
    program = DEBIAN


@unittest.skipUnless(CURRENT, 'the current rclone is not installed (setup/clients)')
@both_schemes
class RcloneCurrent(RcloneTests, RcloneCase):
    program = CURRENT

    def test_metadata(self):
        path, _ = self.file('described', 1000)
        self.rclone('copyto', '--metadata', '--metadata-set', 'colour=blue', '--metadata-set', 'content-type=text/x-test', path, 'remote:rclone/described')
        described = self.rclone('lsjson', '--metadata', 'remote:rclone/described').stdout
        self.assertIn('"colour":"blue"', described)
        self.assertIn('text/x-test', described)

    def test_presigned_link(self):
        path, data = self.file('linked', 1000)
        self.rclone('copyto', path, 'remote:rclone/linked')
        url = self.rclone('link', '--expire', '1h', 'remote:rclone/linked').stdout.strip()
        reply = self.daemon.request('GET', url[len(self.endpoint):], token=None)
        self.assertEqual((reply.status, reply.body), (200, data))


if __name__ == '__main__':
    unittest.main()
