"""s3cmd, Debian's: put, get, sync, multipart, info, attributes.

Settings: keys, host_base and host_bucket (its endpoint), whether it is HTTPS, and the CA.
"""
import os
import unittest

from tests.support.clients import DOMAIN, ClientCase, both_schemes, content, md5, program, read, tree, write

S3CMD = program('/usr/bin/s3cmd', 's3cmd')
PART = 15 << 20


@unittest.skipUnless(S3CMD, 's3cmd is not installed')
@both_schemes
class S3cmd(ClientCase):
    @classmethod
    def prepare(cls):
        cls.host = cls.endpoint.split('//')[1]
        cls.configure('.s3cfg', cls.host, cls.host)
        cls.s3cmd('mb', 's3://s3cmd')

    @classmethod
    def configure(cls, name, host, bucket_host):
        write(cls.path(name), f'''[default]
access_key = {cls.keys[0]}
secret_key = {cls.keys[1]}
host_base = {host}
host_bucket = {bucket_host}
use_https = {cls.tls}
ca_certs_file = {cls.daemon.ca if cls.tls else ''}
'''.encode())

    @classmethod
    def s3cmd(cls, *arguments, check=True, **more):
        return cls.run_program(S3CMD, *arguments, check=check, **more)

    def test_there_and_back(self):
        path, data = self.file('small.bin', 300_000)
        self.s3cmd('put', path, 's3://s3cmd/dir/small file+ü.bin')
        self.s3cmd('get', 's3://s3cmd/dir/small file+ü.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)
        self.assertIn(md5(data), self.s3cmd('ls', '--list-md5', 's3://s3cmd/dir/').stdout)
        info = self.s3cmd('info', 's3://s3cmd/dir/small file+ü.bin').stdout
        self.assertIn(md5(data), info)
        self.assertIn('300000', info)

    def test_multipart(self):
        path, data = self.file('large.bin', PART + 1_000_000)
        self.s3cmd('put', path, 's3://s3cmd/large.bin')
        self.assertCalled('CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload')
        self.s3cmd('get', 's3://s3cmd/large.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)
        self.s3cmd('cp', 's3://s3cmd/large.bin', 's3://s3cmd/large.copy')
        self.s3cmd('get', 's3://s3cmd/large.copy', path + '.copy')
        self.assertSame(read(path + '.copy'), data)

    def test_multipart_listing_and_abort(self):
        self.assertEqual(self.daemon.request('POST', '/s3cmd/open?uploads').status, 200)
        listed = self.s3cmd('multipart', 's3://s3cmd').stdout
        self.assertIn('s3://s3cmd/open', listed)
        upload = next(line.split()[-1] for line in listed.splitlines() if 's3://s3cmd/open' in line)
        self.s3cmd('listmp', 's3://s3cmd/open', upload)
        self.s3cmd('abortmp', 's3://s3cmd/open', upload)
        self.assertNotIn('s3://s3cmd/open', self.s3cmd('multipart', 's3://s3cmd').stdout)

    def test_sync_keeps_attributes(self):
        for name in ('a', 'b/c', 'b/d e'):
            path = write(self.path('tree', name), content(20_000, len(name)))
            os.utime(path, (1_000_000_000, 1_000_000_000))
            os.chmod(path, 0o640)
        self.s3cmd('sync', self.path('tree') + '/', 's3://s3cmd/tree/')
        self.s3cmd('sync', 's3://s3cmd/tree/', self.path('tree.back') + '/')
        self.assertEqual(tree(self.path('tree.back')), tree(self.path('tree')))
        for name in ('a', 'b/c', 'b/d e'):
            stat = os.stat(self.path('tree.back', name))
            self.assertEqual((stat.st_mtime, stat.st_mode & 0o777), (1_000_000_000, 0o640))
        again = self.s3cmd('sync', self.path('tree') + '/', 's3://s3cmd/tree/').stdout
        self.assertNotIn('upload:', again)
        os.remove(self.path('tree', 'a'))
        self.s3cmd('sync', '--delete-removed', self.path('tree') + '/', 's3://s3cmd/tree/')
        self.assertNotIn('s3://s3cmd/tree/a', self.s3cmd('ls', '--recursive', 's3://s3cmd/tree/').stdout)

    def test_many_removed_at_once(self):
        for number in range(12):
            self.daemon.request('PUT', f'/s3cmd/many/{number}', body=b'x')
        self.s3cmd('del', '--recursive', '--force', 's3://s3cmd/many/')
        self.assertEqual(self.s3cmd('ls', '--recursive', 's3://s3cmd/many/').stdout, '')

    def test_metadata_and_move(self):
        path, data = self.file('moved.bin', 5000)
        self.s3cmd('put', '--add-header', 'x-amz-meta-colour: blue', '--mime-type', 'text/x-test', path, 's3://s3cmd/described')
        self.s3cmd('modify', '--add-header', 'x-amz-meta-shape: round', 's3://s3cmd/described')
        self.s3cmd('mv', 's3://s3cmd/described', 's3://s3cmd/described-2')
        info = self.s3cmd('info', 's3://s3cmd/described-2').stdout
        for word in ('text/x-test', 'blue', 'round'):
            self.assertIn(word, info)
        self.assertNotEqual(self.s3cmd('info', 's3://s3cmd/described', check=False).returncode, 0)
        self.s3cmd('get', 's3://s3cmd/described-2', path + '.back')
        self.assertSame(read(path + '.back'), data)

    def test_bucket_settings(self):
        self.assertIn('s3://s3cmd', self.s3cmd('ls').stdout)
        info = self.s3cmd('info', 's3://s3cmd').stdout
        self.assertIn('Location:', info)
        self.assertIn('Payer:     BucketOwner', info)
        self.s3cmd('expire', '--expiry-days=7', '--expiry-prefix=old/', 's3://s3cmd')
        self.assertIn('<Days>7</Days>', self.s3cmd('getlifecycle', 's3://s3cmd').stdout)
        self.s3cmd('dellifecycle', 's3://s3cmd')
        self.assertIn('s3://s3cmd', self.s3cmd('du', 's3://s3cmd').stdout)
        self.s3cmd('mb', 's3://s3cmd-brief')
        self.s3cmd('rb', 's3://s3cmd-brief')

    def test_signed_url(self):
        self.daemon.request('PUT', '/s3cmd/signed', body=b'data')
        self.s3cmd('info', 's3://s3cmd/signed')
        url = self.s3cmd('signurl', 's3://s3cmd/signed', '+60').stdout.strip()
        target = '/' + url.split('//', 1)[1].split('/', 1)[1]
        reply = self.daemon.request('GET', target, token=None)
        self.assertEqual((reply.status, reply.body), (200, b'data'), url)

    def test_virtual_host(self):
        port = self.host.split(':')[1]
        self.configure('virtual.cfg', f'{DOMAIN}:{port}', f'%(bucket)s.{DOMAIN}:{port}')
        path, data = self.file('virtual.bin', 100_000)
        self.s3cmd('-c', self.path('virtual.cfg'), 'put', path, 's3://s3cmd/virtual.bin')
        self.s3cmd('-c', self.path('virtual.cfg'), 'get', 's3://s3cmd/virtual.bin', path + '.back')
        self.assertSame(read(path + '.back'), data)
        self.assertEqual(self.daemon.request('HEAD', '/s3cmd/virtual.bin').status, 200)


if __name__ == '__main__':
    unittest.main()
